"""How long a batch of rollouts takes on an engine with W slots: each rollout starts, in order, as soon as a slot is free.

Letters: n rollouts, W slots.
"""

import heapq
from collections.abc import Sequence


def makespan(durations: Sequence[float], slots: int) -> float:
    """When the last rollout ends (list scheduling, Graham 1969), in the unit of ``durations`` [n], which are in starting order."""
    free = [0.0] * min(slots, max(len(durations), 1))  # when each slot is free: a heap
    for duration in durations:
        heapq.heapreplace(free, free[0] + duration)
    return max(free)


def shortest_makespan(durations: Sequence[float], slots: int) -> float:
    """What no order can undercut: the longest rollout, and all work spread evenly over the slots."""
    return max(sum(durations) / slots, max(durations, default=0.0))
