import pytest

from benchmarks.learning import interval, plan_of, refuse_other_inputs, verdict
from envsched.errors import ConfigError


def one(scheduler, seed, scores):
    return {"scheduler": scheduler, "seed": seed, "scores": scores, "zero_signal_share": 0.5, "variance": 0.1, "first_median_reward": 0.4}


def test_interval_by_hand():
    """Values 1 and 3: mean 2, standard error 1, t(0.975, 1) = 12.706."""
    mean, low, high = interval([1.0, 3.0])
    assert (mean, low, high) == pytest.approx((2, 2 - 12.706, 2 + 12.706), abs=1e-3)


def test_random_is_given_its_best_of_all_steps_and_pairs_go_by_seed():
    arms = [
        one("random", 0, {0: 0.1, 2: 0.2, 4: 0.5, 6: 0.4}),
        one("random", 1, {0: 0.1, 2: 0.3, 4: 0.3, 6: 0.6}),
        one("envsched", 0, {0: 0.1, 2: 0.6}),
        one("envsched", 1, {0: 0.1, 2: 0.9}),
    ]
    found = verdict(arms, steps=2)
    assert found["envsched"]["at_S"][0] == pytest.approx(0.75)
    assert found["envsched"]["at_S_minus_best_of_random_in_3S"][0] == pytest.approx((0.1 + 0.3) / 2)
    assert found["random"]["curve"][6][0] == pytest.approx(0.5)


def test_other_inputs_than_planned_are_refused():
    plan = plan_of(40, 5, 2)
    refuse_other_inputs(plan, plan)
    with pytest.raises(ConfigError, match="steps: planned 40, came 20"):
        refuse_other_inputs(plan, plan_of(20, 5, 2))
