"""Past predictions and what came of them, kept sorted: calibration and the weight of the cross relation without a pass over
the history. The same functions as ``envsched.predict.calibration`` and ``envsched.predict.skill``, which the tests compare.

Letters: V pairs, u predicted and v realised variance, w weight 2^(p / h - base) of a pair, t step now, h half-life.
"""

import numpy as np

from envsched.config import SchedulerConfig
from envsched.predict.calibration import MIN_DISTINCT, SAME, Calibration
from envsched.predict.skill import FULL_PAIRS
from kernels import native

_NO_SPREAD = 1e-9
_REBASE = 512.0


class Pairs:
    """Pairs of all visits with evidence, in the order of u."""

    def __init__(self, config: SchedulerConfig, max_variance: float) -> None:
        self.config = config
        self.max_variance = max_variance
        self._u, self._v, self._w = np.empty(0), np.empty(0), np.empty(0)
        self._base = 0.0
        self._first_step: int | None = None
        self._cross = np.zeros(3)  # sum w d r, sum w d^2, sum w
        self._num_cross = 0

    def add(self, step: int, policy_version: np.ndarray, u: np.ndarray, v: np.ndarray, environment: np.ndarray, cross: np.ndarray) -> None:
        """Pairs of one step, rows ascending; ``environment`` and ``cross`` (NaN: said nothing) are the estimates of the time."""
        self._rebase(step)
        w = np.exp2(policy_version / self.config.half_life - self._base)
        if self._first_step is None:
            self._first_step = step
        elif self.config.calibrate:
            order = np.argsort(u, kind="stable")
            place = np.searchsorted(self._u, u[order], side="right")
            self._u, self._v, self._w = (np.insert(old, place, new[order]) for old, new in ((self._u, u), (self._v, v), (self._w, w)))
        if step >= 1:
            said = ~np.isnan(cross)
            d, r, w = (cross - environment)[said], (v - environment)[said], w[said]
            self._cross += [w @ (d * r), w @ (d * d), w.sum()]
            self._num_cross += len(d)

    def cross_weight(self) -> float:
        """k_c; 1 for the paper, which believes the cross relation as far as its mass goes."""
        if self.config.estimator == "paper":
            return 1.0
        agreement, spread, total = self._cross
        if self._num_cross == 0 or spread <= _NO_SPREAD**2 * total:
            return 0.0
        return float(np.clip(agreement / spread, 0, 1)) * min(1.0, self._num_cross / FULL_PAIRS)

    def calibration(self) -> Calibration:
        """The isotonic map, blended in by the number of pairs."""
        start, full = self.config.calibration_start, self.config.calibration_full
        blend = float(np.clip((len(self._u) - start) / (full - start), 0, 1))
        if blend == 0:
            return Calibration(np.empty(0), np.empty(0), 0.0, self.max_variance)
        knots, values = native.isotonic(self._u, self._v, self._w, SAME * self.max_variance)
        return Calibration(knots, values, blend if len(knots) >= MIN_DISTINCT else 0.0, self.max_variance)

    def _rebase(self, step: int) -> None:
        exponent = step / self.config.half_life - self._base
        if exponent > _REBASE:
            self._w *= 2.0**-_REBASE
            self._cross *= 2.0**-_REBASE
            self._base += _REBASE
