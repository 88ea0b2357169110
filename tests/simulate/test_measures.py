import numpy as np
import pytest
from scipy.stats import spearmanr

from envsched.simulate.measures import leave_one_out_mean, neighbour_mean, repeated_spearman, slope, spearman

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("digits", [0, 1, 8])  # few digits: many ties
def test_spearman_is_scipys(digits):
    a, b = RNG.normal(size=(2, 60)).round(digits)
    assert spearman(a, b) == pytest.approx(spearmanr(a, b)[0])


def test_spearman_of_a_constant_is_zero():
    assert spearman(np.ones(5), np.arange(5.0)) == 0.0
    assert spearman(np.ones(1), np.ones(1)) == 0.0


def test_leave_one_out_mean_by_hand():
    found = leave_one_out_mean(np.array([1.0, 2.0, 6.0, 5.0]), np.array([0, 0, 0, 1]))
    assert found[:3] == pytest.approx([4.0, 3.5, 1.5])
    assert np.isnan(found[3])


@pytest.mark.parametrize("same", [True, False])
def test_neighbour_mean_is_brute_force(same):
    vectors, environment_of, values = RNG.normal(size=(20, 4)), np.repeat(np.arange(4), 5), RNG.random(20)
    found = neighbour_mean(values, vectors, environment_of, 3, same)
    for i in range(20):
        others = [j for j in range(20) if j != i and (environment_of[i] == environment_of[j]) == same]
        nearest = sorted(others, key=lambda j: -vectors[i] @ vectors[j])[:3]
        assert found[i] == pytest.approx(values[nearest].mean())


def test_slope_by_hand():
    assert slope(np.array([1.0, 2.0]), np.array([2.0, 4.0])) == pytest.approx(2.0)
    assert slope(np.zeros(2), np.ones(2)) == 0.0


def test_spearman_of_repeated_pairs_is_scipys_of_the_long_sample():
    rng = np.random.default_rng(0)
    a, b, times = rng.integers(0, 5, 15).astype(float), rng.random(15), rng.integers(0, 3, (30, 15))
    for counts, found in zip(times, repeated_spearman(a, b, times), strict=True):
        rows = np.repeat(np.arange(15), counts)
        assert found == pytest.approx(spearmanr(a[rows], b[rows]).statistic)
    assert np.isnan(repeated_spearman(np.ones(15), b, times)).all()
