"""A large pool that follows a history: what ``EnvScheduler`` puts in the place of timeline, graph and composition.

Letters: B batch.
"""

import numpy as np

from envsched.config import SchedulerConfig
from envsched.features import Features
from envsched.files import digest
from envsched.history import History
from envsched.maintained.modes import BUILDERS
from envsched.maintained.pool import LargePool, Selection
from envsched.maintained.rules import Closed
from envsched.pool import Pool
from envsched.types import Batch, Pick
from kernels import state

_TERMS = ("variance", "prior", "environment", "within_mass", "within", "cross_mass", "cross", "guard")


class Follower:
    """Batches of a run whose graph holds all tasks.

    A pure function of (features, config, seed, history before the step): visits are taken in by step, and a record that
    arrives late, or a question about an earlier step, starts again.

    Args:
        pool: N tasks.
        features: of this pool.
        config: as for any scheduler.
        mode: a name of ``BUILDERS``.
    """

    def __init__(self, pool: Pool, features: Features, config: SchedulerConfig, mode: str) -> None:
        self.pool, self.features, self.config = pool, features, config
        self._carriers = BUILDERS[mode](features, pool.offsets, config)
        self.digest = digest("envsched sums 1", mode, *(f"{name} {carrier.digest}" for name, carrier in self._carriers.items()))
        self.header = {"mode": mode, "exact": False} | {name: dict(carrier.about) for name, carrier in self._carriers.items()}
        self._large: LargePool | None = None

    def choose(self, step: int, history: History, seed: int, closed: Closed) -> Batch:
        """The batch of ``step`` from what the history holds before it, without the tasks that are ``closed``."""
        large = self._follow(step, history, seed)
        return self._batch(step, large, large.select(step, closed))

    def predict(self, step: int, history: History, seed: int) -> np.ndarray:
        """Predicted variance [N] of every task at ``step``."""
        return self._follow(step, history, seed).predict(step)

    def report(self, step: int, history: History, seed: int) -> dict[str, float]:
        """Blend of the calibration and weight of the cross relation, as the timeline reports them."""
        pairs = self._follow(step, history, seed).pairs
        return {"calibration/blend": pairs.calibration().blend, "calibration/cross_weight": pairs.cross_weight()}

    def _follow(self, step: int, history: History, seed: int) -> LargePool:
        known = self._large is not None and seed == self._seed and step >= self._frontier
        if not known or history.digest_before(self._frontier) != self._replayed:
            self._large, self._frontier, self._seed = (
                LargePool(self.features, self.pool.offsets, self._carriers, self.config, seed),
                0,
                seed,
            )
        steps = history.visits.before(step).step
        for past in np.unique(steps[steps >= self._frontier]):
            visits = history.visits.at(int(past))
            self._large.take(int(past), visits.row, visits.policy_version, visits.num_valid, visits.variance)
        self._frontier, self._replayed = step, history.digest_before(step)
        return self._large

    def _batch(self, step: int, large: LargePool, selection: Selection) -> Batch:
        rows, calibration = selection.rows, large.pairs.calibration()
        terms = state.evaluate(large.evidence.state, rows, self.pool.environment_of[rows])
        score, discount = calibration(terms[:, 0]) / calibration.max_variance, large.discount(rows)
        own_mass, own = large.evidence.own(rows)
        picks = []
        for i, (row, lane) in enumerate(zip(rows.tolist(), selection.lanes, strict=True)):
            task = self.pool.tasks[row]
            named = dict(zip(_TERMS, terms[i].tolist(), strict=True))
            named |= {
                "own": float(own[i]),
                "own_mass": float(own_mass[i]),
                "discount": float(discount[i]),
                "penalty": float(selection.penalty[i]),
            }
            picks.append(Pick(task.key, task.environment, lane, float(score[i]), named, selection.bound_by[i]))
        return Batch(step, tuple(picks), selection.relaxed, max(0.0, selection.gap))
