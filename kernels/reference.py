"""What the native operations compute, in numpy: the truth they are tested against, and their place where none was built.

Letters: N tasks, M environments, D features, K slots, T targets.
"""

import itertools

import numpy as np

_PAIRS = 1 << 24  # similarities in memory at once


def within_lists(vectors: np.ndarray, offsets: np.ndarray, num_slots: int) -> tuple[np.ndarray, np.ndarray]:
    """The best other tasks of each task's environment: rows int32 [N, K] (-1: none) and weights float32 [N, K]."""
    row, weight = np.full((len(vectors), num_slots), -1, np.int32), np.zeros((len(vectors), num_slots), np.float32)
    for start, stop in itertools.pairwise(offsets):
        mine = vectors[start:stop].astype(np.float64)
        similarity = np.clip(mine @ mine.T, 0, 1)
        np.fill_diagonal(similarity, 0)
        row[start:stop], weight[start:stop] = _best(similarity, num_slots, start)
    return row, weight


def cross_lists(vectors: np.ndarray, offsets: np.ndarray, num_slots: int, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The best tasks of other environments for each target: rows int32 [T, K] (-1: none) and weights float32 [T, K]."""
    row, weight = np.full((len(targets), num_slots), -1, np.int32), np.zeros((len(targets), num_slots), np.float32)
    environment_of = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    everything = vectors.astype(np.float64).T
    step = max(1, _PAIRS // len(vectors))
    for first in range(0, len(targets), step):
        rows = targets[first : first + step]
        similarity = np.clip(vectors[rows].astype(np.float64) @ everything, 0, 1)
        similarity[environment_of[rows, None] == environment_of] = 0
        row[first : first + step], weight[first : first + step] = _best(similarity, num_slots, 0)
    return row, weight


def reverse_lists(row: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lists [N, K] by source: pointer int64 [N + 1], target int32 [E], weight float32 [E]."""
    target, slot = np.nonzero(row >= 0)
    source = row[target, slot]
    order = np.argsort(source, kind="stable")
    pointer = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=len(row)))])
    return pointer, target[order].astype(np.int32), weight[target, slot][order].astype(np.float32)


def gather(row: np.ndarray, weight: np.ndarray, stats: np.ndarray) -> np.ndarray:
    """sum_k weight[i, k] * stats[row[i, k]] over lists [N, K] (-1: none); stats [N, 2] -> float64 [N, 2]."""
    known = np.where(row >= 0, weight, 0).astype(np.float64)
    return np.einsum("nk,nkc->nc", known, stats.astype(np.float64)[np.maximum(row, 0)])


def _best(similarity: np.ndarray, num_slots: int, first_row: int) -> tuple[np.ndarray, np.ndarray]:
    """The ``num_slots`` largest of each row, ties by column; 0 is no neighbour."""
    kept = min(num_slots, similarity.shape[1])
    order = np.argsort(-similarity, axis=1, kind="stable")[:, :kept]
    weight = np.zeros((len(similarity), num_slots))
    weight[:, :kept] = np.take_along_axis(similarity, order, axis=1)
    row = np.full(weight.shape, -1, np.int32)
    row[:, :kept] = order + first_row
    row[weight <= 0] = -1
    return row, weight.astype(np.float32)
