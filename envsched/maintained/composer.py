"""Batches over predictions of all tasks, composed natively: what ``envsched.select.compose`` gives for the same inputs.

Letters: N tasks, M environments, S visited tasks, V visits, u predicted variance.
"""

import numpy as np

from envsched.config import SchedulerConfig
from envsched.features import Features
from envsched.history import Visits
from envsched.maintained.rules import Closed, Rules
from envsched.predict import Calibration
from envsched.select import Choice, Composition, let_in, mix_of, names_of_bits
from envsched.types import Lane
from kernels import native, state

_ALL = 1 << 62  # no tie is left open


class Composer:
    """Lays the history out as csrc/state.h wants it, and asks for the batch.

    Args:
        features: of the pool.
        offsets: rows of each environment, int64 [M + 1].
        config: as for any scheduler.
    """

    def __init__(self, features: Features, offsets: np.ndarray, config: SchedulerConfig) -> None:
        self.offsets = native.contiguous(offsets, np.int64)
        self.config = config
        self._environment_of = np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))
        self._seats = np.full(len(offsets) - 1, -1, np.int32)
        num_tasks = int(offsets[-1])
        self._rules = Rules(features, offsets, config, mix_of(config, num_tasks), capacity=num_tasks, exhaustive=_ALL)
        self._threshold = 0.0

    def compose(
        self,
        step: int,
        seed: int,
        visits: Visits,
        selected: np.ndarray,
        exposures: np.ndarray,
        u: np.ndarray,
        headroom: np.ndarray,
        calibration: Calibration,
        closed: Closed,
    ) -> Composition | None:
        """The batch of ``step``; none where it is the first, or a quota must be relaxed: then all tasks must be composed.

        Args:
            visits: before the step.
            selected: steps in which each task was selected, int64 [N].
            exposures: the same, decayed, float64 [N].
            u: float64 [N].
            headroom: what a high mean reward leaves of each task's rank, float64 [N].
            calibration: from u to score.
        """
        columns = self._columns(step, visits, selected, exposures, headroom)
        laid_out = state.State(
            num_tasks=len(u),
            num_environments=len(self.offsets) - 1,
            last_environment=len(self.offsets) - 1,
            num_slots=len(columns["row"]),
            num_visits=len(columns["visit_slot"]),
            offsets=native.address(self.offsets),
            seat_of=native.address(self._seats),
            step=step,
            threshold=self._threshold,
            max_variance=calibration.max_variance,
            threads=1,
            predicted=native.address(u),
        )
        for name, column in columns.items():
            setattr(laid_out, name, native.address(column))
        fitted = state.Pairs(
            knots=native.address(calibration.knots),
            values=native.address(calibration.values),
            num_knots=len(calibration.knots),
            blend=calibration.blend,
            max_variance=calibration.max_variance,
        )
        self._rules.native.seed = seed
        made = self._rules.select(laid_out, fitted, closed)
        self._threshold = laid_out.threshold
        return self._composition(made, selected, exposures, headroom, closed) if made.outcome == 0 else None

    def _columns(
        self, step: int, visits: Visits, selected: np.ndarray, exposures: np.ndarray, headroom: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Columns of visited tasks by ascending row, and the visits that windows and streaks ask for."""
        rows = np.flatnonzero(selected)
        slot_of = np.full(len(selected), -1, np.int32)
        slot_of[rows] = np.arange(len(rows), dtype=np.int32)
        first = int(np.searchsorted(visits.step, min(step - self.config.window_steps + 1, step - 1)))
        streak = np.zeros(len(rows), np.int32)
        running = visits.at(step - 1).row
        for past in range(step - 1, -1, -1):
            running = np.intersect1d(running, visits.at(past).row, assume_unique=True)
            if not len(running):
                break
            streak[slot_of[running]] += 1
        environment = self._environment_of[rows]
        return {
            "slot_of": slot_of,
            "order": np.arange(len(rows), dtype=np.int32),
            "row": rows.astype(np.int32),
            "environment": environment,
            "streak": streak,
            "visits": selected[rows].astype(np.int32),
            "exposure": exposures[rows],
            "headroom": headroom[rows],
            "environment_exposure": np.bincount(environment, exposures[rows], len(self.offsets) - 1).astype(float, copy=False),
            "visit_slot": slot_of[visits.row[first:]],
            "visit_step": visits.step[first:].astype(np.int32),
        }

    def _composition(
        self, made: state.Made, selected: np.ndarray, exposures: np.ndarray, headroom: np.ndarray, closed: Closed
    ) -> Composition:
        scale, first = self.config.exposure_scale, self._rules.num_coverage
        seen = exposures[made.rows] if self._rules.native.discount_decays else selected[made.rows]
        discount = scale / (scale + seen) * headroom[made.rows]
        choices = [
            Choice(
                row,
                Lane.COVERAGE if i < first else Lane.EXPLOITATION,
                1.0 if i < first else float(discount[i]),
                float(made.penalty[i]),
                names_of_bits(int(made.bound_by[i])),
            )
            for i, row in enumerate(made.rows.tolist())
        ]
        return Composition(choices, let_in(made.rows[first:], closed.barred))
