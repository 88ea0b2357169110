"""Graph files: the observed set and its lists under the fingerprint of what they were built from."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from envsched.errors import StateError
from envsched.features.arrays import read_arrays, write_arrays
from envsched.files import digest
from envsched.graph.lists import NeighbourLists

_FORMAT = "envsched graph 1"
_ARRAYS = ("observed", "within_source", "within_weight", "cross_source", "cross_weight")


def write_graph(
    path: Path | str,
    fingerprint: Mapping[str, Any],
    about: Mapping[str, Any],
    observed: np.ndarray,
    within: NeighbourLists,
    cross: NeighbourLists,
) -> None:
    """Write one ``.npz`` file, whole or not at all; ``fingerprint`` names what the lists depend on, ``about`` how they were made."""
    values = (observed, within.source, within.weight, cross.source, cross.weight)
    arrays = dict(zip(_ARRAYS, values, strict=True))
    write_arrays(path, {"format": _FORMAT, **fingerprint, "about": dict(about), "content": _content(arrays)}, arrays)


def read_graph(path: Path | str, fingerprint: Mapping[str, Any]) -> tuple[np.ndarray, NeighbourLists, NeighbourLists]:
    """Observed rows and the lists within and across environments.

    Raises:
        StateError: the file is missing or damaged, or one value of ``fingerprint`` differs; names the file and which.
    """
    header, arrays = read_arrays(path, _FORMAT, _ARRAYS)
    for name, value in fingerprint.items():
        if header.get(name) != value:
            raise StateError(
                f"graph file {path} is stale: its {name} is {str(header.get(name))[:12]}, here it is {str(value)[:12]}; "
                "build the graph again, or load it with what it was made for"
            )
    if header["content"] != _content(arrays):
        raise StateError(f"graph file {path}: the content does not match its digest {header['content'][:12]}; build the graph again")
    return arrays["observed"], _lists(arrays, "within"), _lists(arrays, "cross")


def _content(arrays: dict[str, np.ndarray]) -> str:
    return digest(*(arrays[name].tobytes() for name in _ARRAYS))


def _lists(arrays: dict[str, np.ndarray], relation: str) -> NeighbourLists:
    lists = NeighbourLists(*arrays[f"{relation}_source"].shape)
    lists.source, lists.weight = arrays[f"{relation}_source"], arrays[f"{relation}_weight"]
    return lists
