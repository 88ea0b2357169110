"""A whole step at the size of the batch: ingest, scatter, one pass over the sums, a shortlist, the batch.

Letters: N tasks, M environments, B batch, G rollouts, S visited tasks, u predicted variance, t step now.
"""

from collections import deque
from dataclasses import dataclass

import numpy as np

from envsched import ops
from envsched.config import SchedulerConfig
from envsched.features import Features
from envsched.graph.similarity import pair_products, products
from envsched.maintained.carriers import Carriers
from envsched.maintained.evidence import Evidence
from envsched.maintained.pairs import Pairs
from envsched.predict.calibration import Calibration
from envsched.select import Candidates, Draws, Mix, Quotas, Recent, compose
from envsched.types import Lane, Relaxation
from kernels import native

_SHORTLIST = 512  # wanted candidates; doubled while picks can't be certified
_CAPACITY = 1 << 16  # most candidates looked at
_EXHAUSTIVE = 1 << 13  # a pool up to this size is looked at whole rather than leave a tie open
_PARALLEL = 1 << 20  # tasks below which a pass is over before a second thread has started
NO_ROWS = np.empty(0, dtype=np.int64)
_FLAT = 0.98  # the calibration is flat where this share of u has the same score


@dataclass(frozen=True, slots=True)
class Selection:
    """B picks in the order they were made.

    ``certified``: no task outside the shortlist could have been picked instead. Where all candidates tie (the first steps)
    that can't be shown; ``gap`` then bounds what a pick may have lost, at most the similarity penalty.
    """

    rows: np.ndarray  # int64 [B]
    lanes: tuple[Lane, ...]
    penalty: np.ndarray  # float64 [B], what likeness to the batch cost
    certified: bool
    gap: float
    relaxed: tuple[Relaxation, ...] = ()


