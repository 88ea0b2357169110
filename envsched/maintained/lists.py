"""Neighbours among **all** tasks, built once: what maintained sums are scattered along.

Letters: N tasks, M environments, D features, K slots, E edges.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from envsched import ops
from envsched.features import Features
from envsched.files import digest
from envsched.graph import ObservedGraph, Relation
from envsched.graph.lists import NeighbourLists
from envsched.graph.similarity import pair_products
from kernels import native

_HEARD = 0.5  # quantile of similarities of random pairs at which the weight of the stream starts
_HIGHEST_FLOOR = 0.95


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
    """Exact lists of every task among all others; ``num_cross`` 0 where the cross relation streams instead.

    Args:
        features: N rows.
        offsets: rows of each environment, int64 [M + 1].
    """
    within_row, within_weight = ops.within_lists(features.within, offsets, num_within)
    cross_row, cross_weight = ops.cross_lists(features.cross, offsets, num_cross)
    name = digest("envsched static graph 1", features.digest, offsets.tobytes(), f"{num_within},{num_cross}")
    return StaticLists(within_row, within_weight, cross_row, cross_weight, name)


class StaticGraph(ObservedGraph):
    """Static lists behind the interface of the observed ones: what ``static`` mode is without a native library, and what the
    maintained sums are tested against."""

    def __init__(self, features: Features, environment_of: np.ndarray, num_within: int, num_cross: int) -> None:
        super().__init__(features, environment_of, num_within, num_cross)
        offsets = np.searchsorted(environment_of, np.arange(int(environment_of[-1]) + 2))
        lists = build_lists(features, offsets, num_within, num_cross)
        self._relations = {name: lists.relation(name) for name in ("within", "cross")}
        self.digest = lists.digest

    def observe(self, rows: Sequence[int] | np.ndarray) -> None:
        """Nothing changes: a neighbour without evidence weighs nothing anyway."""

    def reset(self) -> None:
        """Nothing was learned."""
        self._is_observed = np.zeros(len(self.features), dtype=bool)


@dataclass(frozen=True, eq=False)
class Stream:
    """The cross relation without lists: every task hears every visited task, weighted by
    k(s) = max(0, (s - floor) / (1 - floor))^2 of the similarity of their int8 codes."""

    codes: native.Quantised
    floor: float
    digest: str


def build_stream(features: Features, offsets: np.ndarray) -> Stream:
    """Codes of the cross features, and as floor the median similarity of random pairs of different environments.

    A wide kernel pays: where topology decides, floors at higher quantiles (0.8, 0.95) ranked unseen tasks worse
    (``python -m benchmarks.modes``; BENCHMARKS.md has the table).
    """
    generator = np.random.Generator(np.random.Philox(key=[0, 0]))
    rows = generator.integers(len(features), size=(2, 1 << 14))
    environment = np.searchsorted(offsets, rows, side="right")
    a, b = rows[:, environment[0] != environment[1]]
    similarity = pair_products(features.cross, a, b)
    floor = float(np.clip(np.quantile(similarity, _HEARD), 0, _HIGHEST_FLOOR)) if len(a) else 0.0
    name = digest("envsched stream 1", features.digest, offsets.tobytes(), repr(floor))
    return Stream(native.Quantised(features.cross, ops.num_threads()), floor, name)
