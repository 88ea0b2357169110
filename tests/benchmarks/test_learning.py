import json
from pathlib import Path

import pytest

from benchmarks.learning import arm, digest_of, interval, kept_arms, plan_of, refuse_other_inputs, verdict
from envsched.errors import ConfigError
from envsched.files import write_json


def one(scheduler, seed, scores):
    figures = {"zero_signal_share": 0.5, "mean_variance": 0.1, "first_median_reward": 0.4}
    return {"scheduler": scheduler, "seed": seed, "scores": scores, **figures}


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


def test_a_finished_arm_is_not_run_again_under_its_plan_alone(tmp_path):
    """There is no pool in the work folder: training would fail."""
    plan = {"steps": 2, "evaluate_every": 2, "samples_per_held_out_task": 1}
    kept = {**one("envsched", 0, {0: 0.1, 2: 0.6}), "plan": digest_of(plan)}
    write_json(tmp_path / "envsched-seed0.json", kept)
    assert arm(tmp_path / "work", "envsched", 0, plan, tmp_path) == kept
    with pytest.raises(RuntimeError, match="envsched-seed0 stopped"):
        arm(tmp_path / "work", "envsched", 0, {**plan, "evaluate_every": 1}, tmp_path)


def test_kept_arms_belong_to_their_folders_plan():
    for path in (Path(__file__).parents[2] / "benchmarks/results/learning").glob("*/*-seed*.json"):
        found = json.loads(path.read_text())
        assert found["plan"].startswith(path.parent.name)
        assert path.stem == f"{found['scheduler']}-seed{found['seed']}"


def test_a_scheduler_with_one_seed_has_no_interval_yet(tmp_path):
    kept = [one("random", 0, {0: 0.1, 6: 0.2}), one("random", 1, {0: 0.1, 6: 0.4})]
    for found in [*kept, one("dps", 0, {0: 0.1, 2: 0.2})]:
        write_json(tmp_path / f"{found['scheduler']}-seed{found['seed']}.json", found)
    assert kept_arms(tmp_path) == kept
