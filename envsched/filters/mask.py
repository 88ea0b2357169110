"""What a filter says. Letters: N tasks, B batch."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Mask:
    """``rows`` bool [N]: the tasks shut out. ``reasons``: why, by row, for exactly these."""

    rows: np.ndarray
    reasons: Mapping[int, str]

    @classmethod
    def of(cls, reasons: Mapping[int, str], num_tasks: int) -> "Mask":
        rows = np.zeros(num_tasks, dtype=bool)
        rows[list(reasons)] = True
        return cls(rows, dict(reasons))

    def union(self, others: Iterable["Mask"]) -> "Mask":
        """What any of them shuts out, with all reasons."""
        reasons = dict(self.reasons)
        for other in others:
            for row, reason in other.reasons.items():
                reasons[row] = f"{reasons[row]}; {reason}" if row in reasons else reason
        return Mask.of(reasons, len(self.rows))
