"""Canonical topologies: tasks whose cross features are equal are one class, and neighbours of classes are neighbours of tasks.

Topologies are structured records, so that many tasks share one. Searching among U classes instead of N tasks costs (U / N)^2.

Letters: N tasks, D features, U classes, C classes found near a class, K slots, L candidates of a class's members.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from envsched.graph.similarity import pair_products

_CANDIDATES = 96  # L: tasks in order of similarity that a class's members choose their K from
_BLOCK = 4096  # classes at a time
_MEMBERS = 1 << 14  # tasks at a time


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes in the order of their first tasks.

    Attributes:
        class_of: int32 [N].
        first: the first row of each class, int64 [U].
        pointer: int64 [U + 1], where the members of each class begin in ``member``.
        member: int64 [N], rows by class, ascending inside one.
    """

    class_of: np.ndarray
    first: np.ndarray
    pointer: np.ndarray
    member: np.ndarray

    def __len__(self) -> int:
        return len(self.first)


def topology_classes(vectors: np.ndarray) -> Classes:
    """Classes of equal rows of ``vectors``, float32 [N, D] on the grid of ``Features``."""
    keys = _keys(vectors)
    _, first, class_of = np.unique(keys, return_index=True, return_inverse=True)
    if not np.array_equal(vectors, vectors[first[class_of]]):  # two rows share a key: compare the rows themselves
        _, first, class_of = np.unique(vectors + 0.0, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(first), np.int64)
    place[order] = np.arange(len(first))
    class_of = place[class_of.reshape(-1)]
    member = np.argsort(class_of, kind="stable")
    pointer = np.concatenate([[0], np.cumsum(np.bincount(class_of, minlength=len(first)))])
    return Classes(class_of.astype(np.int32), first[order], pointer, member)


def _keys(vectors: np.ndarray) -> np.ndarray:
    """64 bits of each row, equal for equal rows: its values as whole numbers of the grid, times odd constants, modulo 2^64."""
    factor = np.random.Generator(np.random.Philox(key=[0, 1])).integers(0, 2**63, vectors.shape[1], dtype=np.uint64) * np.uint64(
        2
    ) + np.uint64(1)
    keys = np.empty(len(vectors), np.uint64)
    for start in range(0, len(vectors), _MEMBERS):
        whole = np.rint(vectors[start : start + _MEMBERS].astype(np.float64) * 2.0**24).astype(np.int64)
        keys[start : start + _MEMBERS] = (whole.view(np.uint64) * factor).sum(axis=1, dtype=np.uint64)
    return keys


def lists_from_classes(
    classes: Classes, vectors: np.ndarray, environment_of: np.ndarray, near: np.ndarray, unseen: np.ndarray, num_slots: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lists of all tasks from the classes that lie near each class.

    Args:
        vectors: cross features, float32 [N, D].
        environment_of: int64 [N]; a task takes no neighbour from its own environment.
        near: other classes, int64 [U, C], -1 for none.
        unseen: upper bound of the similarity to any class that is not among them, float64 [U]; below 0: there is none.

    Returns:
        rows int64 [N, K] (-1: none), weights float64 [N, K], and bool [N]: these are the K best tasks, ties by row.
    """
    row, weight = np.full((len(vectors), num_slots), -1, np.int64), np.zeros((len(vectors), num_slots))
    certified = np.zeros(len(vectors), dtype=bool)
    for start in range(0, len(classes), _BLOCK):
        block = np.arange(start, min(start + _BLOCK, len(classes)))
        candidate, likeness, whole = _candidates(classes, vectors, block, near[block], unseen[block])
        for targets, place in _members(classes, block):
            offered = candidate[place]
            foreign = (offered >= 0) & (environment_of[offered] != environment_of[targets, None])
            rank = np.cumsum(foreign, axis=1)
            i, c = np.nonzero(foreign & (rank <= num_slots))
            row[targets[i], rank[i, c] - 1], weight[targets[i], rank[i, c] - 1] = offered[i, c], likeness[place[i], c]
            certified[targets] = whole[place] | (rank[:, -1] >= num_slots)
    return row, weight, certified


def _members(classes: Classes, block: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Tasks of a block of classes with their class's place in it, some at a time."""
    targets = classes.member[classes.pointer[block[0]] : classes.pointer[block[-1] + 1]]
    for start in range(0, len(targets), _MEMBERS):
        some = targets[start : start + _MEMBERS]
        yield some, classes.class_of[some] - block[0]


def _candidates(
    classes: Classes, vectors: np.ndarray, block: np.ndarray, near: np.ndarray, unseen: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The L most similar tasks of each class in the block, its own among them, as far as they are certain to be.

    Returns:
        rows int64 [b, L] (-1: none), similarities float64 [b, L], and bool [b]: no other task is similar at all.
    """
    near = np.concatenate([block[:, None], near], axis=1)
    known = near >= 0
    similarity = np.where(known, pair_products(vectors, np.broadcast_to(classes.first[block, None], near.shape), classes.first[near]), 0)
    certain = known & (similarity > 0) & (similarity > unseen[:, None])
    count = np.where(certain, np.minimum(np.diff(classes.pointer)[near], _CANDIDATES), 0)
    total = count.sum(axis=1)
    owner = np.repeat(np.arange(len(block)), total)
    begin = np.cumsum(count.ravel()) - count.ravel()
    step = np.arange(len(owner)) - np.repeat(begin, count.ravel())
    rows = classes.member[np.repeat(classes.pointer[near].ravel(), count.ravel()) + step]
    likeness = np.repeat(similarity.ravel(), count.ravel())
    order = np.lexsort((rows, -likeness, owner))
    place = np.arange(len(owner)) - np.repeat(np.cumsum(total) - total, total)
    kept = place < _CANDIDATES
    candidate, value = np.full((len(block), _CANDIDATES), -1, np.int64), np.zeros((len(block), _CANDIDATES))
    candidate[owner[kept], place[kept]], value[owner[kept], place[kept]] = rows[order][kept], likeness[order][kept]
    clipped = (np.where(certain, np.diff(classes.pointer)[near], 0) > _CANDIDATES).any(axis=1) | (total > _CANDIDATES)
    return candidate, value, (unseen <= 0) & ~clipped
