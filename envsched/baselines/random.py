"""Schedulers that look at nothing: the floor that every other is compared with.

Letters: N tasks, B batch.
"""

import numpy as np

from envsched.config import SchedulerConfig
from envsched.pool import Pool
from envsched.scheduler.recorded import RecordedScheduler
from envsched.select import Draws
from envsched.types import Batch, Lane, Pick


class RandomScheduler(RecordedScheduler):
    """Uniform over tasks, every step anew.

    EnvScaler draws with replacement. Here a step's tasks differ (a task is rolled out once per step, so a history has one
    record for it), and steps are independent of each other: over 51 environments of 50 tasks a batch of 64 covers 36.9
    environments in expectation, against 36.6 with replacement inside the batch.
    """

    def __init__(self, pool: Pool, config: SchedulerConfig = SchedulerConfig(), seed: int = 0, name: str = "random") -> None:
        super().__init__(pool, config, seed, name)

    def _choose(self, step: int) -> Batch:
        return unscored_batch(self.pool, step, Draws(self.seed, step).order(len(self.pool))[: self.config.batch_size])


class RandomEpochScheduler(RecordedScheduler):
    """Without replacement per epoch: every task once before any twice, in a new seeded order each epoch.

    Where a batch spans two epochs, its tasks of the new epoch are the first ones of the new order that the batch does not
    hold yet; those passed over come right after it. The batch of a step follows from (seed, step) alone.
    """

    def __init__(self, pool: Pool, config: SchedulerConfig = SchedulerConfig(), seed: int = 0, name: str = "random_epoch") -> None:
        super().__init__(pool, config, seed, name)
        self._orders: dict[tuple[int, int], np.ndarray] = {}  # by (seed, epoch)

    def _choose(self, step: int) -> Batch:
        N, B = len(self.pool), self.config.batch_size
        epoch, first = divmod(step * B, N)
        rows = self._order(epoch)[first : first + B]
        if len(rows) < B:
            rows = np.concatenate([rows, self._order(epoch + 1)[: B - len(rows)]])
        return unscored_batch(self.pool, step, rows)

    def _order(self, epoch: int) -> np.ndarray:
        """The order of an epoch, with the last batch of the epoch before in mind."""
        N, B = len(self.pool), self.config.batch_size
        start = max((known for seed, known in self._orders if seed == self.seed and known <= epoch), default=-1)
        for e in range(start + 1, epoch + 1):
            order, spilt = Draws(self.seed, e).order(N), -(e * N) % B  # picks of this epoch in a batch begun in the last
            if spilt:
                fresh = order[~np.isin(order, self._orders[self.seed, e - 1][-(B - spilt) :])][:spilt]
                order = np.concatenate([fresh, order[~np.isin(order, fresh)]])
            self._orders[self.seed, e] = order
        return self._orders[self.seed, epoch]


def unscored_batch(pool: Pool, step: int, rows: np.ndarray) -> Batch:
    """Picks without score or terms."""
    tasks = [pool.tasks[row] for row in rows]
    return Batch(step, tuple(Pick(task.key, task.environment, Lane.RANDOM, 0.0) for task in tasks))
