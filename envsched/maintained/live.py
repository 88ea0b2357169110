"""Live lists: of each task the sources whose evidence, ranked by likeness, is largest now, so that what has decayed leaves.

A source counts mass 2^(t_last / h - base) for good until it is visited again, and then more: the K largest k(s)^2 mass stay the
K largest as time passes. Each step offers its batch to all lists, in one pass over the int8 codes, and nothing is looked up
again. A source lends k(s) mass; ranked by that itself, lists held little but the newest visits.

Under the residual prior nothing fades: a list holds the likest of all that were ever seen, and only a task's first visit is offered.
What it tells from then on changes in the table alone, and all sums are written anew from the lists, without the codes.

Letters: N tasks, D features, K slots, S sources, h half-life.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from envsched import ops
from envsched.features import Features
from envsched.maintained.carriers import RELATIONS, Gifts, Sums
from kernels import live, native


class _LiveCarrier(ABC):
    """Lists and the tables of visited tasks that they point to."""

    by_last_visit = True
    tells_anew = True
    relation: ClassVar[int]

    def __init__(self, num_tasks: int, num_slots: int, digest: str) -> None:
        self.digest = digest
        self.num_tasks, self.num_slots = num_tasks, num_slots
        self._lists = live.LiveLists(num_tasks, num_slots)
        self._table, self._row = np.zeros((256, 2), np.float32), np.zeros(256, np.int32)

    @property
    def about(self) -> Mapping[str, Any]:
        return {"carried": "live lists", "slots": self.num_slots}

    @property
    def nbytes(self) -> int:
        return self._lists.nbytes

    def carry(self, gifts: Gifts, sums: Sums) -> int:
        self._note(gifts)
        if not sums.shrinkage:
            return self._offer(gifts, sums)
        first = gifts.more_mass > 0
        edges = self._offer(gifts.only(first), sums) if first.any() else 0
        if not first.all():
            live.settle(
                self._lists, self.relation, self._table, self._row, sums.values, sums.peak, ops.num_threads(), sums.shrinkage
            )  # fmt: skip
        return edges

    @abstractmethod
    def _offer(self, gifts: Gifts, sums: Sums) -> int:
        """Let the sources of the gifts into the lists that they belong to."""

    def rescale(self, exponent: int) -> None:
        self._lists.root *= np.float32(2.0 ** (-exponent // 4))
        self._lists.least *= np.float32(2.0 ** (-exponent // 4))
        self._table *= np.float32(2.0 ** (-exponent // 2))

    def _note(self, gifts: Gifts) -> None:
        lacking = int(gifts.slot.max()) + 1 - len(self._row)
        if lacking > 0:
            more = max(lacking, len(self._row))
            self._table, self._row = np.pad(self._table, ((0, more), (0, 0))), np.pad(self._row, (0, more))
        self._table[gifts.slot, 1] = np.sqrt(gifts.mass)
        self._table[gifts.slot, 0] = gifts.value / np.sqrt(gifts.mass)
        self._row[gifts.slot] = gifts.source


class LiveWithin(_LiveCarrier):
    """Inside environments: k(s) = s, the exact similarity."""

    relation = RELATIONS.index("within")

    def __init__(self, features: Features, num_slots: int, digest: str) -> None:
        super().__init__(len(features), num_slots, digest)
        self._features = features

    def fresh(self) -> "LiveWithin":
        return LiveWithin(self._features, self.num_slots, self.digest)

    def _offer(self, gifts: Gifts, sums: Sums) -> int:
        live.live_within(
            self._lists, self._features.within, gifts.source, gifts.slot, gifts.mass, gifts.start, gifts.stop,
            self._table, self._row, sums.values, sums.peak, sums.shrinkage,
        )  # fmt: skip
        return int((gifts.stop - gifts.start).sum())


class LiveCross(_LiveCarrier):
    """Across environments: k(s) is the stream's (``carriers.Stream``)."""

    relation = RELATIONS.index("cross")

    def __init__(self, codes: native.Quantised, floor: float, num_slots: int, digest: str) -> None:
        super().__init__(len(codes.vectors), num_slots, digest)
        self._codes, self.floor = codes, floor

    @property
    def about(self) -> Mapping[str, Any]:
        return {**super().about, "floor": self.floor}

    def fresh(self) -> "LiveCross":
        return LiveCross(self._codes, self.floor, self.num_slots, self.digest)

    def _offer(self, gifts: Gifts, sums: Sums) -> int:
        live.live_cross(
            self._lists, self._codes, gifts.source, gifts.slot, gifts.mass, gifts.start, gifts.stop, self.floor,
            self._table, self._row, sums.values, sums.peak, ops.num_threads(), sums.shrinkage,
        )  # fmt: skip
        return len(gifts.source) * self.num_tasks
