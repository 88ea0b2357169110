"""A whole step at the size of the batch: ingest, scatter, one pass over the sums, a shortlist, the batch.

Letters: N tasks, M environments, B batch, G rollouts, S visited tasks, u predicted variance, t step now.
"""

import ctypes
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from envsched import ops
from envsched.config import SchedulerConfig
from envsched.errors import RecordError
from envsched.features import Features
from envsched.graph.similarity import pair_products, products
from envsched.maintained.carriers import Carriers
from envsched.maintained.evidence import Evidence
from envsched.maintained.pairs import Pairs
from envsched.maintained.rules import Closed, Rules
from envsched.select import Candidates, Draws, Quotas, Recent, compose, let_in, mix_of, names_of_bits
from envsched.types import Lane, Relaxation
from kernels import state

NO_VISITS = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))
"""What a rank takes in that made none."""
_CAPACITY = 1 << 16  # most candidates looked at
_EXHAUSTIVE = 1 << 13  # so many are looked at before a tie is left open
_PARALLEL = 1 << 20  # tasks below which a pass is over before a second thread has started


@dataclass(frozen=True, slots=True)
class Selection:
    """B picks in the order they were made.

    ``certified``: no task outside the shortlist could have been picked instead. Where all candidates tie (the first steps)
    that can't be shown; ``gap`` then bounds what a pick may have lost, at most the similarity penalty.
    """

    rows: np.ndarray  # int64 [B]
    lanes: tuple[Lane, ...]
    penalty: np.ndarray  # float64 [B], what likeness to the batch cost
    bound_by: tuple[tuple[str, ...], ...]  # [B], quotas that shut out tasks that ranked before
    certified: bool
    gap: float
    relaxed: tuple[Relaxation, ...] = ()


class Shard(Protocol):
    """Ranks that share a pool; ``envsched.maintained.ranks`` has them."""

    environments: tuple[int, int]  # first and last (exclusive) of those that this rank keeps
    exchange: Any  # what native steps call

    def gather(self, values: np.ndarray) -> np.ndarray:
        """All ranks' values, in the order of ranks."""
        ...

    def refuse(self, outcome: int) -> None:
        """Raise what an outcome below 0 means."""
        ...


