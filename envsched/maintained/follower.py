"""A large pool that follows a history: what ``EnvScheduler`` puts in the place of timeline, graph and composition.

Letters: B batch.
"""

from functools import partial

import numpy as np

from envsched.config import SchedulerConfig
from envsched.features import Features
from envsched.files import digest
from envsched.history import History
from envsched.maintained.led import Leader
from envsched.maintained.lists import StaticLists
from envsched.maintained.modes import BUILDERS, static_carriers
from envsched.maintained.pool import LargePool, Selection
from envsched.maintained.rules import Closed
from envsched.pool import Pool
from envsched.types import Batch, Pick

_TERMS = ("variance", "prior", "environment", "within_mass", "within", "cross_mass", "cross", "guard", "headroom")


class Follower:
    """Batches of a run whose graph holds all tasks.

    A pure function of (features, config, seed, history before the step): visits are taken in by step, and a record that
    arrives late, or a question about an earlier step, starts again.

    Args:
        pool: N tasks.
        features: of this pool.
        config: as for any scheduler.
        mode: a name of ``BUILDERS``.
        leader: of the ranks that share the pool, whose part it keeps here; none: all of it is here.
        lists: of mode ``static``; built here where they are absent.
    """

    def __init__(
        self,
        pool: Pool,
        features: Features,
        config: SchedulerConfig,
        mode: str,
        leader: Leader | None = None,
        lists: StaticLists | None = None,
    ) -> None:
        self.pool, self.config = pool, config
        build = partial(static_carriers, lists=lists) if lists else BUILDERS[mode]
        self._carriers = leader.carriers if leader else build(features, pool.offsets, config)
        self._fresh = leader.pool if leader else partial(LargePool, features, pool.offsets, self._carriers, config)
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
            self._large, self._frontier, self._seed = self._fresh(seed), 0, seed
        steps = history.visits.before(step).step
        for past in np.unique(steps[steps >= self._frontier]):
            visits = history.visits.at(int(past))
            self._large.take(int(past), visits.row, visits.policy_version, visits.num_valid, visits.mean, visits.variance)
        self._frontier, self._replayed = step, history.digest_before(step)
        return self._large

    def _batch(self, step: int, large: LargePool, selection: Selection) -> Batch:
        rows, calibration = selection.rows, large.pairs.calibration()
        terms = large.evaluate(rows)
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
