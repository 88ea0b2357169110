"""Pools that a run had: an outline of each one that is gone, with the step at which the next took its place."""

from collections.abc import Mapping, Sequence
from typing import Any

from envsched.audit.layout import RunLayout
from envsched.audit.manifest import read_mapping
from envsched.errors import AuditError
from envsched.files import write_json
from envsched.pool.outline import Outline

_FORMAT = "envsched pools 1"


def read_epochs(layout: RunLayout) -> list[tuple[int, Outline]]:
    """(step at which it went, outline) of each pool that is gone, in their order; empty where the pool never changed.

    Raises:
        AuditError: the file can't be read or holds something else.
    """
    if not layout.pools.exists():
        return []
    content = read_mapping(layout.pools)
    try:
        if content["format"] != _FORMAT:
            raise ValueError(f"format {content['format']!r}")
        epochs = [(int(gone["until"]), Outline.from_json(gone["outline"])) for gone in content["pools"]]
    except (KeyError, TypeError, ValueError) as error:
        raise AuditError(f"{layout.pools} lists no pools: {type(error).__name__} {error}; restore it from the run") from None
    if [step for step, _ in epochs] != sorted({step for step, _ in epochs}):
        raise AuditError(f"{layout.pools} lists pools out of order; restore it from the run")
    return epochs


def write_epochs(layout: RunLayout, epochs: Sequence[tuple[int, Outline]]) -> None:
    """Write what ``read_epochs`` reads; nothing where no pool ever went."""
    if epochs or layout.pools.exists():
        gone: list[Mapping[str, Any]] = [{"until": step, "outline": outline.to_json()} for step, outline in epochs]
        write_json(layout.pools, {"format": _FORMAT, "pools": gone})