class LargePool:
    """Evidence and selection of a pool whose size should not be felt.

    Args:
        features: N rows; the penalty's similarities come from here.
        offsets: rows of each environment, int64 [M + 1].
        carriers: of each relation; what tells one graph mode from another.
        config: as for any scheduler.
        seed: of the run.
        shard: the ranks that share the pool, whose part these features and carriers are (``shard_pool``); none: all of it.
    """

    def __init__(
        self,
        features: Features,
        offsets: np.ndarray,
        carriers: Carriers,
        config: SchedulerConfig,
        seed: int = 0,
        shard: Shard | None = None,
    ) -> None:
        config = config.settled(sums=True)
        self.features = features
        self.config = config
        self.seed = seed
        self.shard = shard
        self.evidence = Evidence(carriers, offsets, config, shard.environments if shard else None)
        if shard:
            self.evidence.state.exchange = ctypes.cast(shard.exchange, ctypes.c_void_p)
        self.pairs = Pairs(config, self.evidence.state.max_variance)
        self._advanced = -1
        self._last_observed = -1
        self.evidence.state.threads = ops.num_threads() if len(self.evidence.slot_of) >= _PARALLEL else 1
        self._mix = mix_of(config, int(offsets[-1]))
        self.rules = Rules(features, self.evidence.offsets, config, self._mix, capacity=_CAPACITY, exhaustive=_EXHAUSTIVE, seed=seed)
        num_coverage = self.rules.num_coverage
        self._lanes = (Lane.COVERAGE,) * num_coverage + (Lane.EXPLOITATION,) * (config.batch_size - num_coverage)

    def observe(self, step: int, rows: np.ndarray, rewards: np.ndarray, policy_version: int | None = None) -> None:
        """Take in one step's rollouts.

        Args:
            step: later than every step observed before, and no earlier than the last one selected for.
            rows: distinct, int64 [B].
            rewards: float [B, G], NaN where a rollout is missing.

        Raises:
            RecordError: rows or rewards are none that this pool can have; nothing was taken in.
        """
        rows, rewards = np.asarray(rows), np.asarray(rewards, dtype=np.float64)
        self._refuse(rows, rewards)
        num_valid, mean, variance = group_moments(rewards, self.config.ddof)
        version = np.full(len(rows), step if policy_version is None else policy_version)
        self.take(step, rows, version, num_valid, mean, variance)

    def _refuse(self, rows: np.ndarray, rewards: np.ndarray) -> None:
        if rewards.ndim != 2 or rows.shape != rewards.shape[:1]:
            raise RecordError(
                f"rows {rows.shape} and rewards {rewards.shape} don't fit; give one row [B] and G rewards [B, G] for each task"
            )
        if not np.issubdtype(rows.dtype, np.integer):
            raise RecordError(f"rows are {rows.dtype}; give whole numbers, places of tasks in the pool")
        num_tasks = int(self.evidence.offsets[-1])
        if len(rows) and not (rows.min() >= 0 and rows.max() < num_tasks):
            raise RecordError(f"rows run from {rows.min()} to {rows.max()}; this pool's are 0 to {num_tasks - 1}")
        if len(np.unique(rows)) < len(rows):
            raise RecordError("a row comes twice in one step; give each task's rollouts together")
        low, high = self.config.reward_low, self.config.reward_high
        outside = rewards[~(np.isnan(rewards) | ((rewards >= low) & (rewards <= high)))]
        if outside.size:
            raise RecordError(f"reward {outside[0]:g} is outside {low:g} to {high:g}; set reward_low and reward_high to the pool's range")

    def take(self, step: int, rows: np.ndarray, version: np.ndarray, num_valid: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> None:
        """Take in the group statistics [n] of one step's visits; variance NaN where a visit shows none."""
        assert step > self._last_observed, "steps come in order; replay the history for a late record"
        self._advance(step)
        more = int(self.shard.gather(np.array([len(rows)])).sum()) if self.shard else len(rows)
        self.evidence.reserve(more)
        self.pairs.reserve(more)
        level = (mean - self.config.reward_low) / self.config.reward_range
        self._heed(state.observe(self.evidence.state, self.pairs.native, step, rows, version, num_valid, level, variance))
        self._last_observed = step
        self._advanced = -1

    def select(self, step: int, closed: Closed = Closed()) -> Selection:
        """Choose the batch of ``step`` from what was observed before it, without the tasks that are closed."""
        self._advance(step)
        made = self.rules.select(self.evidence.state, self.pairs.native, closed)
        self._heed(made.outcome)
        if made.outcome == state.GENERAL:
            return self._general(step, closed)
        bound_by = tuple(map(names_of_bits, made.bound_by.tolist()))
        relaxed = let_in(made.rows[self.rules.num_coverage :], closed.barred)
        return Selection(made.rows, self._lanes, made.penalty, bound_by, made.gap <= 0, made.gap, relaxed)

    def predict(self, step: int) -> np.ndarray:
        """u of every task at ``step``, float64 [N]."""
        self._advance(step)
        return self._u()

    def _u(self) -> np.ndarray:
        u = state.predict(self.evidence.state, len(self.evidence.slot_of), ops.num_threads())
        return self.shard.gather(u) if self.shard else u

    def evaluate(self, rows: np.ndarray) -> np.ndarray:
        """u, g, environment, within mass, within, cross mass, cross, guard and headroom of rows [n]: float64 [n, 9]."""
        e = np.searchsorted(self.evidence.offsets, rows, side="right") - 1
        if not self.shard:
            return state.evaluate(self.evidence.state, rows, e)
        first, last = self.shard.environments
        mine = (e >= first) & (e < last)
        held, terms = self.shard.gather(rows[mine]), self.shard.gather(state.evaluate(self.evidence.state, rows[mine], e[mine]))
        order = np.argsort(held)
        return terms[order[np.searchsorted(held, rows, sorter=order)]]

    def _heed(self, outcome: int) -> None:
        if outcome < 0:
            assert self.shard is not None, f"outcome {outcome}"
            self.shard.refuse(outcome)

    def _advance(self, step: int) -> None:
        if step != self._advanced:
            self.evidence.advance(step, self.pairs)
            self._advanced = step

    def discount(self, rows: np.ndarray) -> np.ndarray:
        """c0 / (c0 + exposures) * headroom of rows [n], float64 [n]."""
        seen = self.evidence.exposures(rows) if self.rules.native.discount_decays else self.evidence.times_selected(rows)
        return self.config.exposure_scale / (self.config.exposure_scale + seen) * self.evidence.headroom(rows)

    def _recent(self, step: int) -> Recent:
        """Picks of each environment in the window and in the part of it that the next step sees; streaks of tasks."""
        first, columns = step - self.config.window_steps + 1, self.evidence.slots
        slot, past = self.evidence.recent(min(first, step - 1))

        def counted(start: int) -> np.ndarray:
            return np.bincount(columns["environment"][slot[past >= start]], minlength=len(self.evidence.offsets) - 1)

        streak = np.zeros(self.evidence.state.num_tasks, dtype=np.int64)
        running = slot[past == step - 1]
        streak[columns["row"][running]] = columns["streak"][running]
        return Recent(counted(first), counted(first + 1), streak, self.config.window_steps)

    def _general(self, step: int, closed: Closed = Closed()) -> Selection:
        """The first batch, and quotas that must be relaxed: the composition of ``envsched.select`` over all tasks."""
        c = self.config
        candidates = self.candidates(step, closed)
        quotas = Quotas(c.max_consecutive, c.max_per_environment_window, c.max_per_environment)
        made = compose(candidates, quotas, self._mix, Draws(self.seed, step))
        rows = np.array([choice.row for choice in made.choices], dtype=np.int64)
        penalty = np.array([choice.penalty for choice in made.choices])
        lanes, bound_by = (tuple(getattr(choice, name) for choice in made.choices) for name in ("lane", "bound_by"))
        return Selection(rows, lanes, penalty, bound_by, True, 0.0, made.relaxed)

    def candidates(self, step: int, closed: Closed = Closed()) -> Candidates:
        """What ``envsched.select.compose`` asks about every task, in dense arrays."""
        u = self._u()
        calibration = self.pairs.calibration()
        rows, recent = np.arange(len(u)), self._recent(step)
        leased, since = closed.leased, closed.since
        first, e = step - self.config.window_steps + 1, np.searchsorted(self.evidence.offsets, leased, side="right") - 1
        np.add.at(recent.window, e[since >= first], 1)
        np.add.at(recent.carried, e[since > first], 1)
        return Candidates(
            offsets=self.evidence.offsets,
            score=calibration(u) / calibration.max_variance,
            variance=u,
            discount=self.discount(rows),
            headroom=self.evidence.headroom(rows),
            exposures=self.evidence.exposures(rows),
            seen=self.evidence.times_selected(rows) > 0,
            masked=closed.shut(len(u)),
            recent=recent,
            similarity=self.similarity,
            barred=closed.barred,
        )

    def similarity(self, rows_a: np.ndarray, rows_b: np.ndarray) -> np.ndarray:
        """float64 [A, B] in [0, 1]: within for a pair of one environment, else cross; the exact one of ``ObservedGraph``."""
        rows_a, rows_b = np.asarray(rows_a, dtype=np.int64), np.asarray(rows_b, dtype=np.int64)
        e_a, e_b = (np.searchsorted(self.evidence.offsets, rows, side="right") for rows in (rows_a, rows_b))
        within, cross, rows_a, rows_b = self._vectors_of(rows_a, rows_b)
        out = products(cross[rows_a], cross[rows_b])
        a, b = np.nonzero(e_a[:, None] == e_b)
        out[a, b] = pair_products(within, rows_a[a], rows_b[b])
        return out

    def _vectors_of(self, rows_a: np.ndarray, rows_b: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Features that hold both sets of rows, and where each row lies in them."""
        if not self.shard:
            return self.features.within, self.features.cross, rows_a, rows_b
        first, last = self.evidence.offsets[list(self.shard.environments)]
        rows, place = np.unique(np.concatenate([rows_a, rows_b]), return_inverse=True)
        mine = rows[(rows >= first) & (rows < last)] - first
        within, cross = self.shard.gather(self.features.within[mine]), self.shard.gather(self.features.cross[mine])
        return within, cross, place[: len(rows_a)], place[len(rows_a) :]


def group_moments(rewards: np.ndarray, ddof: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Valid rollouts int64 [B], mean float64 [B] (0 without a valid one) and variance float64 [B] of rewards [B, G], METHOD section 2:
    two-pass, exactly 0 when all rewards lie within 1e-9, NaN with fewer than 2 valid ones."""
    valid = ~np.isnan(rewards)
    num_valid = valid.sum(axis=1)
    kept = np.where(valid, rewards, 0)
    mean = kept.sum(axis=1) / np.maximum(num_valid, 1)
    squares = (np.where(valid, rewards - mean[:, None], 0) ** 2).sum(axis=1)
    spread = np.where(valid, rewards, -np.inf).max(axis=1) - np.where(valid, rewards, np.inf).min(axis=1)
    variance = np.where(spread <= 1e-9, 0.0, squares / np.maximum(num_valid - ddof, 1))
    return num_valid, mean, np.where(num_valid >= 2, variance, np.nan)
