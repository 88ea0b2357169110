"""How the evidence of visited tasks reaches the sums of others: along lists built once, or through a stream to all tasks.

A graph mode is a carrier for each relation; the sums that a step reads are the same for all of them.

Letters: N tasks, D features, K slots, E edges, S sources whose evidence changed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np

from envsched import ops
from envsched.files import digest
from kernels import native

RELATIONS = ("within", "cross")  # column pairs of the sums


@dataclass(frozen=True, slots=True)
class Gifts:
    """What S visited tasks count now, on the scale of the sums."""

    source: np.ndarray  # rows, int64 [S]
    slot: np.ndarray  # their place in the tables of visited tasks, int64 [S]
    start: np.ndarray  # rows of their own environment: start .. stop, int64 [S]
    stop: np.ndarray
    mass: np.ndarray  # float64 [S]
    value: np.ndarray  # mass times own variance, float64 [S]
    more_mass: np.ndarray  # what mass and value exceed the last gift of the same task by, float64 [S]
    more_value: np.ndarray

    def only(self, wanted: np.ndarray) -> "Gifts":
        """Those of ``wanted``, bool [S]."""
        return Gifts(*(getattr(self, field.name)[wanted] for field in fields(self)))


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """What the neighbours of N tasks say."""

    values: np.ndarray  # W_w, m_w, W_c, m_c, float32 [N, 4]
    peak: np.ndarray  # upper bound over each block of 16 tasks: of W_w + W_c, or of both residuals; float32 [N / 16]
    shrinkage: float  # of residuals; 0: the sums hold none


class Carrier(Protocol):
    """Carries gifts to the sums of one relation; their peak keeps up."""

    @property
    def by_last_visit(self) -> bool:
        """A source counts the decayed weight of its last visit (METHOD section 12 allows it): it gives only when visited."""
        ...

    @property
    def tells_anew(self) -> bool:
        """What a source tells can change without a pass over the pool's codes: residuals are told whenever they have moved."""
        ...

    @property
    def digest(self) -> str: ...

    @property
    def about(self) -> Mapping[str, Any]:
        """How the relation is carried and what it may lack, for headers and manifests."""
        ...

    def fresh(self) -> "Carrier":
        """The same carrier before any gift."""
        ...

    def carry(self, gifts: Gifts, sums: Sums) -> int:
        """Change the sums; the number of edges followed."""
        ...

    def rescale(self, exponent: int) -> None:
        """The scale of the sums shrinks by 2^-exponent, a multiple of 4."""
        ...


Carriers = Mapping[str, Carrier]


@dataclass(frozen=True, eq=False)
class ListCarrier:
    """Along the edges of lists over **all** tasks, built once."""

    relation: int
    reversed: tuple[np.ndarray, np.ndarray, np.ndarray]  # pointer int64 [N + 1], target int32 [E], weight float32 [E]
    digest: str
    about: Mapping[str, Any]
    by_last_visit: bool = False
    tells_anew: bool = True

    def fresh(self) -> "ListCarrier":
        return self

    def carry(self, gifts: Gifts, sums: Sums) -> int:
        return native.scatter(
            sums.values, sums.peak, self.reversed, self.relation, gifts.source, gifts.more_mass, gifts.more_value, sums.shrinkage
        )

    def rescale(self, exponent: int) -> None:
        """Nothing is kept."""


@dataclass(frozen=True, eq=False)
class Stream:
    """The cross relation without lists: every task hears every visited task, weighted by
    k(s) = max(0, (s - floor) / (1 - floor))^2 of the similarity of their int8 codes."""

    codes: native.Quantised
    floor: float
    digest: str
    by_last_visit: bool = True
    tells_anew: bool = False

    @property
    def about(self) -> Mapping[str, Any]:
        return {"carried": "stream", "floor": self.floor}

    def fresh(self) -> "Stream":
        return self

    def carry(self, gifts: Gifts, sums: Sums) -> int:
        codes, scale = self.codes.codes_of(gifts.source)
        native.stream(
            self.codes, codes, scale, gifts.more_mass, gifts.more_value, gifts.start, gifts.stop, self.floor, sums.values, sums.peak,
            ops.num_threads(), sums.shrinkage,
        )  # fmt: skip
        return len(gifts.source) * len(sums.values)

    def rescale(self, exponent: int) -> None:
        """Nothing is kept."""


@dataclass(frozen=True, eq=False)
class Both:
    """Two carriers of one relation."""

    first: Carrier
    second: Carrier

    @property
    def by_last_visit(self) -> bool:
        return self.first.by_last_visit or self.second.by_last_visit

    @property
    def tells_anew(self) -> bool:
        return self.first.tells_anew and self.second.tells_anew

    @property
    def digest(self) -> str:
        return digest("envsched both 1", self.first.digest, self.second.digest)

    @property
    def about(self) -> Mapping[str, Any]:
        return {**self.first.about, "with": dict(self.second.about)}

    def fresh(self) -> "Both":
        return Both(self.first.fresh(), self.second.fresh())

    def carry(self, gifts: Gifts, sums: Sums) -> int:
        return self.first.carry(gifts, sums) + self.second.carry(gifts, sums)

    def rescale(self, exponent: int) -> None:
        self.first.rescale(exponent)
        self.second.rescale(exponent)
