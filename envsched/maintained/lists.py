"""Neighbours among **all** tasks, built once: what maintained sums are scattered along.

Letters: N tasks, M environments, D features, K slots, E edges.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from envsched import ops
from envsched.errors import StateError
from envsched.features import Features
from envsched.features.arrays import read_arrays, write_arrays
from envsched.files import digest
from envsched.graph import ObservedGraph, Relation
from envsched.graph.lists import NeighbourLists
from envsched.graph.similarity import pair_products
from envsched.maintained.carriers import RELATIONS, Carriers, ListCarrier, Stream
from envsched.maintained.cross_build import Limits, build_cross
from kernels import native

_HEARD = 0.5  # quantile of similarities of random pairs at which the weight of the stream starts
_HIGHEST_FLOOR = 0.95
_FORMAT = "envsched lists 1"
EXACT = {"carried": "lists", "recall": 1.0, "certified": 1.0}
_ARRAYS = ("within_row", "within_weight", "cross_row", "cross_weight")


@dataclass(frozen=True, eq=False)
class StaticLists:
    """Rows int32 [N, K] (-1: none) and weights float32 [N, K] of both relations, exact, best first, ties by row."""

    within_row: np.ndarray
    within_weight: np.ndarray
    cross_row: np.ndarray
    cross_weight: np.ndarray
    digest: str
    about: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of each relation: how it was built, what it may lack

    def relation(self, name: str) -> Relation:
        """Edges for PyTorch Geometric, as ``ObservedGraph`` gives them."""
        row, weight = (self.within_row, self.within_weight) if name == "within" else (self.cross_row, self.cross_weight)
        lists = NeighbourLists(0, row.shape[1])
        lists.source, lists.weight = row.astype(np.int64), weight.astype(np.float64)
        return Relation.from_lists(lists)

    def carrier(self, name: str) -> ListCarrier:
        """From each source to who listens to it."""
        row, weight = (self.within_row, self.within_weight) if name == "within" else (self.cross_row, self.cross_weight)
        return ListCarrier(RELATIONS.index(name), ops.reverse_lists(row, weight), self.digest, self.about.get(name, {}))

    def carriers(self) -> Carriers:
        """Of both relations."""
        return {name: self.carrier(name) for name in RELATIONS}

    def save(self, path: Path | str) -> None:
        """Write lists, fingerprint and how they were built, whole or not at all."""
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        write_arrays(path, {"format": _FORMAT, "graph": self.digest, "content": self._content(), "about": self.about}, arrays)

    @classmethod
    def load(cls, path: Path | str, features: Features, offsets: np.ndarray, num_within: int, num_cross: int) -> "StaticLists":
        """Read what ``save`` wrote.

        Raises:
            StateError: a missing or damaged file, or lists of other features, another layout or other numbers of slots.
        """
        header, arrays = read_arrays(path, _FORMAT, _ARRAYS)
        lists = cls(**arrays, digest=header["graph"], about=header["about"])
        if header["content"] != lists._content():
            raise StateError(f"graph file {path}: the content does not match its digest {header['content'][:12]}; build the graph again")
        lists.refuse_stale(features, offsets, num_within, num_cross, f"graph file {path}")
        return lists

    def refuse_stale(self, features: Features, offsets: np.ndarray, num_within: int, num_cross: int, name: str = "graph") -> None:
        """Say that lists do not belong here.

        Raises:
            StateError: they were made from other features, another layout or other numbers of slots.
        """
        wanted = lists_digest(features, offsets, num_within, num_cross, self._content() if _is_approximate(self.about) else "")
        if self.digest != wanted:
            raise StateError(
                f"{name} is stale: its lists were built from other features, environments or numbers of neighbours "
                f"(graph {self.digest[:12]}, here {wanted[:12]}); build the graph again, or load it with what it was made for"
            )

    def _content(self) -> str:
        return digest(*(getattr(self, name).tobytes() for name in _ARRAYS))


def build_lists(features: Features, offsets: np.ndarray, num_within: int, num_cross: int, limits: Limits = Limits()) -> StaticLists:
    """Lists of every task among all others, exact within ``limits``; ``num_cross`` 0 where the cross relation has no lists.

    Args:
        features: N rows.
        offsets: rows of each environment, int64 [M + 1].
    """
    within = ops.within_lists(features.within, offsets, num_within)
    *cross, found = build_cross(features.cross, offsets, num_cross, limits)
    about = {"within": dict(EXACT), "cross": found}
    content = digest(*(part.tobytes() for part in (*within, *cross))) if _is_approximate(about) else ""
    return StaticLists(*within, *cross, lists_digest(features, offsets, num_within, num_cross, content), about)


def lists_digest(features: Features, offsets: np.ndarray, num_within: int, num_cross: int, content: str = "") -> str:
    """What exact lists follow from; approximate ones follow from more than can be named, and count themselves."""
    layout = np.ascontiguousarray(offsets, dtype=np.int64).tobytes()
    return digest("envsched static graph 1", features.digest, layout, f"{num_within},{num_cross}", content)


def _is_approximate(about: Mapping[str, Mapping[str, Any]]) -> bool:
    return any(part.get("recall", 1.0) < 1 or part.get("certified", 1.0) < 1 for part in about.values())


class StaticGraph(ObservedGraph):
    """Static lists behind the interface of the observed ones: what ``static`` mode is without a native library, and what the
    maintained sums are tested against."""

    def __init__(
        self,
        features: Features,
        environment_of: np.ndarray,
        num_within: int,
        num_cross: int,
        limits: Limits = Limits(),
        lists: StaticLists | None = None,
    ) -> None:
        super().__init__(features, environment_of, num_within, num_cross)
        offsets = np.searchsorted(environment_of, np.arange(int(environment_of[-1]) + 2))
        lists = lists or build_lists(features, offsets, num_within, num_cross, limits)
        self._relations = {name: lists.relation(name) for name in ("within", "cross")}
        self.digest = lists.digest
        self.header = {"mode": "static", "exact": False, **lists.about}

    def observe(self, rows: Sequence[int] | np.ndarray) -> None:
        """Nothing changes: a neighbour without evidence weighs nothing anyway."""

    def reset(self) -> None:
        """Nothing was learned."""
        self._is_observed = np.zeros(len(self.features), dtype=bool)


def build_stream(features: Features, offsets: np.ndarray) -> Stream:
    """Codes of the cross features, and as floor the median similarity of random pairs of different environments.

    A wide kernel pays: where topology decides, floors at higher quantiles (0.8, 0.95) ranked unseen tasks worse
    (``python -m benchmarks.modes``; BENCHMARKS.md has the table).
    """
    floor, name = stream_floor(features, offsets)
    return Stream(native.Quantised(features.cross, ops.num_threads()), floor, name)


def stream_floor(features: Features, offsets: np.ndarray) -> tuple[float, str]:
    """The similarity from which a source is heard, and the digest of the stream that it makes."""
    generator = np.random.Generator(np.random.Philox(key=[0, 0]))
    rows = generator.integers(len(features), size=(2, 1 << 14))
    environment = np.searchsorted(offsets, rows, side="right")
    a, b = rows[:, environment[0] != environment[1]]
    similarity = pair_products(features.cross, a, b)
    floor = float(np.clip(np.quantile(similarity, _HEARD), 0, _HIGHEST_FLOOR)) if len(a) else 0.0
    return floor, digest("envsched stream 1", features.digest, offsets.tobytes(), repr(floor))
