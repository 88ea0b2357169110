import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from envsched.predict.calibration import fit_calibration, isotonic

V_MAX = 2 / 7
VALUES = st.lists(st.tuples(st.floats(0, 1), st.floats(1e-3, 1)), min_size=1, max_size=60)


def fit(u, v, w=None, start=2, full=3):
    u, v = np.asarray(u, float), np.asarray(v, float)
    w = np.ones_like(u) if w is None else np.asarray(w, float)
    return fit_calibration(u, v, w, start=start, full=full, max_variance=V_MAX)


@given(VALUES)
def test_isotonic_equals_scipy(pairs):
    values, weights = map(np.array, zip(*pairs, strict=True))
    expected = isotonic_regression(values, weights=weights).x
    np.testing.assert_allclose(isotonic(values, weights), expected, atol=1e-12)


@pytest.mark.parametrize("values", [np.arange(500.0), -np.arange(500.0), np.r_[np.arange(500.0), -1e6], np.zeros(500)])
def test_isotonic_of_long_runs(values):
    np.testing.assert_allclose(isotonic(values, np.ones_like(values)), isotonic_regression(values).x)


@given(VALUES.filter(lambda pairs: len({u for u, _ in pairs}) >= 8))
def test_the_map_never_falls_and_stays_in_range(pairs):
    u, v = map(np.array, zip(*pairs, strict=True))
    calibration = fit(u * V_MAX, v)
    grid = calibration(np.linspace(-0.1, 0.5, 301))
    assert np.all(np.diff(grid) >= -1e-12)
    assert np.all((grid >= 0) & (grid <= V_MAX))


def test_linear_between_knots_and_constant_outside():
    u = np.linspace(0.01, 0.08, 8)
    calibration = fit(u, u / 2)
    assert calibration.blend == 1
    np.testing.assert_allclose(calibration(u), u / 2)
    np.testing.assert_allclose(calibration((u[1:] + u[:-1]) / 2), (u[1:] + u[:-1]) / 4)
    np.testing.assert_allclose(calibration(np.array([0.0, 0.001, 0.2])), [0.005, 0.005, 0.04])


def test_the_blend_grows_linearly_with_the_pairs():
    u = np.linspace(0.01, 0.2, 512)
    for count, blend in [(255, 0), (256, 0), (257, 1 / 256), (384, 0.5), (511, 255 / 256), (512, 1)]:
        calibration = fit(u[:count], np.zeros(count), start=256, full=512)
        assert calibration.blend == pytest.approx(blend)
        np.testing.assert_allclose(calibration(u), (1 - blend) * u)


def test_identity_with_fewer_than_eight_distinct_predictions():
    u = np.tile(np.linspace(0.01, 0.07, 7), 100)
    assert fit(u, np.zeros_like(u)).blend == 0
    assert fit(np.r_[u, 0.08], np.zeros(701)).blend == 1


def test_identity_clips():
    np.testing.assert_array_equal(fit([], [])(np.array([-1.0, 0.1, 9.0])), [0, 0.1, V_MAX])


def test_rounding_makes_no_knot():
    """Two predictions a rounding apart, with opposite outcomes: the map must not jump between them."""
    u = np.linspace(0.01, 0.08, 8)
    calibration = fit(np.r_[u, 0.05 * (1 + 1e-15)], np.r_[0, 0, 0, 0, 0, 0.2, 0.2, 0.2, 0.2])
    twins = calibration(np.array([0.05, 0.05 * (1 + 1e-15)]))
    np.testing.assert_allclose(twins, 0.1)


def test_weights_decide_and_weightless_pairs_are_left_out():
    u = np.linspace(0.01, 0.08, 8)
    heavy = fit(np.r_[u, u[:1]], np.r_[np.full(8, 0.2), 0.0], np.r_[np.ones(8), 3.0])
    assert heavy(u[:1])[0] == pytest.approx(0.05)
    assert fit(u, u, np.zeros(8)).blend == 0


def test_the_order_of_pairs_leaves_no_trace():
    generator = np.random.default_rng(0)
    u, v, w = generator.random((3, 300))
    order = generator.permutation(300)
    grid = np.linspace(0, 1, 97)
    np.testing.assert_allclose(fit(u, v, w)(grid), fit(u[order], v[order], w[order])(grid), atol=1e-12)
