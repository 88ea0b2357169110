"""The abstract record of a task: how it is worked and how it is rewarded, without a word of its domain.

Two tasks of different environments that are worked alike (look something up, create a record, change a field in a loop)
and checked alike have near-equal records; METHOD section 9 is the source of the fields.
"""

from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from envsched.files import canonical_json

VERSION = 1
MAX_PHASES = 32


class Phase(StrEnum):
    """A kind of step on the way to the reward."""

    LOOK_UP = "look_up"
    VALIDATE = "validate"
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    AGGREGATE = "aggregate"
    BRANCH = "branch"
    LOOP = "loop"


READS = (Phase.LOOK_UP, Phase.VALIDATE, Phase.AGGREGATE)
WRITES = (Phase.CREATE, Phase.UPDATE, Phase.DELETE)


class CheckKind(StrEnum):
    """What a check of the final state asserts; ``checks.py`` has the rule that decides."""

    PRESENCE = "presence"  # a key or an element is there
    ABSENCE = "absence"  # a key or an element is not there
    EQUALITY = "equality"  # a value equals a constant
    COUNT = "count"  # a number of items, or a sum over them, equals or bounds a constant
    RELATION = "relation"  # two values of the state (or of the start and the end) stand to each other, or a value is in a range
    OTHER = "other"  # could not be told


class Part(StrEnum):
    """A part of a task that could not be read; the record holds what the others say."""

    SOURCE = "source"  # the environment's code
    TOOLS = "tools"  # the tool schemas
    CHECKS = "checks"  # at least one check
    STATE = "state"  # the start state
    ANSWER = "answer"  # the language model's answer


Number = Annotated[int, Field(ge=0, le=99_999)]


def _no_repeats(phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
    if any(a == b for a, b in pairwise(phases)):
        raise ValueError("the same phase twice in a row: write it once, and add loop where it is repeated over a collection")
    return phases


def _sorted(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    if list(parts) != sorted(set(parts)):
        raise ValueError("parts must be sorted and unique")
    return parts


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Execution(_Record):
    """How the task is worked."""

    phases: Annotated[tuple[Phase, ...], Field(max_length=MAX_PHASES), AfterValidator(_no_repeats)] = Field(
        description="kinds of steps in the order they are taken, repeats in a row written once"
    )
    reads: Number = Field(description="calls that only read")
    writes: Number = Field(description="calls that change the state")
    depth: Number = Field(description="longest chain of calls in which one's output feeds the next one's argument")
    entities: Number = Field(description="kinds of records (collections of the state) that are touched")
    discovery: Literal["none", "some", "all"] = Field(description="how many of the needed identifiers the prompt leaves to be found")


class Reward(_Record):
    """How the task is checked: a count for each kind of check, and traits of the whole."""

    presence: Number
    absence: Number
    equality: Number
    count: Number
    relation: Number
    other: Number
    negative: Number = Field(description="checks that pass because something is not so")
    initial: Number = Field(description="checks that read the start state")
    true_at_start: Annotated[float, Field(ge=0, le=1)] | None = Field(description="share of checks that pass before any action, if known")
    grading: Literal["all_or_nothing", "partial"]

    @property
    def checks(self) -> int:
        return sum(getattr(self, kind.value) for kind in CheckKind)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name in ("negative", "initial"):
            if getattr(self, name) > self.checks:
                raise ValueError(f"{name} ({getattr(self, name)}) exceeds the number of checks ({self.checks})")
        return self


class Topology(_Record):
    """The record; immutable, compared by value.

    ``source`` says who made it (``fallback``: the static record in place of a failed answer of a model), ``unread`` what was missing.
    """

    version: Literal[1] = VERSION
    execution: Execution
    reward: Reward
    source: Literal["static", "llm", "fallback"] = "static"
    unread: Annotated[tuple[Part, ...], AfterValidator(_sorted)] = ()

    def canonical(self) -> str:
        """JSON with sorted keys and no spaces: equal records give equal bytes, and reading it back gives the record."""
        return canonical_json(self.model_dump(mode="json"))

    def line(self) -> str:
        """The record in one readable line."""
        work, reward = self.execution, self.reward
        kinds = ", ".join(f"{getattr(reward, kind.value)} {kind.value}" for kind in CheckKind if getattr(reward, kind.value))
        start = "?" if reward.true_at_start is None else f"{reward.true_at_start:.0%}"
        unread = f" | unread: {', '.join(self.unread)}" if self.unread else ""
        return (
            f"{' > '.join(work.phases) or 'nothing'} | {work.reads} reads, {work.writes} writes, depth {work.depth}, "
            f"{work.entities} entities, ids to find: {work.discovery} | {reward.checks} checks ({kinds or 'none'}; "
            f"{reward.negative} negative, {reward.initial} of the start), {reward.grading}, {start} true at start | {self.source}{unread}"
        )
