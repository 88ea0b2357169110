"""Leases: tasks that were selected and whose records are still out.

A task selected at step s without a record of that step is not picked again at the steps s + 1 .. s + L; then it is free,
whether its record came or not. A lease is no evidence: no exposure, no variance, no observation. Environment and window
quotas count it, since it was picked. Letters: N tasks, L ``lease_steps``, n tasks under a lease.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from envsched.filters import Mask
from envsched.history import History


class Leases:
    """Batches of the last L steps.

    Args:
        num_steps: L; 0: none is kept.
    """

    def __init__(self, num_steps: int, batches: Mapping[int, Sequence[str]] | None = None) -> None:
        self.num_steps = num_steps
        self._batches = {step: tuple(tasks) for step, tasks in (batches or {}).items()}

    def note(self, step: int, tasks: Sequence[str]) -> None:
        """``tasks`` were selected at ``step``; asked again for the same step, the last answer counts."""
        if not self.num_steps:
            return
        self._batches[step] = tuple(tasks)
        self._batches = {when: batch for when, batch in self._batches.items() if when >= step - self.num_steps}

    def live(self, step: int, history: History) -> tuple[np.ndarray, np.ndarray]:
        """Rows [n] under a lease at ``step`` and the steps [n] at which they were selected, int64; ordered by step, then row."""
        found = [
            (when, row)
            for when, tasks in sorted(self._batches.items())
            if when < step <= when + self.num_steps
            for row in sorted(map(history.pool.row_of, tasks))
            if not history.knows(when, row)
        ]
        columns = np.array(found, dtype=np.int64).reshape(-1, 2)
        return columns[:, 1], columns[:, 0]

    def mask(self, step: int, history: History) -> Mask:
        """The tasks under a lease at ``step``, with the reasons."""
        rows, steps = self.live(step, history)
        words = {
            int(row): f"lease: selected at step {when}, its record is still out; until step {when + self.num_steps + 1}"
            for row, when in zip(rows, steps.tolist(), strict=True)
        }
        return Mask.of(words, len(history.pool))

    def out(self, history: History) -> dict[int, list[str]]:
        """Batches by step, without the tasks whose records came."""
        left = {
            step: [task for task in tasks if not history.knows(step, history.pool.row_of(task))]
            for step, tasks in sorted(self._batches.items())
        }
        return {step: tasks for step, tasks in left.items() if tasks}
