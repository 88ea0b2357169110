"""What ``pool check`` found, for the scheduler: floors of rewards, and tasks that can teach nothing. Letters: N tasks."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from envsched.errors import StateError
from envsched.files import canonical_json, digest, parse_json
from envsched.filters.mask import Mask
from envsched.pool import Pool


@dataclass(frozen=True, eq=False)
class Findings:
    """What is known of a pool before any rollout.

    ``floors``: reward of doing nothing, float64 [N], NaN where it can't be computed. ``mask``: tasks whose checks are all
    vacuous, pass at the start, or can't be run, with the reasons. ``digest``: of both.
    """

    floors: np.ndarray
    mask: Mask
    digest: str

    @classmethod
    def read(cls, report: Path | str, pool: Pool) -> "Findings":
        """What ``envsched pool check --json`` wrote about ``pool``.

        Raises:
            StateError: the report is unreadable, or of another pool.
        """
        content = _read(Path(report), pool)
        floors = np.full(len(pool), np.nan)
        for task, floor in content["floors"].items():
            floors[pool.row_of(task)] = floor
        reasons = {pool.row_of(task): f"pool check: {reason}" for task, reason in content["masks"].items()}
        said = canonical_json([content["fingerprint"], content["floors"], content["masks"]])
        return cls(floors, Mask.of(reasons, len(pool)), digest("envsched findings 1", said))

    def floor_of(self, pool: Pool) -> dict[str, float]:
        """Floors by task key, where they are known."""
        return {task.key: float(floor) for task, floor in zip(pool.tasks, self.floors, strict=True) if not np.isnan(floor)}


def _read(report: Path, pool: Pool) -> dict[str, Any]:
    try:
        content = parse_json(report.read_text(encoding="utf-8"))
        fingerprint, masks, floors = content["fingerprint"], content["masks"], content["floors"]
    except OSError as error:
        raise StateError(f"report {report}: {error.strerror}; write it with: envsched pool check POOL --json {report}") from None
    except (ValueError, KeyError, TypeError):
        raise StateError(f"report {report} is not what envsched pool check --json writes; write it again") from None
    if fingerprint != pool.fingerprint:
        raise StateError(
            f"report {report} belongs to the pool {str(fingerprint)[:12]}, this one is {pool.fingerprint[:12]}; "
            f"write it again with: envsched pool check POOL --json {report}"
        )
    if not _are_findings(masks, floors, pool):
        raise StateError(f"report {report} has floors or masks that were altered; write it again")
    return content


def _are_findings(masks: Any, floors: Any, pool: Pool) -> bool:
    if not isinstance(masks, dict) or not isinstance(floors, dict) or not all(key in pool for key in (*masks, *floors)):
        return False
    numbers = all(isinstance(floor, (int, float)) and not isinstance(floor, bool) for floor in floors.values())
    return numbers and all(isinstance(reason, str) for reason in masks.values())
