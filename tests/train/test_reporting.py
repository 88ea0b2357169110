import pytest

from envsched.config import SchedulerConfig
from envsched.train.reporting import report_of
from envsched.types import Batch, Lane, Pick, RolloutRecord, Status

OK, LOST = Status.OK, Status.INFRA_ERROR


def pick(task, lane):
    return Pick(task, task[0], lane, 0.0)


def record(task, rewards, status=(OK, OK), actions=((), ()), refused=(0, 0)):
    trace = [[{"name": "t", "arguments": {}, "ok": ok, "observation": ""} for ok in each] for each in actions]
    return RolloutRecord(task, 0, rewards, status, 0, trace=trace, extra={"refused": list(refused)})


def test_a_step_by_hand():
    """Variances 0, 1/2, 1/8 and none; the top quarter of three is the best one."""
    batch = Batch(0, (pick("a1", Lane.COVERAGE), pick("a2", Lane.EXPLOITATION), pick("b1", Lane.EXPLOITATION), pick("c1", Lane.COVERAGE)))
    records = [
        record("a1", (0.5, 0.5), actions=((True, False), (True,)), refused=(1, 0)),
        record("a2", (0.0, 1.0)),
        record("b1", (0.0, 0.5)),
        record("c1", (None, 1.0), (LOST, OK)),
    ]
    made = report_of(batch, records, SchedulerConfig())
    assert made.variance == pytest.approx((0 + 1 / 2 + 1 / 8) / 3)
    assert made.zero_signal == pytest.approx(1 / 3)
    assert made.hit_rate == 0.5
    assert made.reward == pytest.approx((0.5 + 0.5 + 0.25 + 1.0) / 4)
    assert made.num_environments == 3
    assert made.tool_errors == pytest.approx(2 / 4)
    assert made.metrics()["status/infra_error"] == 1


def test_a_step_without_any_evidence_has_no_figures_but_statuses():
    made = report_of(Batch(0, (pick("a1", Lane.COVERAGE),)), [record("a1", (None, None), (LOST, LOST))], SchedulerConfig())
    assert (made.variance, made.hit_rate, made.reward, made.zero_signal, made.tool_errors) == (None,) * 5
    assert "step/variance" not in made.metrics()
    assert made.metrics()["status/infra_error"] == 2
