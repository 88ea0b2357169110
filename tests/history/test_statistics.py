import numpy as np
import pytest

from envsched.history import History, decayed_exposures, exposures, statistics
from tests.history.pools import record, small_pool

POOL = small_pool()


def history_of(*records) -> History:
    history = History(POOL)
    history.extend(records)
    return history


def test_sums_by_hand():
    history = history_of(
        record("a0", 0, 0.0, 1.0),  # v = .5
        record("a0", 4, 0.0, 1.0, 0.5, 0.5),  # v = 1/6
        record("c1", 4, 0.5),  # no evidence
    )
    w = np.array([2**-1.0, 2**-0.5])  # from step 8 with a half-life of 8
    groups = statistics(history, 8, 8, "groups")
    rollouts = statistics(history, 8, 8, "rollouts")
    assert groups.mass[0] == pytest.approx(w.sum())
    assert groups.weighted_variance[0] == pytest.approx(w @ [1 / 2, 1 / 6])
    assert rollouts.mass[0] == pytest.approx(w @ [2, 4])
    assert rollouts.weighted_variance[0] == pytest.approx(w @ [2 / 2, 4 / 6])
    assert rollouts.groups[0] == groups.groups[0] == pytest.approx(w.sum())
    assert rollouts.variance[0] == pytest.approx((w @ [1, 4 / 6]) / (w @ [2, 4]))
    for values in (groups.mass, groups.weighted_variance, groups.groups, groups.variance):
        assert values.dtype == np.float64
        assert not values[1:].any()


def test_only_earlier_steps_count():
    history = history_of(record("a0", 0, 0.0, 1.0), record("a0", 3, 0.0, 1.0), record("a1", 3, 0.0, 0.5))
    assert statistics(history, 3, 8).groups.tolist() == statistics(history_of(record("a0", 0, 0.0, 1.0)), 3, 8).groups.tolist()
    assert not statistics(history, 0, 8).mass.any()


def test_evidence_ages_with_the_policy_and_exposures_with_the_step():
    history = history_of(record("a0", 8, 0.0, 1.0, policy_version=0))
    assert statistics(history, 16, 8).groups[0] == 0.25
    assert decayed_exposures(history, 16, 8)[0] == 0.5


def test_exposures_count_every_record_evidence_or_not():
    history = history_of(record("a0", 0, 0.5), record("a0", 1, None, status=["aborted"]), record("b0", 1, 0.0, 1.0), record("a0", 5, 0.5))
    assert exposures(history, 5).tolist() == [2, 0, 0, 1, 0, 0]
    assert exposures(history, 5).dtype == np.int64
    assert decayed_exposures(history, 5, 1.0).tolist() == [2**-5 + 2**-4, 0, 0, 2**-4, 0, 0]


def test_an_empty_history_gives_float_zeros():
    history = History(POOL)
    found = statistics(history, 3, 8)
    for values in (found.mass, found.weighted_variance, found.groups, found.variance, decayed_exposures(history, 3, 8)):
        assert values.dtype == np.float64
        assert values.tolist() == [0.0] * 6


@pytest.mark.parametrize("age", [700, 7_199, 7_201, 100_000])
def test_very_old_evidence_keeps_its_mean_until_it_is_gone(age):
    """Near the end of float64 a quotient of two sums would lose its digits; such weights are dropped instead."""
    history = history_of(record("a0", 0, 0.0, 1.0, 0.3), record("a0", 1, 0.2, 0.4, 0.9))
    found = statistics(history, age, 8)
    if age < 7_200:
        v = [found_variance(0.0, 1.0, 0.3), found_variance(0.2, 0.4, 0.9)]
        w = [1, 2 ** (1 / 8)]
        assert found.variance[0] == pytest.approx(np.average(v, weights=w), rel=1e-12)
    if age > 7_201:
        assert found.mass[0] == found.weighted_variance[0] == found.variance[0] == 0.0


def found_variance(*rewards: float) -> float:
    return float(np.var(rewards, ddof=1))


def test_statistics_read_and_never_write():
    history = history_of(record("a0", 0, 0.0, 1.0), record("a1", 1, 0.0, 1.0))
    first = statistics(history, 9, 8)
    statistics(history, 900, 2)
    second = statistics(history, 9, 8)
    np.testing.assert_array_equal(first.mass, second.mass)
