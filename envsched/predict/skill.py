"""How good past predictions were: the weight of the cross relation, and the figures that every step reports.

Letters: V pairs of a predicted variance u and the variance v that came.
"""

import math

import numpy as np

# Pairs at which the measured skill of the cross relation counts in full.
FULL_PAIRS = 256
# Root mean square of what the cross relation adds, below which only rounding is measured.
_NO_SPREAD = 1e-9


def cross_weight(d: np.ndarray, r: np.ndarray, w: np.ndarray) -> float:
    """k_c = clip(sum w d r / sum w d^2, 0, 1) * min(1, V / 256); 0 without pairs, or where d is rounding alone.

    Args:
        d: what the cross relation said beyond the environment's mean, [V].
        r: what came beyond the environment's mean, [V].
        w: decayed weights, [V]; pairs of weight 0 are left out.
    """
    alive = w > 0
    d, r, w = d[alive], r[alive], w[alive]
    spread = w @ (d * d)
    if len(d) == 0 or spread <= _NO_SPREAD**2 * w.sum():
        return 0.0
    return float(np.clip(w @ (d * r) / spread, 0, 1)) * min(1.0, len(d) / FULL_PAIRS)


def report(steps: np.ndarray, predicted: np.ndarray, realised: np.ndarray, step: int, window: float) -> dict[str, float]:
    """Figures over the pairs of the last ``window`` steps before ``step``, as plain floats under ``calibration/``.

    ``pairs`` counts all past pairs. ``spearman``; ``top_quartile_hit_rate``: share of the quarter with the highest
    prediction that came out in the top quartile, beside ``top_quartile_chance``; ``zero_variance_share``. A figure
    without a value (no pair, constants) is absent.
    """
    figures: dict[str, float] = {"calibration/pairs": float(len(steps))}
    recent = steps >= step - max(1, math.ceil(window))
    u, v = predicted[recent], realised[recent]
    if len(v) == 0:
        return figures
    figures["calibration/zero_variance_share"] = float(np.mean(v == 0))
    quarter = max(1, len(v) // 4)
    top = v >= np.sort(v)[-quarter]
    figures["calibration/top_quartile_hit_rate"] = float(np.mean(top[np.argsort(-u, kind="stable")[:quarter]]))
    figures["calibration/top_quartile_chance"] = float(np.mean(top))
    if np.ptp(u) > 0 and np.ptp(v) > 0:
        figures["calibration/spearman"] = float(np.corrcoef(ranks(u), ranks(v))[0, 1])
    return figures


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1 [V]; equal values share their mean rank."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[place]
