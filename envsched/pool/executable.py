"""What running a pool needs beyond scheduling it: environments with code, tasks with checks."""

from envsched.errors import PoolError
from envsched.pool.pool import Pool


def environments_without_code(pool: Pool) -> list[str]:
    """Keys of the environments that have a task and no source, in the pool's order."""
    used = {task.environment for task in pool.tasks}
    return [environment.key for environment in pool.environments if environment.key in used and not environment.source]


def has_code(pool: Pool) -> bool:
    """Whether any environment with a task can be run."""
    return len(environments_without_code(pool)) < len({task.environment for task in pool.tasks})


def refuse_without_rollouts(name: str, pool: Pool, own_reward: bool = False) -> None:
    """Refuse a pool in which some rollout can't start, or can't be rewarded.

    Args:
        name: of the pool, as its user gave it.
        own_reward: rewards don't come from checks.

    Raises:
        PoolError: an environment with a task has no code; without a reward of one's own, a task has no check.
    """
    without = environments_without_code(pool)
    if without:
        num_used = len({task.environment for task in pool.tasks})
        some = f"{len(without)} of {num_used} environments have no code (first: {without[0]!r})"
        raise PoolError(
            f"pool {name}: {some if has_code(pool) else 'its environments have no code'}, so no rollout can start there; train on bundled, "
            "on a folder in EnvScaler's format, or on a JSONL file whose environments have class_name and source (scheduling alone needs "
            "none: envsched select, --prepare-only)"
        )
    unchecked = [] if own_reward else [task.key for task in pool.tasks if not task.checks]
    if unchecked:
        raise PoolError(
            f"pool {name}: {len(unchecked)} of {len(pool)} tasks have no check (first: {unchecked[0]!r}), so their rollouts have no "
            "reward; give them a verifier with source, drop them, or train with a reward function (docs/training.md)"
        )
