import numpy as np
import pytest

from envsched.baselines.sec import SEC
from tests.baselines.rivals import CONFIG, chosen, record, small_pool, teach


def test_values_by_hand():
    """Environment 0: mean |A| of (1, 0) is 1, of a constant group 0, so Q = .5 * (1 + 0) / 2; environment 1 is not drawn."""
    pool = small_pool()
    sec = SEC(pool, CONFIG)
    teach(sec, record(pool, 0, 0, 1.0, 0.0), record(pool, 1, 0, 0.5, 0.5), record(pool, 8, 0, 1.0, 0.0))
    assert sec.value == pytest.approx([0.25, 0.0, 0.5])
    sec.decay_absent = True
    teach(sec, record(pool, 4, 1, 1.0, 0.0))
    assert sec.value == pytest.approx([0.125, 0.5, 0.25])


def test_first_draws_follow_the_softmax():
    """With Q = (0, .5, 1) and tau = .5 the first draw falls on the environments as 1 : e : e^2."""
    pool = small_pool()
    sec = SEC(pool, CONFIG)
    sec.value = np.array([0.0, 0.5, 1.0])
    rng = np.random.default_rng(0)
    first = np.bincount(pool.environment_of[[np.argmax(sec.priority(0, rng)) for _ in range(6000)]], minlength=3) / 6000
    expected = np.exp([0, 1, 2])
    assert first == pytest.approx(expected / expected.sum(), abs=0.02)


def test_tasks_of_an_environment_are_equally_likely():
    pool = small_pool()
    sec = SEC(pool, CONFIG)
    rng = np.random.default_rng(1)
    first = np.bincount([np.argmax(sec.priority(0, rng)) for _ in range(6000)], minlength=12) / 6000
    assert first == pytest.approx(np.full(12, 1 / 12), abs=0.015)
    assert len(set(chosen(sec, 0))) == 4
