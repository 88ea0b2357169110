"""From predicted to realised variance: an isotonic map, blended in as pairs come (METHOD section 7).

Letters: V past pairs of a prediction u and the variance v that came, w their decayed weights, K knots.
"""

from dataclasses import dataclass

import numpy as np

# Predictions closer than this share of v_max are one prediction: what tells them apart is rounding.
SAME = 1e-9
MIN_DISTINCT = 8


@dataclass(frozen=True, slots=True)
class Calibration:
    """u -> (1 - blend) u + blend * f(u), clipped to [0, v_max]; f is linear between knots and constant outside."""

    knots: np.ndarray  # ascending predictions, float64 [K]
    values: np.ndarray  # non-decreasing realised variances, float64 [K]
    blend: float  # 0 identity .. 1 the map alone
    max_variance: float

    def __call__(self, u: np.ndarray) -> np.ndarray:
        """Calibrated variances, of the shape of ``u``."""
        mapped = np.interp(u, self.knots, self.values) if self.blend > 0 else u
        return np.clip((1 - self.blend) * u + self.blend * mapped, 0, self.max_variance)


def fit_calibration(u: np.ndarray, v: np.ndarray, w: np.ndarray, *, start: int, full: int, max_variance: float) -> Calibration:
    """Fit pairs u, v [V] with weights w [V]; pairs of weight 0 are left out.

    The blend grows linearly from 0 at ``start`` pairs to 1 at ``full``; it stays 0 with fewer than 8 distinct u.
    """
    alive = w > 0
    u, v, w = u[alive], v[alive], w[alive]
    blend = float(np.clip((len(u) - start) / (full - start), 0, 1))
    if blend == 0:
        return Calibration(np.empty(0), np.empty(0), 0.0, max_variance)
    knots, means, weights = _merge_equal(u, v, w, SAME * max_variance)
    if len(knots) < MIN_DISTINCT:
        blend = 0.0
    return Calibration(knots, isotonic(means, weights), blend, max_variance)


def isotonic(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The non-decreasing [K] that is nearest to ``values`` [K] in weighted squares (pool adjacent violators).

    A run of falling values always ends up in one block, so that each pass pools every such run at once; few passes are needed.
    """
    block_of = np.arange(len(values))
    means, masses = values, weights
    while True:
        starts = np.concatenate([[True], means[1:] >= means[:-1]])
        if starts.all():
            return means[block_of]
        first = np.flatnonzero(starts)
        sums, masses = np.add.reduceat(means * masses, first), np.add.reduceat(masses, first)
        means = sums / masses
        block_of = (np.cumsum(starts) - 1)[block_of]


def _merge_equal(u: np.ndarray, v: np.ndarray, w: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct u [K] ascending, with the weighted mean of their v and the sum of their w.

    Neighbours in order that lie within ``tolerance`` are one; their u is the smallest of them.
    """
    order = np.argsort(u, kind="stable")
    u, v, w = u[order], v[order], w[order]
    first = np.flatnonzero(np.concatenate([[True], np.diff(u) > tolerance]))
    weights = np.add.reduceat(w, first)
    return u[first], np.add.reduceat(w * v, first) / weights, weights
