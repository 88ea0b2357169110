"""The ladder's ends are schedulers of their own: the paper's rule and the default."""

import pytest

from benchmarks.ladder import RUNGS, LadderJob, measure, run_job
from envsched.config import SchedulerConfig
from envsched.simulate import court
from envsched.simulate.runs import Setting

SETTING = Setting(seed=7000, steps=12)


@pytest.mark.parametrize(("rung", "scheduler"), [("+ isotonic map (= paper)", "paper"), (list(RUNGS)[-1], "envsched")])
def test_a_rung_that_names_a_scheduler_is_it(rung, scheduler):
    assert run_job(LadderJob(rung, SETTING)) == court.run_job(court.Job(scheduler, SETTING, SchedulerConfig()))["figures"]


def test_every_change_changes_something():
    found = measure([SETTING], workers=1, journal=None)
    assert all(figures["gained"]["mean"] != 0 for name, figures in list(found.items())[2:])
