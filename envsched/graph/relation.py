"""One relation as sparse tensors for PyTorch Geometric.

Letters: N tasks, E edges.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch_geometric import EdgeIndex

from envsched.graph.lists import NeighbourLists


@dataclass(frozen=True, eq=False)
class Relation:
    """Edges from observed sources to targets, sorted by target, then by position in the target's list.

    Attributes:
        edge_index: int64 [2, E], row 0 the source j, row 1 the target i.
        edge_weight: float64 [E] in (0, 1].
        num_tasks: N.
    """

    edge_index: torch.Tensor
    edge_weight: torch.Tensor
    num_tasks: int

    @classmethod
    def from_lists(cls, lists: NeighbourLists) -> "Relation":
        target, slot = np.nonzero(lists.weight)
        source = lists.source[target, slot]
        return cls(torch.from_numpy(np.stack([source, target])), torch.from_numpy(lists.weight[target, slot]), len(lists.source))

    def to_edge_index(self) -> EdgeIndex:
        """The same edges as a PyG ``EdgeIndex`` that knows it is sorted by column (the target)."""
        return EdgeIndex(self.edge_index, sparse_size=(self.num_tasks, self.num_tasks), sort_order="col")
