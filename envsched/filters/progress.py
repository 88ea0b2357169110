"""Progress filter: a task that has nothing to teach for now rests, and is tried again (METHOD 10).

Letters: N tasks, V visits, B batch, G rollouts, L visits in a row without progress, k visits that it takes.

A visit is *at the top* when its mean is within ``top_tolerance`` of the highest reward, and *flat* when its rewards are equal
and equal to those of the visit before. Where a task's floor is known (the reward of doing nothing), progress is what lies above
it: a lower mean counts as the floor, so that equal rewards which move at or below the floor are flat.

The last L visits at the top (or flat) put a task to rest once L >= k, for ``rest_steps * 2**(L - k)`` steps after the last of
them, at most ``longest_rest_steps``. Then it is on probation: of the tasks that are due, ``probation_picks`` per step may be picked
again, the longest waiting first. A visit that is neither ends the run of L, and with it the rest, at once: all follows from the
history alone, nothing is remembered here.

One group proves little (at p = .05 two thirds of groups of 8 are flat at 0), hence k visits.
"""

import numpy as np

from envsched.config import SchedulerConfig
from envsched.filters.mask import Mask
from envsched.history import Visits


def mask_resting(
    visits: Visits, step: int, num_tasks: int, config: SchedulerConfig, floors: np.ndarray | None = None, shut: np.ndarray | None = None
) -> Mask:
    """Tasks that rest at ``step``.

    Args:
        visits: of any steps; those from ``step`` on are left out.
        num_tasks: N; at least ``open_batches`` * B of them stay open, the longest resting return first.
        floors: reward of doing nothing, float64 [N], NaN where unknown; none: of no task.
        shut: tasks that something else keeps out, bool [N]: they are not counted as open.
    """
    shut = np.zeros(num_tasks, dtype=bool) if shut is None else shut
    before = visits.before(step)
    known = ~np.isnan(before.mean)
    row, when, mean, variance = before.row[known], before.step[known], before.mean[known], before.variance[known]
    if not len(row):
        return Mask.of({}, num_tasks)
    order = np.lexsort((when, row))
    row, when, mean, variance = row[order], when[order], mean[order], variance[order]
    last = np.flatnonzero(np.append(row[1:] != row[:-1], True))  # position of each task's last visit
    tolerance = config.top_tolerance * config.reward_range
    at_top = _run_lengths(mean >= config.reward_high - tolerance, np.zeros(len(row), dtype=bool), row)[last]
    above = mean if floors is None else np.fmax(mean, floors[row])
    moved = np.append(True, (row[1:] != row[:-1]) | (np.abs(np.diff(above)) > tolerance))
    flat = _run_lengths(variance == 0, moved, row)[last]
    length = np.maximum(at_top - config.top_visits, flat - config.flat_visits)
    due = when[last] + np.minimum(config.rest_steps * 2.0 ** np.clip(length, 0, 30), config.longest_rest_steps)
    resting = (length >= 0) & (step < due)
    waiting = np.flatnonzero((length >= 0) & (step >= due))
    waiting = waiting[np.lexsort((row[last][waiting], due[waiting]))]
    resting[waiting[config.probation_picks :]] = True
    _keep_open(resting, due, row[last], shut, config.open_batches * config.batch_size)
    return Mask.of({int(row[last][i]): _reason(i, at_top, flat, due, step, config) for i in np.flatnonzero(resting)}, num_tasks)


def _run_lengths(good: np.ndarray, begins: np.ndarray, row: np.ndarray) -> np.ndarray:
    """For each visit, how many visits of its task up to it are good without a break; ``begins`` starts a run anew at that visit."""
    position = np.arange(len(row))
    new_task = np.append(True, row[1:] != row[:-1])
    start = np.where(~good, position + 1, np.where(begins | new_task, position, 0))
    return np.maximum(position - np.maximum.accumulate(start) + 1, 0)


def _keep_open(resting: np.ndarray, due: np.ndarray, row: np.ndarray, shut: np.ndarray, wanted: int) -> None:
    """Return the longest resting tasks until ``wanted`` are open (all, in a pool that small)."""
    candidates = np.flatnonzero(resting & ~shut[row])
    others = len(shut) - int(shut.sum())
    missing = min(wanted, others) - (others - len(candidates))
    if missing > 0:
        resting[candidates[np.lexsort((row[candidates], due[candidates]))][:missing]] = False


def _reason(i: int, at_top: np.ndarray, flat: np.ndarray, due: np.ndarray, step: int, config: SchedulerConfig) -> str:
    what = f"{at_top[i]} visits in a row at the top" if at_top[i] >= config.top_visits else f"{flat[i]} visits in a row with equal rewards"
    when = f"rests until step {int(due[i])}" if step < due[i] else f"due since step {int(due[i])}, waits for its probation"
    return f"progress: {what}; {when}"
