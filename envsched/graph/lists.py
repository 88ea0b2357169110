"""Top-K lists of neighbours, all tasks at once.

Letters: N tasks, K slots. Order inside a list: similarity descending, then row ascending. An empty slot has weight 0 and
row -1 and stands last.
"""

import numpy as np


class NeighbourLists:
    """``source`` int64 [N, K] and ``weight`` float64 [N, K]."""

    def __init__(self, num_tasks: int, num_slots: int) -> None:
        self.source = np.full((num_tasks, num_slots), -1, dtype=np.int64)
        self.weight = np.zeros((num_tasks, num_slots))

    def offer(self, targets: np.ndarray, sources: np.ndarray, weight: np.ndarray) -> None:
        """Let sources that are in no list yet compete for the slots of ``targets``.

        Args:
            targets: int64 [T], distinct.
            sources: int64 [S].
            weight: float64 [T, S] in [0, 1]; 0 is no edge.
        """
        num_slots = self.source.shape[1]
        if num_slots == 0 or sources.size == 0:
            return
        last_weight, last_source = self.weight[targets, -1, None], self.source[targets, -1, None]
        enters = (weight > last_weight) | ((weight == last_weight) & (weight > 0) & (sources < last_source))
        changed = np.flatnonzero(enters.any(axis=1))
        rows = targets[changed]
        source = np.concatenate([self.source[rows], np.broadcast_to(sources, (rows.size, sources.size))], axis=1)
        merged = np.concatenate([self.weight[rows], np.where(enters[changed], weight[changed], 0)], axis=1)
        self.source[rows], self.weight[rows] = best(source, merged, num_slots)


def best(source: np.ndarray, weight: np.ndarray, num_slots: int) -> tuple[np.ndarray, np.ndarray]:
    """The ``num_slots`` best of each row's candidates [T, C], in list order, empty slots filled in."""
    order = np.lexsort((source, -weight), axis=1)[:, :num_slots]
    weight = np.take_along_axis(weight, order, axis=1)
    source = np.where(weight > 0, np.take_along_axis(source, order, axis=1), -1)
    lacking = num_slots - weight.shape[1]
    if lacking > 0:
        weight = np.pad(weight, ((0, 0), (0, lacking)))
        source = np.pad(source, ((0, 0), (0, lacking)), constant_values=-1)
    return source, weight
