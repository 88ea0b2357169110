"""What an inspection found, as data, as JSON, as a table."""

import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """``error``: can't be trained on as it is. ``warning``: a person should look. ``note``: good to know."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found."""

    severity: Severity
    kind: str
    text: str


@dataclass(slots=True)
class EnvironmentReport:
    """An environment: whether it stands, what its tools lack, whether equal runs are equal."""

    environment: str
    num_tasks: int
    stands: bool = True
    tools_without_method: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()  # of clock, uuid, chance: what its source calls
    varies_between_runs: bool = False  # seen to, without a seed
    deterministic_with_seed: bool = True
    num_probed_calls: int = 0
    findings: list[Finding] = field(default_factory=list)


@dataclass(slots=True)
class TaskReport:
    """A task before anything was done: ``no_op_reward`` is the floor of its reward; checks are named by position."""

    task: str
    environment: str
    num_checks: int
    no_op_reward: float | None = None
    pass_at_start: tuple[int, ...] = ()
    pass_on_empty_state: tuple[int, ...] = ()
    raise_at_start: tuple[int, ...] = ()
    raise_on_empty_state: tuple[int, ...] = ()
    vacuous: tuple[int, ...] = ()  # pass at the start and on a state that holds nothing
    findings: list[Finding] = field(default_factory=list)

    @property
    def mask(self) -> str:
        """Why the task can't teach anything, or nothing."""
        if self.no_op_reward is None:
            return "its reward can't be computed"
        if len(self.vacuous) == self.num_checks:
            return "all its checks are vacuous"
        if len(self.pass_at_start) == self.num_checks:
            return "all its checks pass before anything is done"
        return ""


@dataclass(frozen=True, slots=True)
class PoolReport:
    """All of a pool. ``fingerprint`` says which."""

    fingerprint: str
    environments: tuple[EnvironmentReport, ...]
    tasks: tuple[TaskReport, ...]
    protections: tuple[str, ...] = ()

    @property
    def floors(self) -> dict[str, float]:
        """Reward of doing nothing, by task key."""
        return {task.task: task.no_op_reward for task in self.tasks if task.no_op_reward is not None}

    @property
    def masks(self) -> dict[str, str]:
        """Tasks that can't teach anything, with the reason."""
        return {task.task: task.mask for task in self.tasks if task.mask}

    def findings(self) -> Iterator[tuple[str, Finding]]:
        """Every finding with the key of its environment or task."""
        for environment in self.environments:
            yield from ((environment.environment, finding) for finding in environment.findings)
        for task in self.tasks:
            yield from ((task.task, finding) for finding in task.findings)

    def count(self, severity: Severity) -> int:
        return sum(finding.severity is severity for _, finding in self.findings())

    def summary(self) -> dict[str, Any]:
        """The figures of the whole pool."""
        floors = list(self.floors.values())
        return {
            "environments": len(self.environments),
            "environments_that_stand": sum(one.stands for one in self.environments),
            "environments_that_read_clock_uuid_or_chance": sum(bool(one.reads) for one in self.environments),
            "environments_that_vary_between_runs": sum(one.varies_between_runs for one in self.environments),
            "environments_deterministic_with_seed": sum(one.deterministic_with_seed for one in self.environments if one.stands),
            "tasks": len(self.tasks),
            "tasks_masked": len(self.masks),
            "checks": sum(task.num_checks for task in self.tasks),
            "checks_raising_at_start": sum(len(task.raise_at_start) for task in self.tasks),
            "checks_passing_at_start": sum(len(task.pass_at_start) for task in self.tasks),
            "tasks_with_checks_passing_at_start": sum(bool(task.pass_at_start) for task in self.tasks),
            "checks_passing_on_empty_state": sum(len(task.pass_on_empty_state) for task in self.tasks),
            "checks_raising_on_empty_state": sum(len(task.raise_on_empty_state) for task in self.tasks),
            "tasks_with_checks_raising_on_empty_state": sum(bool(task.raise_on_empty_state) for task in self.tasks),
            "vacuous_checks": sum(len(task.vacuous) for task in self.tasks),
            "no_op_reward_mean": statistics.fmean(floors) if floors else None,
            "no_op_reward_median": statistics.median(floors) if floors else None,
            "tasks_with_no_op_reward_zero": sum(floor == 0 for floor in floors),
            **{f"{severity}s": self.count(severity) for severity in Severity},
        }

    def to_json(self) -> dict[str, Any]:
        """JSON-able: fingerprint, summary, floors, masks, every environment and task."""
        return {
            "fingerprint": self.fingerprint,
            "protections": list(self.protections),
            "summary": self.summary(),
            "floors": self.floors,
            "masks": self.masks,
            "environments": [asdict(environment) for environment in self.environments],
            "tasks": [asdict(task) for task in self.tasks],
        }

    def table(self, most: int = 20) -> str:
        """For a person: the summary, then the worst findings, ``most`` of a kind."""
        lines = [f"{name.replace('_', ' '):44} {_number(value)}" for name, value in self.summary().items()]
        shown: Counter[str] = Counter()
        for severity in Severity:
            for key, finding in self.findings():
                if finding.severity is severity:
                    shown[finding.kind] += 1
                    if shown[finding.kind] <= most:
                        lines.append(f"{severity:8} {key}: {finding.kind}: {finding.text}")
        lines += [f"         ... and {count - most} more of {kind}" for kind, count in shown.items() if count > most]
        return "\n".join(lines)


def _number(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)
