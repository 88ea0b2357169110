"""A topology as a point on the unit sphere, so that an index of inner products finds alike tasks.

Letters: D features (TOPOLOGY_DIM), b block, w_b its weight (they sum to 1).

    sim(x, y) = sum_b w_b <f_b(x), f_b(y)>  in [0, 1]

Each block f_b is a non-negative unit vector, so <f_b(x), f_b(y)> is a cosine in [0, 1] and the concatenation of
sqrt(w_b) f_b is a unit vector whose inner product is sim. Blocks:

* ``phases``: the square root of each phase's share (their inner product is the Bhattacharyya overlap of the shares),
* ``order``: the same of each ordered pair of neighbouring phases, with start and end counted as one more place,
* ``reads``, ``writes``, ``depth``, ``entities``, ``checks``: a number n at place log2(1 + n) of a ruler of unit steps; between
  two marks at fraction f it is (cos, sin)(pi f / 2) of them: equal numbers give 1, numbers apart by a factor above 4 give 0,
* ``kinds``: the square root of each check kind's share,
* ``negative``, ``initial``, ``start``: a share p as (sqrt(p), sqrt(1 - p)), an unknown start as a place of its own,
* ``discovery``, ``grading``: one place a value.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import cos, pi, sin, sqrt

import numpy as np

from envsched.topology.schema import CheckKind, Phase, Topology

PHASES = tuple(Phase)
KINDS = tuple(CheckKind)
ENDS = len(PHASES)  # the place before the first phase and after the last one
ORDERED_PAIRS = [(a, b) for a in range(len(PHASES) + 1) for b in range(len(PHASES) + 1) if a != b or a == ENDS]
MARKS = {"reads": 6, "writes": 7, "depth": 4, "entities": 4, "checks": 7}
BLOCKS = {  # name: (size, weight)
    "phases": (len(PHASES), 0.20),
    "order": (len(ORDERED_PAIRS), 0.15),
    "reads": (MARKS["reads"], 0.06),
    "writes": (MARKS["writes"], 0.08),
    "depth": (MARKS["depth"], 0.05),
    "entities": (MARKS["entities"], 0.06),
    "checks": (MARKS["checks"], 0.08),
    "kinds": (len(KINDS) + 1, 0.16),
    "negative": (2, 0.03),
    "initial": (2, 0.02),
    "start": (3, 0.05),
    "discovery": (3, 0.04),
    "grading": (2, 0.02),
}
TOPOLOGY_DIM = sum(size for size, _ in BLOCKS.values())


def topology_vector(topology: Topology) -> np.ndarray:
    """Features float32 [D], non-negative, of unit norm; see the formula above."""
    work, reward = topology.execution, topology.reward
    checks = reward.checks
    blocks = {
        "phases": _shares([work.phases.count(phase) for phase in PHASES]),
        "order": _order(work.phases),
        **{name: _ruler(getattr(work, name), MARKS[name]) for name in ("reads", "writes", "depth", "entities")},
        "checks": _ruler(checks, MARKS["checks"]),
        "kinds": _shares([*(getattr(reward, kind.value) for kind in KINDS), int(checks == 0)]),
        "negative": _share(reward.negative / max(checks, 1)),
        "initial": _share(reward.initial / max(checks, 1)),
        "start": [0.0, 0.0, 1.0] if reward.true_at_start is None else [*_share(reward.true_at_start), 0.0],
        "discovery": [float(work.discovery == value) for value in ("none", "some", "all")],
        "grading": [float(reward.grading == value) for value in ("all_or_nothing", "partial")],
    }
    parts = [sqrt(weight) * np.asarray(blocks[name]) for name, (_, weight) in BLOCKS.items()]
    vector = np.concatenate(parts)
    assert vector.shape == (TOPOLOGY_DIM,)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def topology_matrix(topologies: Iterable[Topology]) -> np.ndarray:
    """Vectors of several topologies, float32 [n, D]."""
    rows = [topology_vector(topology) for topology in topologies]
    return np.stack(rows) if rows else np.zeros((0, TOPOLOGY_DIM), np.float32)


def similarity(a: Topology, b: Topology) -> float:
    """The documented similarity in [0, 1]; 1 for equal records."""
    return float(np.clip(topology_vector(a).astype(np.float64) @ topology_vector(b).astype(np.float64), 0.0, 1.0))


def _shares(counts: Sequence[int]) -> list[float]:
    """Square roots of shares; the first place stands for nothing at all where every count is 0."""
    total = sum(counts)
    return [sqrt(count / total) for count in counts] if total else [1.0, *[0.0] * (len(counts) - 1)]


def _order(phases: Sequence[Phase]) -> list[float]:
    path = [ENDS, *(PHASES.index(phase) for phase in phases), ENDS]
    pairs = Counter(pairwise(path))
    return _shares([pairs[pair] for pair in ORDERED_PAIRS])


def _ruler(number: int, marks: int) -> list[float]:
    place = min(np.log2(1 + number), marks - 1.0)
    left = min(int(place), marks - 2)
    fraction = place - left
    ruler = [0.0] * marks
    ruler[left], ruler[left + 1] = cos(pi * fraction / 2), sin(pi * fraction / 2)
    return ruler


def _share(p: float) -> list[float]:
    return [sqrt(p), sqrt(1 - p)]
