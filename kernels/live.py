"""Live lists and classes: the C++ operations of csrc/live.cpp and csrc/classes.cpp on numpy arrays.

Letters: N tasks, D features, K slots, S sources, U classes, E edges.
"""

import numpy as np

from kernels import native
from kernels.native import address as _p
from kernels.native import contiguous as _as

MAX_LIVE = 16  # slots of a list that follows live evidence


class LiveLists:
    """Fourth root of the rank and place of the source in each slot, best first; see csrc/live.cpp.

    ``root`` float32 and ``slot`` int32 [N, K rounded up to 4], K <= 16: what stands from K on means nothing. ``least``: last root of
    each list, float32 [N rounded up to 16].
    """

    def __init__(self, num_tasks: int, num_slots: int) -> None:
        assert 0 < num_slots <= MAX_LIVE
        self.num_slots, stride = num_slots, -(-num_slots // 4) * 4
        self.lists = np.empty((num_tasks, 2, stride), np.float32)  # written below: zeros would not come in large pages
        self.root, self.slot = self.lists[:, 0], self.lists.view(np.int32)[:, 1]
        self.root[:], self.slot[:] = 0, -1
        self.least = np.zeros(-(-num_tasks // native.TILE_TASKS) * native.TILE_TASKS, np.float32)

    @property
    def nbytes(self) -> int:
        return self.lists.nbytes + self.least.nbytes


def live_cross(
    lists: LiveLists, features: native.Quantised, source: np.ndarray, slot: np.ndarray, mass: np.ndarray, start: np.ndarray,
    stop: np.ndarray, floor: float, table: np.ndarray, row: np.ndarray, sums: np.ndarray, peak: np.ndarray, threads: int,
    shrinkage: float = 0.0,
) -> None:  # fmt: skip
    """Offer sources [S] to the lists of all tasks outside their start .. stop, and write the cross sums of those that change.

    Args:
        slot: place of each source in ``table`` and ``row``, int64 [S].
        mass: what each counts, float64 [S].
        table: of all visited tasks the root of the mass, times own variance and alone, float32 [slots, 2].
        row: int32 [slots].
        sums, peak, shrinkage: as for ``stream``.
    """
    num_tasks, num_features = features.vectors.shape
    source, slot, start, stop = (_as(values, np.int64) for values in (source, slot, start, stop))
    mass, table, row = _as(mass, np.float64), _as(table, np.float32), _as(row, np.int32)
    native.library().envsched_live_cross(
        _p(features.codes), _p(features.scale), num_tasks, num_features, _p(source), _p(slot), _p(mass), _p(start), _p(stop), len(source),
        floor, _p(table), _p(row), _p(lists.lists), _p(lists.least), lists.num_slots, _p(sums), _p(peak), shrinkage, threads,
    )  # fmt: skip


def live_within(
    lists: LiveLists, vectors: np.ndarray, source: np.ndarray, slot: np.ndarray, mass: np.ndarray, start: np.ndarray, stop: np.ndarray,
    table: np.ndarray, row: np.ndarray, sums: np.ndarray, peak: np.ndarray, shrinkage: float = 0.0,
) -> None:  # fmt: skip
    """``live_cross`` inside environments: sources are offered to the other rows of start .. stop by exact similarity."""
    vectors = _as(vectors, np.float32)
    source, slot, start, stop = (_as(values, np.int64) for values in (source, slot, start, stop))
    mass, table, row = _as(mass, np.float64), _as(table, np.float32), _as(row, np.int32)
    native.library().envsched_live_within(
        _p(vectors), vectors.shape[1], _p(source), _p(slot), _p(mass), _p(start), _p(stop), len(source), _p(table), _p(row),
        _p(lists.lists), _p(lists.least), lists.num_slots, _p(sums), _p(peak), shrinkage,
    )  # fmt: skip


def settle(
    lists: LiveLists, relation: int, table: np.ndarray, row: np.ndarray, sums: np.ndarray, peak: np.ndarray, threads: int,
    shrinkage: float = 0.0,
) -> None:  # fmt: skip
    """Write the sums of all tasks after ``table`` has changed; ``relation``: 0 within, 1 cross; the rest as for ``live_cross``."""
    table, row = _as(table, np.float32), _as(row, np.int32)
    native.library().envsched_live_settle(
        len(lists.root), relation, _p(table), _p(row), _p(lists.lists), _p(lists.least), lists.num_slots, _p(sums), _p(peak), shrinkage,
        threads,
    )  # fmt: skip


def scatter_classes(
    sums: np.ndarray, peak: np.ndarray, listeners: tuple[np.ndarray, np.ndarray, np.ndarray], first: np.ndarray, member: np.ndarray,
    environment: np.ndarray, class_of: np.ndarray, num_environments: int, source: np.ndarray, mass: np.ndarray, value: np.ndarray,
    shrinkage: float = 0.0,
) -> int:  # fmt: skip
    """Add weight * (value, mass) of every source [S] to the cross sums of the classes that listen to its own, but of its environment.

    Args:
        listeners: pointer int64 [U + 1], target int32 [E], weight float32 [E] of each class.
        first, member: int64 [U + 1] and int32 [N], tasks of each class.
        environment, class_of: int32 [N].
        shrinkage: as for ``stream``.

    Returns:
        edges between sources and tasks.
    """
    source, mass, value = _as(source, np.int64), _as(mass, np.float64), _as(value, np.float64)
    environment, class_of, first, member = (
        _as(environment, np.int32),
        _as(class_of, np.int32),
        _as(first, np.int64),
        _as(member, np.int32),
    )
    pointer, target, weight = listeners
    return native.library().envsched_classes(
        _p(sums), _p(peak), _p(pointer), _p(target), _p(weight), _p(first), _p(member), _p(environment), _p(class_of), num_environments,
        _p(source), _p(mass), _p(value), len(source), shrinkage,
    )  # fmt: skip
