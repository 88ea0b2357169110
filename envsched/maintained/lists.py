"""Neighbours among **all** tasks, built once: what maintained sums are scattered along.

Letters: N tasks, M environments, D features, K slots, E edges.
"""

from dataclasses import dataclass

import numpy as np

from envsched import ops
from envsched.features import Features
from envsched.files import digest
from envsched.graph import Relation
from envsched.graph.lists import NeighbourLists


@dataclass(frozen=True, eq=False)
class StaticLists:
    """Rows int32 [N, K] (-1: none) and weights float32 [N, K] of both relations, exact, best first, ties by row."""

    within_row: np.ndarray
    within_weight: np.ndarray
    cross_row: np.ndarray
    cross_weight: np.ndarray
    digest: str

    def relation(self, name: str) -> Relation:
        """Edges for PyTorch Geometric, as ``ObservedGraph`` gives them."""
        row, weight = (self.within_row, self.within_weight) if name == "within" else (self.cross_row, self.cross_weight)
        lists = NeighbourLists(0, row.shape[1])
        lists.source, lists.weight = row.astype(np.int64), weight.astype(np.float64)
        return Relation.from_lists(lists)

    def reversed(self, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """pointer int64 [N + 1], target int32 [E], weight float32 [E]: who listens to each source."""
        row, weight = (self.within_row, self.within_weight) if name == "within" else (self.cross_row, self.cross_weight)
        return ops.reverse_lists(row, weight)


def build_lists(features: Features, offsets: np.ndarray, num_within: int, num_cross: int) -> StaticLists:
    """Exact lists of every task among all others.

    Args:
        features: N rows.
        offsets: rows of each environment, int64 [M + 1].
    """
    within_row, within_weight = ops.within_lists(features.within, offsets, num_within)
    cross_row, cross_weight = ops.cross_lists(features.cross, offsets, num_cross)
    name = digest("envsched static graph 1", features.digest, offsets.tobytes(), f"{num_within},{num_cross}")
    return StaticLists(within_row, within_weight, cross_row, cross_weight, name)
