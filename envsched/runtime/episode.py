"""One rollout in an environment: start, call, score, close."""

import time
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from envsched.runtime.arguments import ToolBox
from envsched.runtime.channel import Channel
from envsched.runtime.outcome import CheckProblem, CheckReport, Observation, Outcome, share
from envsched.runtime.worker.frames import FrameError
from envsched.types import Status, Task

if TYPE_CHECKING:
    from envsched.runtime.runtime import EnvironmentRuntime
    from envsched.runtime.workers import Worker


class Episode:
    """A live environment instance; made by ``EnvironmentRuntime.start``.

    ``status`` is ``ok`` until something goes wrong: ``timeout`` when a call outlasted its limit, ``infra_error`` when the
    process could not start, died or broke the protocol (``problem`` says how), ``aborted`` when closed unscored.
    ``actions`` are the calls that reached the environment; ``counts`` counts outcomes.
    """

    def __init__(self, runtime: "EnvironmentRuntime", number: int, task: Task, toolbox: ToolBox, seed: int, start: float) -> None:
        self.task = task
        self.seed = seed
        self.started_at = start
        self.status = Status.OK
        self.problem = ""
        self.actions: list[tuple[str, dict[str, Any]]] = []
        self.counts: Counter[Outcome] = Counter()
        self._runtime = runtime
        self.number = number
        self._toolbox = toolbox
        self._worker: Worker | None = None
        self._channel: Channel | None = None
        self._forfeited = False
        self._request = 0
        self._deadline = 0.0

    def call(self, tool: str, arguments: Mapping[str, Any], validate: bool = True) -> Observation:
        """Run a tool with keyword arguments and return what the policy sees. Never raises for what the tool does.

        Args:
            tool: one of the environment's tools.
            arguments: by name.
            validate: hold the arguments against the tool's schema first; without it the tool judges for itself.
        """
        refused = self.post_call(tool, arguments, validate)
        return refused if refused is not None else self.collect_call()

    def score(self) -> CheckReport:
        """Run the checks on the present state; may be asked again after further calls."""
        if self._forfeited:
            return CheckReport(0.0, (False,) * len(self.task.checks), (), self.status)
        self._post({"op": "score", "checks": None}, self._runtime.config.score_seconds)
        return self._collect_score()

    def snapshot(self) -> tuple[str, str] | None:
        """The state as JSON text and its SHA-256; None when the process is gone."""
        self._post({"op": "snapshot"}, self._runtime.config.call_seconds)
        reply = self._collect()
        return None if reply is None else (str(reply["state"]), str(reply["digest"]))

    def forfeit(self, problem: str) -> None:
        """End the episode with reward 0: what EnvScaler does when a tool raises."""
        self._forfeited, self.problem = True, problem
        self._drop(kill=False)

    def close(self) -> None:
        """End the episode and free its process; twice is fine."""
        self._drop(kill=False)

    def __enter__(self) -> "Episode":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The halves of a call, for EnvironmentRuntime, which keeps many in flight.

    def post_call(self, tool: str, arguments: Mapping[str, Any], validate: bool = True) -> Observation | None:
        """Send the call; an observation at once when there is nothing to wait for."""
        if self._channel is None:
            return self.observation(f"the episode is over ({self.problem or self.status})", Outcome.ENDED)
        objection = self._toolbox.objection(tool, arguments, validate)
        if objection is not None:
            return self.observation(*objection)
        self.actions.append((tool, dict(arguments)))
        self._post({"op": "call", "tool": tool, "arguments": arguments}, self._runtime.config.call_seconds)
        return None

    def collect_call(self) -> Observation:
        """Wait for the answer to the call that was sent."""
        reply = self._collect()
        if reply is None:
            self.actions.pop()
            return self.observation(self.problem, Outcome.TIMEOUT if self.status is Status.TIMEOUT else Outcome.DIED)
        if reply["ok"] is not True:
            return self.observation(str(reply["text"]), Outcome.RAISED)
        text, limit = str(reply["text"]), self._runtime.config.result_chars
        if len(text) <= limit:
            return self.observation(text, Outcome.OK)
        return self.observation(f"{text[:limit]}... [cut: {len(text) - limit} of {len(text)} characters not shown]", Outcome.CUT)

    def observation(self, text: str, outcome: Outcome) -> Observation:
        """An observation of this episode, counted."""
        self.counts[outcome] += 1
        self._runtime.counts[outcome] += 1
        ok = outcome in (Outcome.OK, Outcome.CUT)
        return Observation(text if ok else f"Error: {text}", ok, self.status, outcome)

    @property
    def deadline(self) -> float:
        """When the answer in wait is due, in ``time.monotonic`` seconds."""
        return self._deadline

    def fileno(self) -> int:
        """Descriptor on which the answer arrives; -1 when none can."""
        return -1 if self._channel is None else self._channel.fileno()

    def attach(self, worker: "Worker", channel: Channel, seconds: float) -> None:
        """The process is on its way; ``collect_start`` waits for it."""
        self._worker, self._channel = worker, channel
        self._deadline = time.monotonic() + seconds

    def collect_start(self) -> None:
        reply = self._receive()
        if reply is not None and reply["ok"] is not True:
            self.fail(Status.INFRA_ERROR, str(reply["text"]))

    def fail(self, status: Status, problem: str) -> None:
        """End the process; the episode keeps ``status`` and the words for it."""
        self.status, self.problem = status, problem
        self._drop(kill=True)

    def _collect_score(self) -> CheckReport:
        reply = self._collect()
        if reply is None:
            return CheckReport(None, (), (), self.status if self.status.is_missing else Status.VERIFIER_ERROR)
        passed = tuple(outcome is True for outcome in reply["passed"])
        problems = tuple(CheckProblem(int(check), str(kind), str(text)) for check, kind, text in reply["problems"])
        return CheckReport(share(passed), passed, problems, self.status)

    def _post(self, request: dict[str, Any], seconds: float) -> None:
        self._deadline = time.monotonic() + seconds
        self._request += 1
        if self._channel is None:
            return
        try:
            self._channel.send(request | {"number": self._request}, self._deadline)
        except (OSError, FrameError) as error:
            self._fail_by(error)

    def _collect(self) -> dict[str, Any] | None:
        reply = self._receive()
        if reply is not None and reply.get("number") != self._request:
            self.fail(Status.INFRA_ERROR, "the environment's process broke the protocol: an answer to no question")
            return None
        return reply

    def _receive(self) -> dict[str, Any] | None:
        if self._channel is None:
            return None
        try:
            return self._channel.receive(self._deadline)
        except (OSError, FrameError) as error:
            self._fail_by(error)
            return None

    def _fail_by(self, error: Exception) -> None:
        if isinstance(error, TimeoutError):
            self.fail(Status.TIMEOUT, "the call took longer than its time limit")
        else:
            self.fail(Status.INFRA_ERROR, f"the environment's process is gone: {error}")

    def _drop(self, kill: bool) -> None:
        if self._channel is None:
            return
        assert self._worker is not None
        self._channel.close()
        self._channel = None
        self._worker.end(self.number, kill)
