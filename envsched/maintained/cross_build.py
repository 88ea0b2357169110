"""Cross-environment lists over all tasks: among classes where topologies repeat; exact, or with a measured recall where exact
would take too long.

Letters: N tasks, U classes of equal topologies, K slots, C classes found near a class.
"""

import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from envsched import ops
from envsched.graph.classes import Classes, lists_from_classes, topology_classes
from envsched.graph.index import Cells
from envsched.progress import track

_log = logging.getLogger(__name__)
_PROBES = 1000  # tasks whose exact lists tell speed and recall
_SPARE = 12  # classes fetched beyond K
_QUERIES = 4096
_WORTH = 0.5  # share of distinct topologies up to which the search goes by classes


@dataclass(frozen=True, slots=True)
class Limits:
    """How long an exact search may take, and how good another must be (``build_seconds`` and ``build_recall``)."""

    seconds: float = math.inf
    recall: float = 0.95


CrossLists = tuple[np.ndarray, np.ndarray, dict[str, Any]]


def build_cross(vectors: np.ndarray, offsets: np.ndarray, num_slots: int, limits: Limits) -> CrossLists:
    """Rows int32 [N, K] (-1: none) and weights float32 [N, K], best first, ties by row, and how they were found.

    The exact search of 1,000 tasks tells what all would take; within ``limits.seconds`` the lists are exact. Beyond, cells of an
    IVF index are visited, more and more until a share ``limits.recall`` of the neighbours of those 1,000 tasks are found; what was
    measured is returned under ``recall``.

    Args:
        vectors: float32 [N, D], unit or zero rows on the grid of ``Features``.
        offsets: rows of each environment, int64 [M + 1].
    """
    num_tasks = len(vectors)
    if not num_slots or not num_tasks:
        return np.full((num_tasks, num_slots), -1, np.int32), np.zeros((num_tasks, num_slots), np.float32), {"carried": "lists"}
    classes, search = topology_classes(vectors), ops.cross_search(vectors, offsets, num_slots)
    by_class = len(classes) <= _WORTH * num_tasks
    probes = np.sort(np.random.Generator(np.random.Philox(key=[0, 2])).permutation(num_tasks)[:_PROBES])
    start = time.perf_counter()
    truth = search(probes)
    seconds = (time.perf_counter() - start) / len(probes) * (len(classes) ** 2 / num_tasks if by_class else num_tasks)
    about: dict[str, Any] = {"carried": "lists", "classes": len(classes), "recall": 1.0, "certified": 1.0}
    if seconds > limits.seconds:
        row, weight, found = _approximate(vectors, offsets, classes, num_slots, probes, truth, limits.recall)
        _log.warning(
            "cross-environment lists are approximate: an exact search would take about %.0f s, build_seconds is %g; "
            "%.1f%% of the neighbours of %d tasks were found", seconds, limits.seconds, 100 * found["recall"], len(probes)
        )  # fmt: skip
        return row, weight, about | found
    if by_class:
        return *_by_class(vectors, offsets, classes, num_slots, search), about
    return *_all(search, num_tasks, num_slots), about


def _all(search, num_tasks: int, num_slots: int) -> tuple[np.ndarray, np.ndarray]:
    row, weight = np.empty((num_tasks, num_slots), np.int32), np.empty((num_tasks, num_slots), np.float32)
    for start in track(range(0, num_tasks, _QUERIES), "cross-environment graph", total=-(-num_tasks // _QUERIES)):
        targets = np.arange(start, min(start + _QUERIES, num_tasks))
        row[targets], weight[targets] = search(targets)
    return row, weight


def _by_class(vectors: np.ndarray, offsets: np.ndarray, classes: Classes, num_slots: int, search) -> tuple[np.ndarray, np.ndarray]:
    """Exact: neighbours of classes, then of tasks; a task whose list that leaves open is searched for by itself."""
    fetched = num_slots + _SPARE
    near, likeness = _all(ops.cross_search(vectors[classes.first], np.arange(len(classes) + 1), fetched), len(classes), fetched)
    # float32 weights are rounded: a class that was not fetched may lie that much above the last one
    unseen = np.where(near[:, -1] >= 0, likeness[:, -1].astype(np.float64) * (1 + 2.0**-23), -1.0)
    row, weight, certified = lists_from_classes(classes, vectors, _environments(offsets), near.astype(np.int64), unseen, num_slots)
    row, weight, rest = row.astype(np.int32), weight.astype(np.float32), np.flatnonzero(~certified)
    if len(rest):
        row[rest], weight[rest] = search(rest)
    return row, weight


def _approximate(
    vectors: np.ndarray, offsets: np.ndarray, classes: Classes, num_slots: int, probes: np.ndarray, truth, wanted: float
) -> tuple[np.ndarray, np.ndarray, Mapping[str, Any]]:
    """Visit ever more cells until the probes' lists are good enough."""
    cells = Cells(vectors[classes.first], max(1, min(len(classes) // 4, round(2 * len(classes) ** 0.5))))
    environment_of, num_visited = _environments(offsets), 1
    sample = np.unique(classes.class_of[probes])
    while True:
        near = np.full((len(classes), num_slots + _SPARE), -1, np.int64)
        near[sample] = _near(cells, vectors, classes, sample, num_slots + _SPARE, num_visited)
        weight = _approximate_lists(classes, vectors, environment_of, near, num_slots)[1][probes]
        recall = _recall(weight, truth[1])
        if recall >= wanted or num_visited == cells.num_cells:
            break
        num_visited = min(2 * num_visited, cells.num_cells)
    starts = range(0, len(classes), _QUERIES)
    for start in track(starts, "cross-environment graph (approximate)", total=len(starts)):
        block = np.arange(start, min(start + _QUERIES, len(classes)))
        near[block] = _near(cells, vectors, classes, block, num_slots + _SPARE, num_visited)
    row, weight = _approximate_lists(classes, vectors, environment_of, near, num_slots)
    return row, weight, {"recall": recall, "certified": 0.0, "cells": cells.num_cells, "visited_cells": num_visited}


def _approximate_lists(classes: Classes, vectors: np.ndarray, environment_of: np.ndarray, near: np.ndarray, num_slots: int):
    row, weight, _ = lists_from_classes(classes, vectors, environment_of, near, np.full(len(classes), -1.0), num_slots)
    return row.astype(np.int32), weight.astype(np.float32)


def _near(cells: Cells, vectors: np.ndarray, classes: Classes, block: np.ndarray, fetched: int, num_visited: int) -> np.ndarray:
    """Classes near those of the block, without themselves, int64 [b, C] (-1: none)."""
    _, position = cells.search(vectors[classes.first[block]], fetched + 1, num_visited)
    position = np.where(position == block[:, None], -1, position)
    return np.take_along_axis(position, np.argsort(position < 0, axis=1, kind="stable"), axis=1)[:, :fetched]


def _recall(found: np.ndarray, true: np.ndarray) -> float:
    """Share of true neighbours [P, K] that were found, or others as similar in their place."""
    last = np.where(true > 0, true, np.inf).min(axis=1, initial=np.inf)
    wanted = (true > 0).sum(axis=1)
    hits = np.minimum(((found > 0) & (found >= last[:, None])).sum(axis=1), wanted)
    return float(hits.sum() / max(1, wanted.sum()))


def _environments(offsets: np.ndarray) -> np.ndarray:
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
