"""What the rivals share: a state that is learned from the history step by step, a seeded order of preference, the quotas.

A rival says how it ranks tasks (``priority``) and what a step taught it (``learn``). It keeps no state that the history and
the seed do not give: a resume, or a record that arrives late, replays the history through ``learn``.

Letters: N tasks, B batch, G rollouts, t step.
"""

from dataclasses import dataclass

import numpy as np

from envsched.config import SchedulerConfig
from envsched.history import group_statistics
from envsched.pool import Pool
from envsched.scheduler.recorded import RecordedScheduler
from envsched.select import Quotas, recent_picks
from envsched.select.ledger import Ledger
from envsched.types import Batch, Lane, Pick, Relaxation, RolloutRecord

_GLANCE = 128  # tasks whose quotas are looked up at once


@dataclass(frozen=True)
class Groups:
    """Groups of one step: ``row`` [n], ``mean`` [n] and ``variance`` [n] (NaN without evidence), ``rewards`` n lists of valid ones."""

    step: int
    row: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    rewards: tuple[tuple[float, ...], ...]


class RankedScheduler(RecordedScheduler):
    """Base of the rivals. Quotas are those of ``config``: give ``without_quotas(config)`` for a rival as it was published.

    Args:
        pool: N >= B tasks.
        config: batch and group size, reward range, quotas.
        seed: of every random choice; the generator of step t comes from (seed, t).
        name: under which registries and manifests know it.

    Raises:
        SelectionError: N < B.
    """

    title = ""

    def __init__(self, pool: Pool, config: SchedulerConfig = SchedulerConfig(), seed: int = 0, name: str | None = None) -> None:
        super().__init__(pool, config, seed, name or self.title)
        self._restart()

    def start(self) -> None:
        """Set the state of a scheduler that has seen nothing."""

    def priority(self, step: int, rng: np.random.Generator) -> np.ndarray:
        """How much each task is wanted at ``step``, float [N]; the highest are taken, equal ones in random order."""
        raise AssertionError(f"{type(self).__name__} ranks no tasks")  # a rival without it is a fault of ours

    def learn(self, groups: Groups) -> None:
        """Take in the groups of one step."""

    def follow(self, step: int) -> None:
        """Learn what the history holds before ``step``; from its start when an older record arrived since."""
        if step < self._frontier or self.history.digest_before(self._frontier) != self._learned:
            self._restart()
        steps = self.history.visits.before(step).step
        for past in np.unique(steps[steps >= self._frontier]).tolist():
            self.learn(self._groups(past))
        self._frontier, self._learned = step, self.history.digest_before(step)

    def scaled(self, rewards: np.ndarray) -> np.ndarray:
        """Rewards mapped to [0, 1] by the pool's range."""
        return (rewards - self.config.reward_low) / self.config.reward_range

    def _restart(self) -> None:
        self._frontier, self._learned = 0, self.history.digest_before(0)
        self.start()

    def _choose(self, step: int) -> Batch:
        self.follow(step)
        rng = np.random.Generator(np.random.Philox(key=[self.seed, step]))
        priority = self.priority(step, rng)
        rows, relaxed = self._allowed(np.lexsort((rng.permutation(len(priority)), -priority)), step)
        tasks = [(self.pool.tasks[row], float(priority[row])) for row in rows]
        return Batch(step, tuple(Pick(t.key, t.environment, Lane.EXPLOITATION, 0.0, {"priority": p}) for t, p in tasks), relaxed)

    def _allowed(self, order: np.ndarray, step: int) -> tuple[list[int], tuple[Relaxation, ...]]:
        """The first B rows of ``order`` [N] that the quotas let in."""
        config, pool = self.config, self.pool
        if not _can_bind(config):
            return order[: config.batch_size].tolist(), ()
        visits = self.history.visits.before(step)
        recent = recent_picks(visits.row, visits.step, step, pool.environment_of, len(pool.environments), config.window_steps)
        quotas = Quotas(config.max_consecutive, config.max_per_environment_window, config.max_per_environment)
        ledger = Ledger(quotas, recent, np.zeros(len(pool), dtype=bool), pool.environment_of, config.batch_size)
        place = 0
        while len(ledger.rows) < config.batch_size:
            assert place < len(order), "the ledger promised a pick and none is left"
            rows = order[place : place + _GLANCE]
            free = np.flatnonzero(ledger.free(rows))
            if len(free):
                ledger.take(int(rows[free[0]]))
            place += int(free[0]) + 1 if len(free) else len(rows)  # what a quota refused once it refuses for the whole batch
        return ledger.rows, tuple(ledger.relaxed)

    def _groups(self, step: int) -> Groups:
        records = self.history.records_at(step)
        statistics = [group_statistics(record, self.config) for record in records]
        return Groups(
            step=step,
            row=self.pool.rows_of([record.task for record in records]),
            mean=np.array([np.nan if s.mean is None else s.mean for s in statistics]),
            variance=np.array([np.nan if s.variance is None else s.variance for s in statistics]),
            rewards=tuple(_valid(record, self.config) for record in records),
        )


def without_quotas(config: SchedulerConfig) -> SchedulerConfig:
    """The same config with quotas that can't bind: the rivals know none."""
    size = config.batch_size
    return config.model_copy(
        update={"max_per_environment": size, "max_per_environment_window": size * config.window_steps, "max_consecutive": 10**9}
    )


def _can_bind(config: SchedulerConfig) -> bool:
    free = without_quotas(config)
    return any(getattr(config, n) < getattr(free, n) for n in ("max_per_environment", "max_per_environment_window", "max_consecutive"))


def _valid(record: RolloutRecord, config: SchedulerConfig) -> tuple[float, ...]:
    return tuple(r for r, s in zip(record.rewards, record.status, strict=True) if r is not None and config.is_evidence(s))
