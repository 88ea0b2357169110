"""Two guards that keep a greedy fill from a dead end: the next step's quotas, and the fewest broken ones.

Both count environments, not tasks, and answer for any pick in constant time. What a guard refuses, it refuses for the rest
of the batch (the tests hold it to that), so a greedy fill may drop it.

Letters: M environments, B batch, r picks still to make.
"""

from typing import Protocol

import numpy as np

from envsched.select.quotas import Quotas, Recent, open_tasks, slots


class Guard(Protocol):
    def allows(self, rows: np.ndarray) -> np.ndarray:
        """May each row [n] be the next pick? bool [n]."""
        ...

    def take(self, row: int) -> None:
        """Book a pick."""
        ...


class LookAhead:
    """Keep B picks possible at the next step, where that can be; else spoil as few as can be.

    A pick of environment e leaves e at the next step ``min(C1, C3 - carried - x, tasks that C_task leaves)`` picks, which
    falls by 0 or 1 per pick and never less than before: a concave loss. So of r more picks the first F (those that cost
    nothing, over all environments) are free and each further one costs 1, and a batch can be completed within its allowance
    exactly while ``spent + max(0, r - F) <= allowance``.

    One step ahead is enough at the defaults with M >= 18: of 18 environments at most 8 fall short of C1 in a batch of 64,
    each must in every window of 3, and any 8 that must can be had beside 2 that just did. Where it is not enough, the
    quotas are relaxed a step later and the batch says so.
    """

    def __init__(self, quotas: Quotas, recent: Recent, masked: np.ndarray, environment_of: np.ndarray, batch_size: int) -> None:
        def count(chosen: np.ndarray) -> np.ndarray:
            return np.bincount(environment_of[chosen], minlength=len(recent.window))

        may_pick = open_tasks(quotas, recent, masked)
        self._environment_of = environment_of
        self._rests_next = recent.streak + 1 >= quotas.max_consecutive  # bool [N]: a pick now shuts the task out at t + 1
        self._cap = quotas.max_per_environment
        self._in_window = int(recent.window_steps >= 2)  # do picks made now count at t + 1?
        self._left = slots(quotas, recent)
        self._plain = count(may_pick & ~self._rests_next)
        self._resting = count(may_pick & self._rests_next)
        self._next_slots = quotas.max_per_environment_window - recent.carried
        self._next_tasks = count(np.ones_like(masked) if quotas.filters else ~masked)
        self._next, self._free = self._account(*self._seats())
        self._num_free = int(self._free.sum())
        # [2, M], after one more pick of a task that then does not rest, or does: picks lost at the next step, and free ones now
        self._cost, self._loss = (np.stack(part) for part in zip(*map(self._prices, (False, True)), strict=True))
        self._remaining = batch_size
        self._spent = 0
        self._allowance = max(int(self._next.sum()) - batch_size, batch_size - self._num_free, 0)

    def _seats(self) -> tuple[np.ndarray, ...]:
        return self._left, self._plain, self._resting, self._next_slots, self._next_tasks

    def _account(self, left, plain, resting, next_slots, next_tasks) -> tuple[np.ndarray, np.ndarray]:
        """Picks left at the next step, and picks of now that cost none of them."""
        after = np.maximum(0, np.minimum(self._cap, np.minimum(next_slots, next_tasks)))
        without_window = next_slots - after if self._in_window else left
        without_rest = plain + np.minimum(resting, next_tasks - after)
        free = np.maximum(0, np.minimum(np.minimum(left, plain + resting), np.minimum(without_window, without_rest)))
        return after, free

    def _prices(self, rests: bool, e: int | slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """What one more pick takes from the account of environments e, by the task's rest: next step's picks, free picks."""
        after, free = self._account(
            self._left[e] - 1,
            self._plain[e] - (not rests),
            self._resting[e] - rests,
            self._next_slots[e] - self._in_window,
            self._next_tasks[e] - rests,
        )
        return self._next[e] - after, self._free[e] - free

    def allows(self, rows: np.ndarray) -> np.ndarray:
        e, rests = self._environment_of[rows], self._rests_next[rows].astype(np.int64)
        beyond_free = self._remaining - 1 - self._num_free + self._loss[rests, e]
        return self._spent + self._cost[rests, e] + np.maximum(0, beyond_free) <= self._allowance

    def take(self, row: int) -> None:
        e, rests = self._environment_of[row], self._rests_next[row]
        before, free = self._next[e], self._free[e]
        self._left[e] -= 1
        self._plain[e] -= not rests
        self._resting[e] -= rests
        self._next_slots[e] -= self._in_window
        self._next_tasks[e] -= rests
        self._next[e], self._free[e] = self._account(*(seat[e] for seat in self._seats()))
        self._spent += before - self._next[e]
        self._num_free += self._free[e] - free
        self._remaining -= 1
        for kind in (False, True):
            self._cost[int(kind), e], self._loss[int(kind), e] = self._prices(kind, e)


class Overdraft:
    """When quotas had to be relaxed: break them with as few picks as can be.

    With S picks possible under the quotas as configured, B - S must break one, and no more may. So a pick is refused when
    those are spent, or when it would take away a quota-keeping pick that the batch can't do without.
    """

    def __init__(self, quotas: Quotas, recent: Recent, masked: np.ndarray, environment_of: np.ndarray, batch_size: int) -> None:
        self._environment_of = environment_of
        self._open = open_tasks(quotas, recent, masked)
        self._slots = slots(quotas, recent)
        self._tasks = np.bincount(environment_of[self._open], minlength=len(self._slots))
        self._remaining = batch_size
        self._overdraft = batch_size - int(self._keeping(self._slots, self._tasks).sum())

    @staticmethod
    def _keeping(slots_left: np.ndarray, tasks_left: np.ndarray) -> np.ndarray:
        return np.minimum(slots_left, tasks_left).clip(0)

    def _breaks(self, rows: np.ndarray) -> np.ndarray:
        return ~self._open[rows] | (self._slots[self._environment_of[rows]] <= 0)

    def allows(self, rows: np.ndarray) -> np.ndarray:
        e = self._environment_of[rows]
        now = self._keeping(self._slots, self._tasks)
        after = self._keeping(self._slots[e] - 1, self._tasks[e] - self._open[rows])
        overdraft = self._overdraft - self._breaks(rows)
        return (overdraft >= 0) & (now.sum() - now[e] + after + overdraft >= self._remaining - 1)

    def take(self, row: int) -> None:
        e = self._environment_of[row]
        self._overdraft -= int(self._breaks(np.array([row]))[0])
        self._slots[e] -= 1
        self._tasks[e] -= self._open[row]
        self._remaining -= 1