class LargePool:
    """Evidence and selection of a pool whose size should not be felt.

    Args:
        features: N rows; the penalty's similarities come from here.
        offsets: rows of each environment, int64 [M + 1].
        carriers: of each relation; what tells one graph mode from another.
        config: as for any scheduler.
        seed: of the run.
    """

    def __init__(
        self,
        features: Features,
        offsets: np.ndarray,
        carriers: Carriers,
        config: SchedulerConfig,
        seed: int = 0,
    ) -> None:
        self.features = features
        self.config = config
        self.seed = seed
        self.evidence = Evidence(carriers, offsets, config)
        self.pairs = Pairs(config, self.evidence.state.max_variance)
        self._visited: deque[tuple[int, np.ndarray]] = deque()  # steps still in a window or a streak
        self._threshold = 0.0
        self._advanced = -1
        self._threads = ops.num_threads() if len(self.evidence.slot_of) >= _PARALLEL else 1
        self._scored = config.estimator == "envsched"  # METHOD 12.3 and 12.4; the paper's rule is least-observed and undecayed
        self._explore = config.coverage_explore if self._scored else 1.0

    def observe(self, step: int, rows: np.ndarray, rewards: np.ndarray, policy_version: int | None = None) -> None:
        """Take in one step's rollouts.

        Args:
            step: later than every step observed before, and no earlier than the last one selected for.
            rows: distinct, int64 [B].
            rewards: float [B, G], NaN where a rollout is missing.
        """
        num_valid, variance = group_variances(np.asarray(rewards, dtype=np.float64), self.config.ddof)
        version = np.full(len(rows), step if policy_version is None else policy_version)
        self.take(step, np.asarray(rows, dtype=np.int64), version, num_valid, variance)

    def take(self, step: int, rows: np.ndarray, version: np.ndarray, num_valid: np.ndarray, variance: np.ndarray) -> None:
        """Take in the group statistics [n] of one step's visits; variance NaN where a visit shows none."""
        assert not self._visited or step > self._visited[-1][0], "steps come in order; replay the history for a late record"
        order = np.argsort(rows)
        rows, version, num_valid, variance = rows[order], version[order], num_valid[order], variance[order]
        self._advance(step)
        self._note(step, rows, version, variance)
        self.evidence.visit(rows, step, version, num_valid, variance)
        self._visited.append((step, rows))
        self._advanced = -1

    def select(self, step: int, leased: np.ndarray = NO_ROWS, since: np.ndarray = NO_ROWS) -> Selection:
        """Choose the batch of ``step`` from what was observed before it.

        Args:
            leased: rows [n] not to be picked, since their records are still out; with any, all tasks are looked at.
            since: the steps [n] at which they were selected.
        """
        self._advance(step)
        if not self.evidence.num_slots or len(leased):
            return self._general(step, leased, since)
        window, carried, streak_row, streak = self._recent(step)
        c, num_environments = self.config, len(self.evidence.offsets) - 1
        quotas = np.array([c.max_consecutive, c.max_per_environment_window, c.max_per_environment, c.window_steps])
        words = np.random.Philox(key=np.array([self.seed, step], dtype=np.uint64))  # the stream of envsched.select.Draws
        keys = words.random_raw(num_environments)
        num_coverage = round(c.coverage_share * c.batch_size)
        explores = (words.random_raw(num_coverage) >> np.uint64(11)) * 2.0**-53 < self._explore if num_coverage else np.empty(0, bool)
        with native.Filling(
            self.evidence.state, quotas, window, carried, streak_row, streak, c.batch_size, self.features.within, self.features.cross
        ) as filling:
            if filling.capacity < c.batch_size:
                return self._general(step)
            covered = filling.cover(keys, min(num_environments, 2 * num_coverage), explores)
            if len(covered) < num_coverage:
                return self._general(step)
            exploited, penalty, certified, gap = self._exploit(filling, c.batch_size - num_coverage)
        lanes = (Lane.COVERAGE,) * num_coverage + (Lane.EXPLOITATION,) * len(exploited)
        return Selection(np.concatenate([covered, exploited]), lanes, np.concatenate([np.zeros(num_coverage), penalty]), certified, gap)

    def predict(self, step: int) -> np.ndarray:
        """u of every task at ``step``, float64 [N]."""
        self._advance(step)
        return native.predict(self.evidence.state, ops.num_threads())

    def _advance(self, step: int) -> None:
        if step != self._advanced:
            self.evidence.advance(step, self.pairs.cross_weight())
            self._advanced = step

    def _note(self, step: int, rows: np.ndarray, version: np.ndarray, variance: np.ndarray) -> None:
        """Keep what is predicted of ``rows`` now beside what came."""
        known = ~np.isnan(variance)
        rows, e = rows[known], np.searchsorted(self.evidence.offsets, rows[known], side="right") - 1
        u, _, environment, _, _, cross_mass, cross, _ = native.evaluate(self.evidence.state, rows, e).T
        self.pairs.add(step, version[known], u, variance[known], environment, np.where(cross_mass > 0, cross, np.nan))

    def _exploit(self, filling: native.Filling, wanted: int) -> tuple[np.ndarray, np.ndarray, bool, float]:
        """Greedy over a shortlist that grows until every pick beats all tasks outside it.

        Where the calibration is flat around the shortlist's end, more than can be looked at tie: growing would not lower
        what lies outside, and the rest of the lane is taken from the best u, with the gap reported.
        """
        calibration, size = self.pairs.calibration(), _SHORTLIST
        picks, penalties, gap = [np.empty(0, np.int64)], [np.empty(0)], 0.0
        while wanted:
            rows, u, ceiling, last = self._shortlist(size)
            bound = self._score(calibration, u) * self.discount(rows)
            outside, below = self._score(calibration, np.array([ceiling, _FLAT * ceiling])) if ceiling > 0 else (-1.0, -2.0)
            tied = outside == below and len(self.evidence.slot_of) > _EXHAUSTIVE
            for forced in [last] if last or not tied else [False, True]:
                chosen, closeness, lost, _ = filling.exploit(rows, bound, u, self.config.similarity_penalty, outside, wanted, forced)
                picks.append(chosen)
                penalties.append(self.config.similarity_penalty * closeness)
                wanted, gap = wanted - len(chosen), max(gap, lost)
            size *= 4
        return np.concatenate(picks), np.concatenate(penalties), gap <= 0, gap

    @staticmethod
    def _score(calibration: Calibration, u: np.ndarray) -> np.ndarray:
        return calibration(u) / calibration.max_variance

    def _shortlist(self, size: int) -> tuple[np.ndarray, np.ndarray, float, bool]:
        """At least ``size`` candidates (rows, u), the u below which all others lie, and whether there can be no more.

        The threshold of the step before nearly always serves: scores drift slowly, and one pass is enough.
        """
        state, threads = self.evidence.state, self._threads
        low, high = -1.0, state.max_variance + 1  # too many candidates at low, too few at high
        while high - low > 1e-9 * state.max_variance:
            threshold = self._threshold
            rows, u, found = native.score(state, threshold, _CAPACITY, threads)
            if found > _CAPACITY:
                low = threshold
                guess = float(np.partition(u, -2 * size)[-2 * size])
            elif found < size and threshold > 0:
                high = threshold
                guess = 0.9 * threshold if low < 0 else (low + high) / 2
            else:
                if found > 2 * size:
                    self._threshold = float(np.partition(u, -3 * size // 2)[-3 * size // 2])
                return rows, u, threshold, threshold <= 0 or size >= _CAPACITY
            self._threshold = guess if low < guess < high and guess > 1e-12 else max(0.0, (low + high) / 2)
        return self._tied(low, high, size)

    def _tied(self, low: float, high: float, size: int) -> tuple[np.ndarray, np.ndarray, float, bool]:
        """More tasks than can be looked at share one u: all above it, and of the tied one of each environment."""
        above, u_above, _ = native.score(self.evidence.state, high, _CAPACITY, self._threads)
        starts, sizes = self.evidence.offsets[:-1], np.diff(self.evidence.offsets)
        draw = np.random.Philox(key=np.array([self.seed, self.evidence.step], dtype=np.uint64)).jumped().random_raw(len(sizes))
        full = np.flatnonzero(sizes)
        rows = starts[full] + (draw[full] % sizes[full].astype(np.uint64)).astype(np.int64)
        u = native.evaluate(self.evidence.state, rows, full)[:, 0]
        tied = (u >= low) & (u < high)
        order = np.argsort(draw[full][tied])[: max(size, _SHORTLIST)]
        return np.concatenate([above, rows[tied][order]]), np.concatenate([u_above, u[tied][order]]), high, True

    def discount(self, rows: np.ndarray) -> np.ndarray:
        """c0 / (c0 + exposures) of rows [n], float64 [n]."""
        seen = self.evidence.exposures(rows) if self._scored else self.evidence.visits(rows)
        return self.config.exposure_scale / (self.config.exposure_scale + seen)

    def _recent(self, step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Picks of each environment in the window and in the part of it that the next step sees; streaks of tasks."""
        first = step - self.config.window_steps + 1
        while self._visited and self._visited[0][0] < min(first, step - 1):
            self._visited.popleft()
        window, carried = np.zeros((2, len(self.evidence.offsets) - 1), np.int32)
        running = np.empty(0, np.int64)
        for past, rows in self._visited:
            e = self.evidence.slots["environment"][self.evidence.slot_of[rows]]
            if first <= past:
                np.add.at(window, e, 1)
            if first < past:
                np.add.at(carried, e, 1)
            if past == step - 1:
                running = rows
        return window, carried, running, self.evidence.slots["streak"][self.evidence.slot_of[running]]

    def _general(self, step: int, leased: np.ndarray = NO_ROWS, since: np.ndarray = NO_ROWS) -> Selection:
        """The first batch, and quotas that must be relaxed: the composition of ``envsched.select`` over all tasks."""
        c = self.config
        candidates, mix = self.candidates(step, leased, since), Mix(c.batch_size, c.coverage_share, self._explore, c.similarity_penalty)
        quotas = Quotas(c.max_consecutive, c.max_per_environment_window, c.max_per_environment)
        made = compose(candidates, quotas, mix, Draws(self.seed, step))
        rows = np.array([choice.row for choice in made.choices], dtype=np.int64)
        penalty = np.array([choice.penalty for choice in made.choices])
        return Selection(rows, tuple(choice.lane for choice in made.choices), penalty, True, 0.0, made.relaxed)

    def candidates(self, step: int, leased: np.ndarray = NO_ROWS, since: np.ndarray = NO_ROWS) -> Candidates:
        """What ``envsched.select.compose`` asks about every task, in dense arrays."""
        u = self.predict(step)
        calibration = self.pairs.calibration()
        rows = np.arange(len(u))
        window, carried, streak_row, streak = self._recent(step)
        streaks = np.zeros(len(u), dtype=np.int64)
        streaks[streak_row] = streak
        masked = np.zeros(len(u), dtype=bool)
        masked[leased] = True
        first, e = step - self.config.window_steps + 1, np.searchsorted(self.evidence.offsets, leased, side="right") - 1
        np.add.at(window, e[since >= first], 1)
        np.add.at(carried, e[since > first], 1)
        return Candidates(
            offsets=self.evidence.offsets,
            score=calibration(u) / calibration.max_variance,
            variance=u,
            discount=self.discount(rows),
            exposures=self.evidence.exposures(rows),
            seen=self.evidence.slot_of >= 0,
            masked=masked,
            recent=Recent(window.astype(np.int64), carried.astype(np.int64), streaks, self.config.window_steps),
            similarity=self.similarity,
        )

    def similarity(self, rows_a: np.ndarray, rows_b: np.ndarray) -> np.ndarray:
        """float64 [A, B] in [0, 1]: within for a pair of one environment, else cross; the exact one of ``ObservedGraph``."""
        rows_a, rows_b = np.asarray(rows_a, dtype=np.int64), np.asarray(rows_b, dtype=np.int64)
        out = products(self.features.cross[rows_a], self.features.cross[rows_b])
        e_a, e_b = (np.searchsorted(self.evidence.offsets, rows, side="right") for rows in (rows_a, rows_b))
        a, b = np.nonzero(e_a[:, None] == e_b)
        out[a, b] = pair_products(self.features.within, rows_a[a], rows_b[b])
        return out


def group_variances(rewards: np.ndarray, ddof: int) -> tuple[np.ndarray, np.ndarray]:
    """Valid rollouts int64 [B] and variance float64 [B] of rewards [B, G], METHOD section 2: two-pass, exactly 0 when all
    rewards lie within 1e-9, NaN with fewer than 2 valid ones."""
    valid = ~np.isnan(rewards)
    num_valid = valid.sum(axis=1)
    kept = np.where(valid, rewards, 0)
    mean = kept.sum(axis=1) / np.maximum(num_valid, 1)
    squares = (np.where(valid, rewards - mean[:, None], 0) ** 2).sum(axis=1)
    spread = np.where(valid, rewards, -np.inf).max(axis=1) - np.where(valid, rewards, np.inf).min(axis=1)
    variance = np.where(spread <= 1e-9, 0.0, squares / np.maximum(num_valid - ddof, 1))
    return num_valid, np.where(num_valid >= 2, variance, np.nan)
