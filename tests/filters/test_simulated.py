"""The progress filter under the simulator's learner: tasks mastered from the start and forgotten while they rest."""

import pytest

from benchmarks.filters import BATCH, SIZE, progress_figures
from envsched.config import SchedulerConfig
from envsched.simulate.runs import Setting


@pytest.mark.parametrize("learner", ["slow", "fast"])
def test_a_forgotten_task_is_back_within_its_probation_and_the_pool_never_drains(learner):
    # as the default leaves what is mastered alone anyway, the filter is tried with a rule that does not
    settings = {"prior": "pooled", "own_half_life": 8, "visit_half_life": 1e6, "mastery_weight": 0}
    config = SchedulerConfig(batch_size=BATCH, filters=("progress",), **settings)
    figures = progress_figures(Setting(learner, 0, 160, **SIZE), config)
    assert figures["resting"] >= 10, "nothing was there to come back"
    assert figures["back"] == figures["resting"]
    assert figures["longest_wait"] <= config.longest_rest_steps
    assert figures["again"] == 0, "a visit that shows a fall ends the rest at once"
    assert figures["fewest_open"] >= config.open_batches * BATCH
    assert figures["false_alarms"] <= 0.01


def test_where_everything_is_mastered_three_batches_stay_open():
    config = SchedulerConfig(batch_size=30, filters=("progress",), top_visits=2, top_tolerance=0.99, max_per_environment=8)
    figures = progress_figures(Setting("fast", 1, 40, **SIZE), config)
    assert figures["fewest_open"] == config.open_batches * 30
