"""The graph of observed neighbours, METHOD section 4.

Letters: N tasks, E edges, K slots. The lists are a pure function of the **set** of observed tasks: the order in which
tasks were observed, and how many at a time, leaves no trace.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch_geometric.data import HeteroData

from envsched import ops
from envsched.features import Features
from envsched.files import digest
from envsched.graph.exact import build_cross, build_within
from envsched.graph.lists import NeighbourLists
from envsched.graph.relation import Relation
from envsched.graph.similarity import pair_products, products
from envsched.graph.storage import read_graph, write_graph
from kernels import native

_SIEVE_FROM = 1024  # tasks from which the int8 pass pays
_TARGETS = 1 << 16  # targets whose similarities to the new sources are in memory at once


class ObservedGraph:
    """For each task its best observed tasks in the same environment and in others.

    Args:
        features: N rows.
        environment_of: int64 [N], ascending.
        num_within: slots for neighbours of the same environment.
        num_cross: slots for neighbours of other environments.

    ``header`` says how the lists were made; it stands in saved graphs and in manifests. ``exact``: they are METHOD's.
    """

    mode: ClassVar[str] = "incremental_exact"

    def __init__(self, features: Features, environment_of: np.ndarray, num_within: int = 6, num_cross: int = 12) -> None:
        self.features = features
        self.environment_of = np.asarray(environment_of, dtype=np.int64)
        self.num_within, self.num_cross = num_within, num_cross
        assert len(features) == len(self.environment_of), "features and environment_of must have one row a task"
        assert np.all(np.diff(self.environment_of) >= 0), "tasks must be laid out by environment"
        self.digest = digest("envsched graph 1", features.digest, self.environment_of.tobytes(), f"{num_within},{num_cross}")
        self.header: dict[str, Any] = {"mode": self.mode, "exact": True}
        self._codes = native.Quantised(features.cross, ops.num_threads()) if ops.has_int8() and len(features) >= _SIEVE_FROM else None
        self.reset()

    def reset(self) -> None:
        """Forget every observation."""
        self._is_observed = np.zeros(len(self.features), dtype=bool)
        self._set_lists(NeighbourLists(len(self.features), self.num_within), NeighbourLists(len(self.features), self.num_cross))

    @property
    def observed(self) -> np.ndarray:
        """Rows of observed tasks, int64, ascending."""
        return np.flatnonzero(self._is_observed)

    def observe(self, rows: Sequence[int] | np.ndarray) -> None:
        """Take in tasks with their first variance evidence; tasks observed before change nothing.

        Only similarities of the new tasks are computed, and merged into the lists.
        """
        rows = np.unique(np.asarray(rows, dtype=np.int64))
        assert rows.size == 0 or (rows[0] >= 0 and rows[-1] < len(self.features)), "rows lie in 0..N-1"
        new = rows[~self._is_observed[rows]]
        if new.size == 0:
            return
        self._is_observed[new] = True
        self._offer_within(new)
        self._offer_cross(new)
        self._relations.clear()

    def rebuild(self) -> None:
        """Build the lists again from the observed set alone, through FAISS: the reference for ``observe``."""
        self._set_lists(
            build_within(self.features, self.environment_of, self.observed, self.num_within),
            build_cross(self.features, self.environment_of, self.observed, self.num_cross),
        )

    def lists(self, relation: str) -> tuple[np.ndarray, np.ndarray]:
        """Sources int64 [N, K] (-1: none) and weights float64 [N, K] of ``within`` or ``cross``, in list order; not to be written."""
        kept = self._within if relation == "within" else self._cross
        return kept.source, kept.weight

    @property
    def within(self) -> Relation:
        """Edges inside environments."""
        return self._relation("within")

    @property
    def cross(self) -> Relation:
        """Edges between environments."""
        return self._relation("cross")

    def similarity(self, rows_a: Sequence[int] | np.ndarray, rows_b: Sequence[int] | np.ndarray) -> np.ndarray:
        """float64 [A, B] in [0, 1]: within for a pair of one environment (a task with itself included), else cross."""
        rows_a, rows_b = np.asarray(rows_a, dtype=np.int64), np.asarray(rows_b, dtype=np.int64)
        out = products(self.features.cross[rows_a], self.features.cross[rows_b])
        a, b = np.nonzero(self.environment_of[rows_a, None] == self.environment_of[rows_b])
        out[a, b] = pair_products(self.features.within, rows_a[a], rows_b[b])
        return out

    def to_hetero(self) -> HeteroData:
        """Both relations over node type ``task``, with ``edge_weight`` and ``observed`` bool [N]."""
        data = HeteroData()
        data["task"].num_nodes = len(self.features)
        data["task"].observed = torch.from_numpy(self._is_observed.copy())
        for name in ("within", "cross"):
            relation = self._relation(name)
            data["task", name, "task"].edge_index = relation.edge_index
            data["task", name, "task"].edge_weight = relation.edge_weight
        return data

    def save(self, path: Path | str) -> None:
        """Write observed set, lists and fingerprint, whole or not at all."""
        write_graph(path, self._fingerprint(), self.header, self.observed, self._within, self._cross)

    @classmethod
    def load(
        cls, path: Path | str, features: Features, environment_of: np.ndarray, num_within: int = 6, num_cross: int = 12
    ) -> "ObservedGraph":
        """Read what ``save`` wrote.

        Raises:
            StateError: a missing or damaged file, or a graph of other features or other slots; names the file and what differs.
        """
        graph = cls(features, environment_of, num_within, num_cross)
        observed, within, cross = read_graph(path, graph._fingerprint())
        graph._is_observed[observed] = True
        graph._set_lists(within, cross)
        return graph

    def _fingerprint(self) -> dict[str, Any]:
        return {"features": self.features.digest, "num_within": self.num_within, "num_cross": self.num_cross, "graph": self.digest}

    def _offer_within(self, new: np.ndarray) -> None:
        if ops.backend() == "native" and self.num_within:
            start, stop = self._bounds(new)
            native.offer_within(self.features.within, new, start, stop, self._within.source, self._within.weight)
            return
        environments, first = np.unique(self.environment_of[new], return_index=True)
        bounds = np.searchsorted(self.environment_of, np.stack([environments, environments + 1]))
        for (start, stop), sources in zip(bounds.T, np.split(new, first[1:]), strict=True):
            targets = np.arange(start, stop)
            weight = products(self.features.within[start:stop], self.features.within[sources])
            weight[sources - start, np.arange(sources.size)] = 0
            self._within.offer(targets, sources, weight)

    def _offer_cross(self, new: np.ndarray) -> None:
        if self._codes is not None and self.num_cross:
            start, stop = self._bounds(new)
            native.offer(self._codes, new, start, stop, self._cross.source, self._cross.weight, ops.num_threads())
            return
        for start in range(0, len(self.features), _TARGETS):
            targets = np.arange(start, min(start + _TARGETS, len(self.features)))
            weight = products(self.features.cross[targets], self.features.cross[new])
            weight[self.environment_of[targets, None] == self.environment_of[new]] = 0
            self._cross.offer(targets, new, weight)

    def _bounds(self, rows: np.ndarray) -> np.ndarray:
        """Where the environments of rows [n] begin and end, int64 [2, n]."""
        environment = self.environment_of[rows]
        return np.searchsorted(self.environment_of, [environment, environment + 1])

    def _set_lists(self, within: NeighbourLists, cross: NeighbourLists) -> None:
        self._within, self._cross = within, cross
        self._relations: dict[str, Relation] = {}

    def _relation(self, name: str) -> Relation:
        if name not in self._relations:
            self._relations[name] = Relation.from_lists(self._within if name == "within" else self._cross)
        return self._relations[name]


class RebuiltGraph(ObservedGraph):
    """The same graph with its lists made from scratch at every change: the reference of ``graph_mode: exact``."""

    mode = "exact"

    def observe(self, rows: Sequence[int] | np.ndarray) -> None:
        """Take in tasks with their first variance evidence, and build all lists again through FAISS."""
        rows = np.asarray(rows, dtype=np.int64)
        if rows.size and not self._is_observed[rows].all():
            self._is_observed[rows] = True
            self.rebuild()
