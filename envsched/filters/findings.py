"""What ``pool check`` found, for the scheduler: floors of rewards, and tasks that can teach nothing."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from envsched.errors import StateError
from envsched.filters.mask import Mask
from envsched.pool import Pool


def mask_findings(report: Path, pool: Pool) -> Mask:
    """Tasks whose checks are all vacuous, pass at the start, or can't be run.

    Args:
        report: what ``envsched pool check --json`` wrote.

    Raises:
        StateError: the report is unreadable, or of another pool.
    """
    masks = _read(report, pool)["masks"]
    return Mask.of({pool.row_of(task): f"pool check: {reason}" for task, reason in masks.items()}, len(pool))


def read_floors(report: Path, pool: Pool) -> np.ndarray:
    """Reward of doing nothing, float64 [N]; NaN where it can't be computed.

    Raises:
        StateError: as ``mask_findings``.
    """
    floors = np.full(len(pool), np.nan)
    for task, floor in _read(report, pool)["floors"].items():
        floors[pool.row_of(task)] = floor
    return floors


def _read(report: Path, pool: Pool) -> dict[str, Any]:
    try:
        content = json.loads(report.read_text(encoding="utf-8"))
        fingerprint, _, _ = content["fingerprint"], content["masks"], content["floors"]
    except OSError as error:
        raise StateError(f"report {report}: {error.strerror}; write it with: envsched pool check POOL --json {report}") from None
    except (ValueError, KeyError, TypeError):
        raise StateError(f"report {report} is not what envsched pool check --json writes; write it again") from None
    if fingerprint != pool.fingerprint:
        raise StateError(
            f"report {report} belongs to the pool {fingerprint[:12]}, this one is {pool.fingerprint[:12]}; "
            f"write it again with: envsched pool check POOL --json {report}"
        )
    return content
