"""Records that travel between the rooms; standard library only.

Letters: G rollouts of one task in one step. Keys are strings and live in records, files and messages;
inside the rooms a task is its row 0..N-1 and ``Pool`` is the only translator.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable


class Status(StrEnum):
    """How a rollout ended. The last three are missing evidence, never reward 0."""

    OK = "ok"
    TRUNCATED = "truncated"
    TIMEOUT = "timeout"
    INFRA_ERROR = "infra_error"
    VERIFIER_ERROR = "verifier_error"
    ABORTED = "aborted"

    @property
    def is_missing(self) -> bool:
        return self in (Status.INFRA_ERROR, Status.VERIFIER_ERROR, Status.ABORTED)


class Lane(StrEnum):
    """Why a task was picked."""

    COLD_START = "cold_start"
    COVERAGE = "coverage"
    EXPLOITATION = "exploitation"
    RANDOM = "random"  # of a scheduler that looks at nothing


@dataclass(frozen=True, slots=True)
class Check:
    """One item of a task's checklist: its question and the source of its ``check_func``."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Environment:
    """Metadata of one executable environment."""

    key: str
    summary: str = ""
    description: str = ""
    rules: tuple[str, ...] = ()
    tools: tuple[Mapping[str, Any], ...] = ()  # OpenAI function schemas
    class_name: str = ""
    source: str = ""  # Python source that defines class_name; never executed in the caller's process

    @property
    def tool_names(self) -> tuple[str, ...]:
        return tuple(tool["function"]["name"] for tool in self.tools)


@dataclass(frozen=True, slots=True)
class Task:
    """One environment-task pair, the thing that is scheduled."""

    key: str
    environment: str
    prompt: str = ""
    initial_state: Mapping[str, Any] = field(default_factory=dict)  # JSON; the environment's start
    checks: tuple[Check, ...] = ()  # reward = share of checks passed


@dataclass(frozen=True, slots=True)
class RolloutRecord:
    """All attempts at one task in one step.

    ``rewards`` [G] and ``status`` [G] run in parallel; a reward is ``None`` where its status is missing.
    ``policy_version`` is the step of the policy that made the rollouts. ``tokens`` [G] and ``seconds`` [G] are
    per rollout, ``trace`` says where the actions lie (or holds them), ``extra`` keeps fields we do not know.
    """

    task: str
    step: int
    rewards: tuple[float | None, ...]
    status: tuple[Status, ...]
    policy_version: int
    tokens: tuple[int, ...] | None = None
    seconds: tuple[float, ...] | None = None
    trace: Any = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pick:
    """A chosen task with the reason: lane, score in [0, 1], the terms of the score, the quotas that bound it."""

    task: str
    environment: str
    lane: Lane
    score: float
    terms: Mapping[str, float] = field(default_factory=dict)
    bound_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A quota that could not be kept in this batch, and why."""

    quota: str
    reason: str


@dataclass(frozen=True, slots=True)
class Batch:
    """B picks for one step, in the order they were made; ``masked`` says which tasks a filter or a lease kept out, and why."""

    step: int
    picks: tuple[Pick, ...]
    relaxed: tuple[Relaxation, ...] = ()
    gap: float = 0.0  # of scores: what a pick may have lost to tasks that were not looked at; 0: certified that nothing
    masked: Mapping[str, str] = field(default_factory=dict)

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(pick.task for pick in self.picks)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A batch with its provenance; what ``selector/task_manifest.step_N.json`` holds.

    ``pool_change``: which tasks and environments were added, removed and edited, where this is the first batch after that.
    """

    batch: Batch
    digests: Mapping[str, str]  # pool, features, graph, history, config, ... -> SHA-256
    seed: int
    version: str
    scheduler: str = "envsched"
    graph: Mapping[str, Any] = field(default_factory=dict)  # mode, and what its lists may lack (ObservedGraph.header)
    pool_change: Mapping[str, Any] | None = None


@runtime_checkable
class Scheduler(Protocol):
    """The five verbs. Ours, every baseline and any user's own scheduler have them; nothing else is asked for."""

    def select(self, step: int) -> Batch:
        """Choose the tasks of ``step`` from what was observed before it."""
        ...

    def observe(self, records: Sequence[RolloutRecord]) -> None:
        """Take in rollouts; the same record twice counts once."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """JSON-able state, keyed by task key."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state that ``state_dict`` gave."""
        ...

    def metrics(self) -> dict[str, float]:
        """Plain floats under namespaced keys, for any logger."""
        ...
