"""The calibration file is what the court stands on: its residuals, and that nobody changed the learner after it."""

import json

import pytest

from envsched.errors import ConfigError
from envsched.simulate.calibration import FILE, load_kind, module_digests

CALIBRATION = json.loads(FILE.read_text())


@pytest.mark.parametrize("learner", ["slow", "fast"])
@pytest.mark.parametrize("worlds", ["fit", "check"])
def test_residuals_of_the_random_row(learner, worlds):
    found = CALIBRATION["learners"][learner][worlds]
    for figure, relative in (("mean_variance", 0.03), ("median_variance", 0.05)):
        assert abs(found[figure]["found"] / found[figure]["target"] - 1) <= relative, figure
    assert abs(found["median_reward"]["found"] - found["median_reward"]["target"]) <= 0.01


@pytest.mark.parametrize("figure", ["environment", "topology", "own"])
def test_predictability_is_that_of_real_rollouts(figure):
    found = CALIBRATION["learners"]["slow"]["fit"][figure]
    assert found["found"] == pytest.approx(found["target"], rel=0.03)


def test_worlds_of_the_calibration_are_not_the_courts():
    worlds = CALIBRATION["worlds"]
    assert min(len(worlds["fit"]), len(worlds["check"])) >= 8
    assert not set(worlds["fit"]) & set(worlds["check"])
    assert min(worlds["fit"] + worlds["check"]) >= 1000


def test_the_learner_is_the_one_that_was_calibrated():
    """A change to world or learner needs a new calibration: run scripts/calibrate_simulator.py."""
    assert module_digests() == CALIBRATION["modules"]


def test_the_fast_learner_is_faster_and_an_unknown_one_is_refused():
    slow, fast = load_kind("slow"), load_kind("fast")
    assert fast.tempo.rate > slow.tempo.rate
    with pytest.raises(ConfigError, match="slow, fast"):
        load_kind("quick")
