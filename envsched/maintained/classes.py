"""The cross relation between canonical topologies: a class of tasks hears its own class and the K most similar ones.

Letters: N tasks, M environments, U classes, K slots.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from envsched import ops
from envsched.features import Features
from envsched.files import digest
from envsched.graph.classes import Classes, topology_classes
from envsched.graph.similarity import pair_products
from envsched.maintained.carriers import Gifts, Sums
from envsched.maintained.cross_build import Limits, build_cross
from kernels import live


@dataclass(frozen=True, eq=False)
class ClassCarrier:
    """Every visited task of a heard class lends, but those of the listener's own environment: their part of the class's total is
    left out."""

    classes: Classes
    listeners: tuple[np.ndarray, np.ndarray, np.ndarray]  # pointer int64 [U + 1], target int32 [E], weight float32 [E]
    environment_of: np.ndarray  # int32 [N]
    num_environments: int
    digest: str
    about: Mapping[str, Any]
    by_last_visit: bool = False
    tells_anew: bool = True

    def fresh(self) -> "ClassCarrier":
        return self

    def carry(self, gifts: Gifts, sums: Sums) -> int:
        return live.scatter_classes(
            sums.values, sums.peak, self.listeners, self.classes.pointer, self.classes.member, self.environment_of, self.classes.class_of,
            self.num_environments, gifts.source, gifts.more_mass, gifts.more_value, sums.shrinkage,
        )  # fmt: skip

    def rescale(self, exponent: int) -> None:
        """Nothing is kept."""


def build_class_carrier(features: Features, offsets: np.ndarray, num_cross: int, limits: Limits) -> ClassCarrier:
    """Classes of equal topologies, each with its ``num_cross`` most similar others; 0: its own tasks alone.

    Args:
        features: N rows.
        offsets: rows of each environment, int64 [M + 1].
    """
    classes = topology_classes(features.cross)
    first, own = classes.first, np.arange(len(classes))
    row, weight, about = build_cross(features.cross[first], np.arange(len(classes) + 1), num_cross, limits)
    row = np.concatenate([own[:, None].astype(np.int32), row], axis=1)
    weight = np.concatenate([pair_products(features.cross, first[:, None], first[:, None]).astype(np.float32), weight], axis=1)
    row[weight == 0] = -1
    environment_of = np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))
    layout = np.ascontiguousarray(offsets, dtype=np.int64).tobytes()
    found = b"" if about.get("certified", 1.0) == 1 else row.tobytes() + weight.tobytes()
    name = digest("envsched classes 1", features.digest, layout, str(num_cross), found)
    told = {**about, "carried": "classes", "classes": len(classes)}
    return ClassCarrier(classes, ops.reverse_lists(row, weight), environment_of, len(offsets) - 1, name, told)
