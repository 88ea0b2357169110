"""Past predictions and what came of them, kept sorted: calibration and the weight of the cross relation without a pass over
the history. The same functions as ``envsched.predict.calibration`` and ``envsched.predict.skill``, which the tests compare.

Letters: V pairs, u predicted and v realised variance, w weight 2^(p / h - base) of a pair, t step now, h half-life.
"""

import numpy as np

from envsched.config import SchedulerConfig
from envsched.predict.calibration import MIN_DISTINCT, SAME, Calibration
from envsched.predict.skill import FULL_PAIRS
from kernels import native, state


class Pairs:
    """Pairs of all visits with evidence, in the order of u; ``native`` is how csrc/pairs.h sees them."""

    def __init__(self, config: SchedulerConfig, max_variance: float) -> None:
        self.native = state.Pairs(
            first_step=-1,
            half_life=config.half_life,
            start=config.calibration_start,
            full=config.calibration_full,
            full_cross=FULL_PAIRS,
            tolerance=SAME * max_variance,
            max_variance=max_variance,
            calibrates=config.calibrate,
            min_distinct=MIN_DISTINCT,
            weighs_cross=config.estimator != "paper" and config.prior == "pooled",
        )
        self._columns = np.empty((3, 0))

    def reserve(self, more: int) -> None:
        """Make room for ``more`` pairs."""
        count, room = self.native.count, self._columns.shape[1]
        if count + more > room:
            grown = np.empty((3, max(2 * room, count + more, 1024)))
            grown[:, :count] = self._columns[:, :count]
            self._columns = grown
            self.native.u, self.native.v, self.native.w = map(native.address, grown)

    def cross_weight(self) -> float:
        """k_c; 1 where the prior does not weigh the cross relation."""
        return state.cross_weight(self.native)

    def calibration(self) -> Calibration:
        """The isotonic map, blended in by the number of pairs."""
        p = self.native
        blend = float(np.clip((p.count - p.start) / (p.full - p.start), 0, 1))
        if blend == 0:
            return Calibration(np.empty(0), np.empty(0), 0.0, p.max_variance)
        knots, values = native.isotonic(*self._columns[:, : p.count], p.tolerance)
        return Calibration(knots, values, blend if len(knots) >= MIN_DISTINCT else 0.0, p.max_variance)
