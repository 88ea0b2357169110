"""What a run leaves behind for its audit."""

from pathlib import Path
from typing import Any

from envsched.audit.layout import RunLayout
from envsched.audit.manifest import make_manifest, write_manifest
from envsched.files import write_json
from envsched.types import Batch, Scheduler


def write_batch(folder: Path | str, batch: Batch, scheduler: Scheduler) -> None:
    """Write the input audit and the manifest of a batch into a run directory; call it before the first rollout.

    Raises:
        OSError: as the file system gave it; an old file stays whole.
    """
    write_input_audit(folder, batch.step, scheduler)
    write_manifest(RunLayout(Path(folder)).manifest(batch.step), make_manifest(batch, scheduler))


def write_input_audit(folder: Path | str, step: int, scheduler: Scheduler) -> None:
    """Write what the batch of ``step`` follows from.

    ``write_batch`` does so. Called with N + 1 once the records of step N are observed, it also vouches for the rollouts of a
    run's last step, which no manifest follows.
    """
    write_json(RunLayout(Path(folder)).input_audit(step), input_audit(step, scheduler))


def input_audit(step: int, scheduler: Scheduler) -> dict[str, Any]:
    """Digests and counts of the inputs of ``step``; no digests for a scheduler with the five verbs alone."""
    found: dict[str, Any] = {"step": step, "scheduler": getattr(scheduler, "name", type(scheduler).__name__)}
    if hasattr(scheduler, "digests"):
        found["digests"] = scheduler.digests(step)
    if hasattr(scheduler, "history"):
        visits = scheduler.history.visits.before(step)
        found["history"] = {"records": len(visits), "valid_rollouts": int(visits.num_valid.sum())}
    return found
