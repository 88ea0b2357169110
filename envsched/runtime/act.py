"""A policy's message carried out in an episode, under named semantics."""

from collections.abc import Mapping
from typing import Any, Literal

from envsched.runtime.episode import Episode
from envsched.runtime.outcome import Observation, Outcome
from envsched.runtime.tool_calls import ToolCall, Unparsable, parse_tool_calls

Semantics = Literal["all", "envscaler"]


def act(episode: Episode, message: str | Mapping[str, Any], semantics: Semantics = "all") -> list[Observation]:
    """Carry out the calls of an assistant's message; one observation each. None: the message makes no call, the policy is done.

    ``all``: every call runs, in order, checked against its tool's schema; a raise is told and the episode goes on.

    ``envscaler``: only the first call runs (the others are told so), arguments go to the tool unchecked, and a tool that
    raises ends the episode with reward 0. A message without a call ends the episode, as in the other.
    """
    calls = parse_tool_calls(message)
    if semantics == "all":
        return [_run(episode, call, validate=True) for call in calls]
    observations = [_run(episode, call, validate=False) for call in calls[:1]]
    if observations and observations[0].outcome is Outcome.RAISED:
        episode.forfeit(observations[0].text)
    observations += [episode.observation("only the first call of a message runs", Outcome.SKIPPED) for _ in calls[1:]]
    return observations


def _run(episode: Episode, call: ToolCall | Unparsable, validate: bool) -> Observation:
    if isinstance(call, Unparsable):
        return episode.observation(call.reason, Outcome.UNPARSABLE)
    return episode.call(call.name, call.arguments, validate)
