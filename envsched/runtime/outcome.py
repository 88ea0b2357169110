"""What an episode tells: the observation after a call, the report of the checks."""

from dataclasses import dataclass
from enum import StrEnum

from envsched.types import Status


class Outcome(StrEnum):
    """What became of a call. Everything but ``OK`` and ``CUT`` is told to the policy as ``Error: ...``."""

    OK = "ok"
    CUT = "cut"  # ran; its result was longer than the limit and its end is missing
    RAISED = "raised"  # the tool raised
    UNPARSABLE = "unparsable"  # no call could be read from the message
    UNKNOWN_TOOL = "unknown_tool"
    BAD_ARGUMENTS = "bad_arguments"  # a name that the tool does not have, one missing, or a wrong type
    SKIPPED = "skipped"  # a further call of a message under EnvScaler's semantics
    TIMEOUT = "timeout"
    DIED = "died"  # the episode's process ended or broke the protocol
    ENDED = "ended"  # the episode was over before the call


@dataclass(frozen=True, slots=True)
class Observation:
    """What the policy sees after a call; ``status`` is the episode's so far."""

    text: str
    ok: bool
    status: Status
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class CheckProblem:
    """What is wrong with a check: ``raised``, ``not_boolean``, ``no_check_func``, ``does_not_compile``, ``mutates_state``,
    ``never_ends``, ``kills_process``."""

    check: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Reward of an episode.

    ``reward`` is the unrounded share of ``passed`` checks, None where ``status`` is a missing one or there is no check. A check that raises
    or returns no boolean is not passed, and is among ``problems``.
    """

    reward: float | None
    passed: tuple[bool, ...]
    problems: tuple[CheckProblem, ...]
    status: Status

    @property
    def rounded(self) -> float | None:
        """The reward as EnvScaler's records write it: four decimals."""
        return None if self.reward is None else round(self.reward, 4)

    @property
    def errors(self) -> tuple[str, ...]:
        """The problems as words, one per check concerned."""
        return tuple(f"check {problem.check}: {problem.kind}: {problem.text}" for problem in self.problems)


def share(passed: tuple[bool, ...]) -> float | None:
    """Passed checks / checks; None of no checks."""
    return sum(passed) / len(passed) if passed else None
