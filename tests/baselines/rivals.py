"""What the tests of all rivals share: a pool that fits on a page, and records."""

from envsched.config import SchedulerConfig
from envsched.pool import Pool
from envsched.types import RolloutRecord, Status

CONFIG = SchedulerConfig(
    batch_size=4, group_size=4, coverage_share=0.5, max_per_environment=4, max_per_environment_window=12, max_consecutive=100
)


def small_pool(num_environments: int = 3, tasks_per_environment: int = 4) -> Pool:
    return Pool.synthetic(num_environments, tasks_per_environment, seed=5)


def record(pool: Pool, row: int, step: int, *rewards: float) -> RolloutRecord:
    return RolloutRecord(pool.tasks[row].key, step, tuple(rewards), (Status.OK,) * len(rewards), step)


def chosen(scheduler, step: int) -> list[int]:
    return scheduler.pool.rows_of(scheduler.select(step).tasks).tolist()


def teach(scheduler, *records: RolloutRecord) -> None:
    """Observe, and let the scheduler learn it now rather than at its next choice."""
    scheduler.observe(records)
    scheduler.follow(max(record.step for record in records) + 1)
