"""From the rewards of one group to its mean and variance (METHOD section 2).

Letters: G rollouts of one task in one step, n of them valid.
"""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

from envsched.config import SchedulerConfig
from envsched.errors import RecordError
from envsched.types import RolloutRecord, Status

# Rewards that differ by less are one value, and a sum of shares may miss the range by as much: both are rounding.
ROUNDING = 1e-9
_MISSING = ", ".join(status for status in Status if status.is_missing)


@dataclass(frozen=True, slots=True)
class GroupStatistics:
    """n valid rollouts, their mean reward (None when n = 0) and its variance (None when n < 2: no evidence)."""

    num_valid: int
    mean: float | None
    variance: float | None


def group_statistics(record: RolloutRecord, config: SchedulerConfig = SchedulerConfig()) -> GroupStatistics:
    """m = sum(r) / n and v = sum((r - m)^2) / (n - ddof) over the valid rollouts, v exactly 0 where all rewards agree.

    A rollout whose status is missing, or ruled out by the config, is no evidence, whatever reward came with it.
    Source: METHOD section 2.

    Raises:
        RecordError: a reward is no number, NaN, infinite, out of the pool's range, or None with a status that has one.
    """
    where = f"task {record.task!r}, step {record.step}"
    if len(record.status) != len(record.rewards):
        raise RecordError(f"{where}: {len(record.rewards)} rewards but {len(record.status)} statuses; give one of each per rollout")
    valid = []
    for g, (given, named) in enumerate(zip(record.rewards, record.status, strict=True)):
        status = named if type(named) is Status else Status(named)
        reward = check_reward(given, status, f"{where}, rollout {g}", config.reward_low, config.reward_high)
        if reward is not None and config.is_evidence(status):
            valid.append(reward)
    n = len(valid)
    mean = sum(valid) / n if n else None
    return GroupStatistics(n, mean, _variance(valid, mean, config.ddof) if mean is not None and n >= 2 else None)


def check_reward(reward: Any, status: Status, where: str, low: float = -math.inf, high: float = math.inf) -> float | None:
    """The reward as a float, or None for a missing rollout.

    Raises:
        RecordError: as ``group_statistics``; the message starts with ``where`` and names the value.
    """
    if reward is None:
        if status.is_missing:
            return None
        raise RecordError(f"{where}: no reward came but the status is {status.value!r}; only {_MISSING} may come without a reward")
    # Nearly all rewards are floats, and asking an abstract class about each of them is slow.
    if type(reward) is not float and (isinstance(reward, bool) or not isinstance(reward, Real)):
        raise RecordError(f"{where}: a reward must be a number, came {type(reward).__name__} {reward!r}")
    try:
        value = float(reward)
    except OverflowError:  # a whole number beyond 1e308
        value = math.inf
    if not math.isfinite(value):
        raise RecordError(
            f"{where}: a reward must be finite, came {value}; give no reward (null) and one of {_MISSING} if the rollout failed"
        )
    if not low - ROUNDING <= value <= high + ROUNDING:
        raise RecordError(
            f"{where}: the reward must lie in [{low:g}, {high:g}], came {value!r}; rescale it, or set reward_low and reward_high"
        )
    return value


def _variance(rewards: list[float], mean: float, ddof: int) -> float:
    if max(rewards) - min(rewards) <= ROUNDING:
        return 0.0
    return sum((reward - mean) ** 2 for reward in rewards) / (len(rewards) - ddof)
