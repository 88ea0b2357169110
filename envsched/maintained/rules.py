"""The settings of a batch as csrc/select.cpp sees them, for sums and for lists alike.

Letters: N tasks, M environments, B batch.
"""

from dataclasses import dataclass, field

import numpy as np

from envsched.config import SchedulerConfig
from envsched.features import Features
from envsched.select import Mix
from kernels import native, state

_SHORTLIST = 512  # wanted candidates; more while picks can't be certified
NO_ROWS = np.empty(0, dtype=np.int64)
_FLAT = 0.98  # the calibration is flat where this share of u has the same score


@dataclass(frozen=True, slots=True, eq=False)
class Closed:
    """Tasks that a batch may not have, or only when no other is left."""

    leased: np.ndarray = field(default_factory=lambda: NO_ROWS)  # rows [n] whose records are still out, int64
    since: np.ndarray = field(default_factory=lambda: NO_ROWS)  # the steps [n] at which they were selected
    masked: np.ndarray | None = None  # shut out by a filter, bool [N]
    barred: np.ndarray | None = None  # kept from the exploitation lane while any other is open, bool [N]

    def shut(self, num_tasks: int) -> np.ndarray:
        """Masked or leased, bool [N]."""
        shut = np.zeros(num_tasks, dtype=bool) if self.masked is None else self.masked.copy()
        shut[self.leased] = True
        return shut


class Rules:
    """What stays the same from batch to batch.

    Args:
        features: of the rows that this process holds; kept, as native code reads them where they lie.
        offsets: rows of each environment, int64 [M + 1].
        mix: of the batch.
        capacity: most candidates looked at.
        exhaustive: so many are looked at before a tie is left open.
    """

    def __init__(
        self, features: Features, offsets: np.ndarray, config: SchedulerConfig, mix: Mix, *, capacity: int, exhaustive: int, seed: int = 0
    ) -> None:
        c = config
        self.num_coverage = round(mix.coverage_share * c.batch_size)
        largest = c.max_per_environment + c.max_per_environment_window + 1  # beyond, quotas decide alone
        self._size_count = np.bincount(np.minimum(np.diff(offsets), largest))
        self._vectors = tuple(native.contiguous(vectors, np.float32) for vectors in (features.within, features.cross))
        self.native = state.Rules(
            max_consecutive=c.max_consecutive,
            max_per_environment_window=c.max_per_environment_window,
            max_per_environment=c.max_per_environment,
            window_steps=c.window_steps,
            batch_size=c.batch_size,
            num_coverage=self.num_coverage,
            penalty=mix.similarity_penalty,
            explore=mix.coverage_explore,
            exposure_scale=c.exposure_scale,
            discount_decays=c.estimator == "envsched",  # METHOD 12.4
            seed=seed,
            size_count=native.address(self._size_count),
            num_sizes=len(self._size_count),
            within=native.address(self._vectors[0]),
            cross=native.address(self._vectors[1]),
            within_features=self._vectors[0].shape[1],
            cross_features=self._vectors[1].shape[1],
            shortlist=_SHORTLIST,
            capacity=capacity,
            exhaustive=exhaustive,
            flat=_FLAT,
        )

    def select(self, evidence: state.State, pairs: state.Pairs, closed: Closed) -> state.Made:
        """One native batch without the tasks that are closed."""
        shut = closed.shut(evidence.num_tasks) if len(closed.leased) or _any(closed.masked) else None
        barred = closed.barred if _any(closed.barred) else None
        return state.select(evidence, pairs, self.native, shut, barred, np.stack([closed.leased, closed.since]))


def _any(rows: np.ndarray | None) -> bool:
    return rows is not None and bool(rows.any())
