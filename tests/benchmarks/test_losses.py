"""What is told must help, and telling nothing must change nothing."""

import pytest

from benchmarks.losses import LEVELS, run
from envsched.config import SchedulerConfig
from envsched.simulate.court import Job, run_job
from envsched.simulate.runs import Setting

CONFIG = SchedulerConfig(batch_size=16, calibration_start=20, calibration_full=60)
SETTING = Setting(seed=5000, steps=30, num_environments=20, tasks_per_environment=10)


def test_a_forecast_that_is_told_nothing_gives_the_schedulers_own_run():
    assert run("nothing", SETTING, CONFIG) == run_job(Job("envsched", SETTING, CONFIG))["figures"]


@pytest.mark.parametrize("level", ["observed tasks, as they are", "unobserved tasks, as they are"])
def test_what_is_told_helps(level):
    assert level in LEVELS
    assert run(level, SETTING, CONFIG)["mean_variance"] > 1.05 * run("nothing", SETTING, CONFIG)["mean_variance"]
