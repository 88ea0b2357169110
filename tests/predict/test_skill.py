import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata, spearmanr

from envsched.predict.skill import cross_weight, ranks, report


@given(arrays(np.float64, st.integers(1, 40), elements=st.sampled_from([0.0, 0.1, 0.2, 0.5, 1.0])))
def test_ranks_equal_scipy(values):
    np.testing.assert_array_equal(ranks(values), rankdata(values))


def test_cross_weight_is_the_slope_scaled_by_the_number_of_pairs():
    generator = np.random.default_rng(0)
    d, w = generator.normal(size=128), generator.random(128) + 0.1
    assert cross_weight(d, 0.4 * d, w) == pytest.approx(0.4 * 128 / 256)
    assert cross_weight(np.tile(d, 3), np.tile(0.4 * d, 3), np.tile(w, 3)) == pytest.approx(0.4)
    assert cross_weight(d, 7 * d, w) == pytest.approx(0.5)
    assert cross_weight(d, -d, w) == 0


def test_cross_weight_is_zero_without_a_measurement():
    nothing, one = np.empty(0), np.ones(3)
    assert cross_weight(nothing, nothing, nothing) == 0
    assert cross_weight(np.zeros(3), one, one) == 0
    assert cross_weight(np.full(3, 1e-17), np.full(3, 1e-17), one) == 0  # rounding alone
    assert cross_weight(one, one, np.zeros(3)) == 0


def test_report_looks_at_the_window_alone():
    generator = np.random.default_rng(1)
    steps = np.repeat(np.arange(10), 8)
    u, v = generator.random(80), np.round(generator.random(80), 1)
    found = report(steps, u, v, step=10, window=3.0)
    recent = steps >= 7
    assert found["calibration/pairs"] == 80
    assert found["calibration/spearman"] == pytest.approx(spearmanr(u[recent], v[recent]).statistic)
    assert found["calibration/zero_variance_share"] == np.mean(v[recent] == 0)
    best = np.argsort(-u[recent])[:6]
    threshold = np.sort(v[recent])[-6]
    assert found["calibration/top_quartile_hit_rate"] == np.mean(v[recent][best] >= threshold)
    assert found["calibration/top_quartile_chance"] == np.mean(v[recent] >= threshold)
    assert all(type(value) is float for value in found.values())


def test_a_figure_that_is_not_defined_is_absent():
    assert report(np.empty(0, int), np.empty(0), np.empty(0), 0, 8) == {"calibration/pairs": 0.0}
    constant = report(np.zeros(4, int), np.full(4, 0.1), np.array([0.0, 0.1, 0.2, 0.3]), 1, 8)
    assert "calibration/spearman" not in constant
    assert constant["calibration/zero_variance_share"] == 0.25
