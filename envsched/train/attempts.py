"""One rollout as it ended, and the records that the scheduler sees. Letters: B tasks, G rollouts per task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envsched.types import RolloutRecord, Status


@dataclass(frozen=True, slots=True)
class Attempt:
    """One rollout of one task.

    ``reward`` is none where ``status`` is missing; ``actions`` are the tool calls that
    reached the environment, in order, and ``num_refused`` counts those that did not (unknown tool, wrong arguments);
    ``passed`` [checks] and ``errors`` come from scoring; ``tokens`` counts the policy's own, ``seconds`` is wall-clock time.
    """

    task: str
    step: int
    number: int
    reward: float | None
    status: Status
    tokens: int
    seconds: float
    actions: tuple[Mapping[str, Any], ...] = ()
    num_refused: int = 0
    passed: tuple[bool, ...] = ()
    errors: tuple[str, ...] = ()


def records_of(attempts: Sequence[Attempt], group_size: int, policy_version: int) -> list[RolloutRecord]:
    """B records from B * G attempts, the attempts of a task side by side."""
    groups = [attempts[start : start + group_size] for start in range(0, len(attempts), group_size)]
    return [_record(group, policy_version) for group in groups]


def _record(group: Sequence[Attempt], policy_version: int) -> RolloutRecord:
    first = group[0]
    assert all(a.task == first.task and a.number == g for g, a in enumerate(group)), "a group holds one task's rollouts in order"
    return RolloutRecord(
        task=first.task,
        step=first.step,
        rewards=tuple(a.reward for a in group),
        status=tuple(a.status for a in group),
        policy_version=policy_version,
        tokens=tuple(a.tokens for a in group),
        seconds=tuple(round(a.seconds, 4) for a in group),
        trace=[list(a.actions) for a in group],
        extra={
            "passed": [list(a.passed) for a in group],
            "errors": [list(a.errors) for a in group],
            "refused": [a.num_refused for a in group],
        },
    )
