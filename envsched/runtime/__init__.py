"""Executable environments in worker processes: tool calls in, observations and rewards out."""

from envsched.runtime.act import act
from envsched.runtime.episode import Episode
from envsched.runtime.outcome import CheckProblem, CheckReport, Observation, Outcome
from envsched.runtime.replay import replay_actions
from envsched.runtime.runtime import EnvironmentRuntime
from envsched.runtime.tool_calls import ToolCall, Unparsable, parse_tool_calls

__all__ = [
    "CheckProblem",
    "CheckReport",
    "EnvironmentRuntime",
    "Episode",
    "Observation",
    "Outcome",
    "ToolCall",
    "Unparsable",
    "act",
    "parse_tool_calls",
    "replay_actions",
]
