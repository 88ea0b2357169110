import numpy as np
import pytest
from scipy.stats import t

from envsched.simulate.intervals import bootstrap, captured_share, compared, interval, t_quantile


@pytest.mark.parametrize("degrees", [1, 7, 30, 31, 60, 200])
def test_quantiles_are_students(degrees):
    assert t_quantile(degrees) == pytest.approx(t.ppf(0.975, degrees), rel=2e-3)


def test_interval_by_hand():
    """Values 1, 2, 3: mean 2, standard error 1/sqrt(3), t(2) = 4.303."""
    found = interval([1.0, None, 2.0, 3.0])
    assert found["mean"] == 2.0
    assert found["high"] - 2.0 == pytest.approx(4.303 / np.sqrt(3))
    assert interval([5.0]) == {"mean": 5.0, "low": None, "high": None}
    assert interval([None])["mean"] is None


def test_bootstrap_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    hits = 0
    for i in range(120):
        parts = np.stack([rng.normal(1.0, 1.0, size=40), np.ones(40)], axis=1)
        found = bootstrap(parts, lambda sums: sums[..., 0] / sums[..., 1], seed=i, draws=200)
        hits += found["low"] <= 1.0 <= found["high"]
    assert 0.85 <= hits / 120 <= 0.99


def test_a_statistic_without_a_value_has_no_interval():
    assert bootstrap(np.zeros((3, 1)), lambda sums: np.full(sums.shape[:-1], np.nan)) == {"mean": None, "low": None, "high": None}


def test_share_and_regret_by_hand():
    assert captured_share(0.07, 0.03, 0.11) == pytest.approx(0.5)
    assert captured_share(0.07, 0.03, 0.03) is None
    figures = compared({"mean_variance": 0.07}, {"mean_variance": 0.03}, {"mean_variance": 0.11})
    assert figures["captured_share"] == pytest.approx(0.5)
    assert figures["regret"] == pytest.approx(0.04)
