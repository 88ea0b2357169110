"""The account of one batch while it is filled: which task may come next, and which quota says no.

Letters: N tasks, M environments, B batch.
"""

from functools import cache

import numpy as np

from envsched.errors import SelectionError
from envsched.select.guards import Guard, LookAhead, Overdraft
from envsched.select.quotas import RELAXATION_ORDER, Quotas, Recent, open_tasks, relax

LOOK_AHEAD = "look_ahead"
_NAMES = ("", *RELAXATION_ORDER, LOOK_AHEAD)
FREE, _CONSECUTIVE, _WINDOW, _ENVIRONMENT, _FILTERS, _AHEAD = range(len(_NAMES))
TAKEN = len(_NAMES)


class Ledger:
    """Picks made so far and what they leave.

    Args:
        quotas: as configured; relaxed here when B picks do not exist under them.
        recent: of the steps before.
        masked: tasks that a filter shuts out, bool [N].
        environment_of: int64 [N].
        batch_size: B.

    Raises:
        SelectionError: N < B.
    """

    def __init__(self, quotas: Quotas, recent: Recent, masked: np.ndarray, environment_of: np.ndarray, batch_size: int) -> None:
        refuse_small_pool(len(environment_of), batch_size)
        self.batch_size = batch_size
        self.environment_of = environment_of
        self.relaxed_quotas, self.relaxed = relax(quotas, recent, masked, environment_of, batch_size)
        guard = Overdraft if self.relaxed else LookAhead
        self._guard: Guard = guard(quotas, recent, masked, environment_of, batch_size)
        self._quotas, self._recent, self._masked = quotas, recent, masked
        self._open = open_tasks(self.relaxed_quotas, recent, masked)
        self._count = np.zeros(len(recent.window), dtype=np.int64)
        self.taken = np.zeros(len(environment_of), dtype=bool)
        self.rows: list[int] = []

    def free(self, rows: np.ndarray) -> np.ndarray:
        """May each row [n] be the next pick? bool [n]."""
        e, limits = self.environment_of[rows], self.relaxed_quotas
        count, window = self._count, self._count + self._recent.window
        has_room = (count < limits.max_per_environment) & (window < limits.max_per_environment_window)
        return self._open[rows] & ~self.taken[rows] & has_room[e] & self._guard.allows(rows)

    def verdict(self, rows: np.ndarray) -> np.ndarray:
        """FREE, TAKEN, or the quota that shuts a task out, int8 [n] for rows [n]."""
        e = self.environment_of[rows]
        count, window = self._count[e], self._count[e] + self._recent.window[e]
        reason = np.select(
            [
                self.taken[rows],
                self.free(rows),
                self._masked[rows],
                self._recent.streak[rows] >= self._quotas.max_consecutive,
                window >= self._quotas.max_per_environment_window,
                count >= self._quotas.max_per_environment,
            ],
            [TAKEN, FREE, _FILTERS, _CONSECUTIVE, _WINDOW, _ENVIRONMENT],
            default=_AHEAD,
        )
        return reason.astype(np.int8)

    def take(self, row: int) -> None:
        """Book a pick that is free."""
        assert self.free(np.array([row]))[0], f"row {row} may not be picked"
        self._guard.take(row)
        self._count[self.environment_of[row]] += 1
        self.taken[row] = True
        self.rows.append(row)


def names_of(verdicts: np.ndarray) -> set[str]:
    """Names of the quotas among verdicts."""
    return {_NAMES[code] for code in np.unique(verdicts) if code not in (FREE, TAKEN)}


@cache
def names_of_bits(bits: int) -> tuple[str, ...]:
    """The same from the bits of csrc/ledger.h, one a name in the order of ``RELAXATION_ORDER``, the look-ahead last."""
    return tuple(sorted(name for place, name in enumerate(_NAMES[1:]) if bits >> place & 1))


def refuse_small_pool(num_tasks: int, batch_size: int) -> None:
    """Say at the start that a batch can't be filled.

    Raises:
        SelectionError: fewer tasks than a batch needs.
    """
    if num_tasks < batch_size:
        raise SelectionError(
            f"the batch needs {batch_size} tasks, the pool has {num_tasks}, and a batch holds no task twice; "
            f"set batch_size to at most {num_tasks} or give a larger pool"
        )
