"""One dialogue with a policy, by BFCL's protocol: it calls functions until a message calls none, then the user goes on.

A dialogue scores 1 where after every turn state and responses are those of the reference calls, else 0. It ends at the first turn
that fails: what comes later can't mend it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from envsched.evaluate.bfcl.files import DialogueTask, Protocol
from envsched.evaluate.policy import Request
from envsched.runtime import Episode, ToolCall, parse_tool_calls
from envsched.types import Status


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a dialogue ended; ``score`` is none where the environment failed, ``turn`` is the one that decided."""

    task: str
    subset: str
    score: float | None
    reason: str
    turn: int
    num_calls: int


class Dialogue:
    """A dialogue under way.

    Args:
        task: what is said and what is expected.
        tools: schemas by class; see ``files.read_tools``.
        protocol: BFCL's constants.
        episode: of the task's environment (``source.pool_of``).
    """

    def __init__(self, task: DialogueTask, tools: Mapping[str, list[dict[str, Any]]], protocol: Protocol, episode: Episode) -> None:
        self.task = task
        self.verdict: Verdict | None = None
        self._protocol, self._episode = protocol, episode
        self._offered = [tool for name in task.classes for tool in tools[name]]
        self._withheld = {turn: [self._take_away(name) for name in names] for turn, names in task.withheld.items()}
        self._messages: list[dict[str, Any]] = []
        self._turn, self._num_steps, self._num_calls = 0, 0, 0
        self._ask()

    @property
    def request(self) -> Request:
        """What the policy has to answer."""
        return Request(tuple(self._messages), tuple(self._offered))

    def take(self, message: Mapping[str, Any]) -> None:
        """Go on with the policy's answer; afterwards there is a verdict or another request."""
        calls = parse_tool_calls(message)
        if not calls or not all(isinstance(call, ToolCall) for call in calls):
            self._messages.append({"role": "assistant", "content": message.get("content") or ""})
            self._finish_turn()
            return
        named = [(f"call_{self._num_calls + i}", call) for i, call in enumerate(calls) if isinstance(call, ToolCall)]
        listed = [
            {"id": key, "type": "function", "function": {"name": call.name, "arguments": dict(call.arguments)}} for key, call in named
        ]
        self._messages.append({"role": "assistant", "content": message.get("content") or "", "tool_calls": listed})
        for key, call in named:
            self._call(key, call)
        self._num_steps += 1
        if self.verdict is None and self._num_steps > self._protocol.max_steps:
            self._end(0.0, f"more than {self._protocol.max_steps} messages with calls")

    def _call(self, key: str, call: ToolCall) -> None:
        self._num_calls += 1
        if self.verdict is None:
            response = self._episode.call("call", {"name": call.name, "arguments": dict(call.arguments)}).text
            self._messages.append({"role": "tool", "tool_call_id": key, "name": call.name, "content": response})
            self._stop_if_lost()

    def _finish_turn(self) -> None:
        answer = self._episode.call("finish_turn", {})
        self._stop_if_lost()
        if self.verdict is not None:
            return
        if not answer.ok:
            self._end(None, f"the reference calls failed: {answer.text}")
            return
        judged = json.loads(answer.text)
        if not judged["passed"]:
            self._end(0.0, judged["reason"])
            return
        self._turn, self._num_steps = self._turn + 1, 0
        if self._turn == len(self.task.turns):
            self._turn -= 1
            self._end(1.0, "")
        else:
            self._ask()

    def _ask(self) -> None:
        """What the user says in this turn."""
        self._offered += self._withheld.get(self._turn, [])
        said = self.task.turns[self._turn] or ({"role": "user", "content": self._protocol.announcement},)
        self._messages += [dict(message) for message in said]

    def _take_away(self, name: str) -> dict[str, Any]:
        place = next(i for i, tool in enumerate(self._offered) if tool["function"]["name"] == name)
        return self._offered.pop(place)

    def _stop_if_lost(self) -> None:
        """A call that never ends is the policy's; a process that can't be had is not."""
        if self._episode.status is Status.TIMEOUT:
            self._end(0.0, "a call took longer than its time limit")
        elif self._episode.status is not Status.OK:
            self._end(None, self._episode.problem)

    def _end(self, score: float | None, reason: str) -> None:
        self.verdict = Verdict(self.task.key, self.task.subset, score, reason, self._turn, self._num_calls)
        self._episode.close()
