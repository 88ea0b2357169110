"""A batch with its provenance, as JSON."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import envsched
from envsched.errors import AuditError
from envsched.files import parse_json, write_json
from envsched.types import Batch, Lane, Manifest, Pick, Relaxation, Scheduler


def make_manifest(batch: Batch, scheduler: Scheduler) -> Manifest:
    """The batch with what it follows from, as far as the scheduler knows it (one with the five verbs alone has no digests)."""
    digests = scheduler.digests(batch.step) if hasattr(scheduler, "digests") else {}
    name = getattr(scheduler, "name", type(scheduler).__name__)
    graph = getattr(scheduler, "graph_header", {})
    change = next((change.to_json() for change in getattr(scheduler, "changes", ()) if change.step == batch.step), None)
    return Manifest(batch, digests, int(getattr(scheduler, "seed", 0)), envsched.__version__, name, graph, change)


def manifest_to_mapping(manifest: Manifest) -> dict[str, Any]:
    """JSON-able; floats survive exactly."""
    batch = manifest.batch
    return {
        "step": batch.step,
        "scheduler": manifest.scheduler,
        "seed": manifest.seed,
        "version": manifest.version,
        "digests": dict(manifest.digests),
        "graph": dict(manifest.graph),
        "gap": batch.gap,
        **({"pool_change": dict(manifest.pool_change)} if manifest.pool_change else {}),
        "relaxed": [asdict(relaxation) for relaxation in batch.relaxed],
        "picks": [_pick(pick) for pick in batch.picks],
        **({"masked": dict(batch.masked)} if batch.masked else {}),
    }


def write_manifest(path: Path | str, manifest: Manifest) -> None:
    """Write JSON, whole or not at all: on a full disk an old manifest stays as it was.

    Raises:
        OSError: as the file system gave it, with the path.
    """
    try:
        write_json(path, manifest_to_mapping(manifest))
    except OSError as error:  # a full disk is noticed on the neighbour that is written first, which says nothing to anyone
        raise OSError(error.errno, error.strerror, str(path)) from error


def read_manifest(path: Path | str) -> Manifest:
    """What ``write_manifest`` wrote.

    Raises:
        AuditError: the file can't be read or is no manifest; names it.
    """
    value = read_mapping(path)
    try:
        picks = tuple(
            Pick(p["task"], p["environment"], Lane(p["lane"]), p["score"], dict(p["terms"]), tuple(p["bound_by"])) for p in value["picks"]
        )
        relaxed = tuple(Relaxation(r["quota"], r["reason"]) for r in value["relaxed"])
        batch = Batch(value["step"], picks, relaxed, value["gap"], dict(value.get("masked", {})))
        change = dict(value["pool_change"]) if "pool_change" in value else None
        return Manifest(batch, dict(value["digests"]), value["seed"], value["version"], value["scheduler"], dict(value["graph"]), change)
    except (KeyError, TypeError, ValueError) as error:
        raise AuditError(f"{path} is no manifest: {type(error).__name__} {error}; restore it from the run") from None


def read_mapping(path: Path | str) -> Mapping[str, Any]:
    """A JSON object from a file.

    Raises:
        AuditError: the file can't be read or holds something else.
    """
    try:
        value = parse_json(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise AuditError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise AuditError(f"{path} is not valid JSON: {error}; restore it from the run") from None
    if not isinstance(value, dict):
        raise AuditError(f"{path}: expected a JSON object, came {type(value).__name__}")
    return value


def _pick(pick: Pick) -> dict[str, Any]:
    return {
        "task": pick.task,
        "environment": pick.environment,
        "lane": pick.lane.value,
        "score": pick.score,
        "terms": dict(pick.terms),
        "bound_by": list(pick.bound_by),
    }
