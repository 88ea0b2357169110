"""One rollout in an environment: start, call, score, close."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from envsched.runtime.arguments import ToolBox
from envsched.runtime.launcher import Launcher
from envsched.runtime.outcome import CheckProblem, CheckReport, Observation, Outcome, share
from envsched.runtime.process import EpisodeProcess, ProcessLost
from envsched.types import Status, Task

MAX_RESTORES = 5  # times that an episode is rebuilt after its process was killed from outside
MAX_BROKEN_CHECKS = 5  # checks that may hang or kill before the rest is not tried any more
REPLAY_PATIENCE = 4  # a call that ended in time once gets so many times its limit when the state is built again

Result = TypeVar("Result")


class StateLost(ProcessLost):
    """The state that the actions led to can't be reached again."""


class Episode:
    """A live environment instance; made by ``EnvironmentRuntime.start``.

    ``status`` is ``ok`` until something goes wrong: ``timeout`` when a call outlasted its limit, ``infra_error`` when the
    process could not start, died or broke the protocol (``problem`` says how). ``actions`` are the calls that the
    environment answered; ``counts`` counts outcomes.

    Where the process is lost through no fault of its own (killed from outside, or its worker was), or where a score is
    wanted after a call or a check that never ended, a new process takes its place: the same seed and the same actions
    give the same state.
    """

    def __init__(self, launcher: Launcher, task: Task, toolbox: ToolBox, all_counts: Counter[Outcome], seed: int, start: float) -> None:
        self.task = task
        self.seed = seed
        self.started_at = start
        self.status = Status.OK
        self.problem = ""
        self.actions: list[tuple[str, dict[str, Any]]] = []
        self.counts: Counter[Outcome] = Counter()
        self._launcher, self._config = launcher, launcher.config
        self._all_counts = all_counts  # of all episodes of a runtime
        self._toolbox = toolbox
        self._process: EpisodeProcess | None = None
        self._asked: tuple[str, dict[str, Any]] | None = None
        self._forfeited = False
        self._closed = False
        self._num_restores = 0
        self._asked_at = 0.0
        self._seconds = 0.0  # that the environment took for its calls

    def call(self, tool: str, arguments: Mapping[str, Any], validate: bool = True) -> Observation:
        """Run a tool with keyword arguments and return what the policy sees. Never raises for what the tool does.

        Args:
            tool: one of the environment's tools.
            arguments: by name.
            validate: hold the arguments against the tool's schema first; without it the tool judges for itself.
        """
        refused = self.post_call(tool, arguments, validate)
        return refused if refused is not None else self.collect_call()

    def score(self, empty: bool = False) -> CheckReport:
        """Run the checks on the present state; may be asked again after further calls.

        After a call that never ended the state before that call is scored, and the status stays ``timeout``; where that
        state can't be reached again it becomes ``infra_error``. A check that ends the process is not passed and is reported,
        like one that raises. A check that never ends says nothing about the policy, and on a busy machine a slow one looks
        the same: there is no reward, the report's status is ``verifier_error`` and names the check.

        Args:
            empty: judge a state that holds nothing instead: what passes there asks for nothing.
        """
        known = self._known_report()
        return self._score_again(None, empty) if known is None else known

    def methods(self, tools: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Which of ``tools`` the environment has no method for, and its public methods that are not among them.

        Raises:
            ProcessLost: the process is gone.
        """
        answer = self._ask({"op": "methods", "tools": list(tools)}, self._config.call_seconds)
        return tuple(map(str, answer["missing"])), tuple(map(str, answer["unlisted"]))

    def snapshot(self) -> tuple[str, str] | None:
        """The state as JSON text and its SHA-256; None when the process is gone."""
        if self._process is None:
            return None
        try:
            answer = self._ask({"op": "snapshot"}, self._config.call_seconds)
        except ProcessLost as lost:
            self._fail(lost)
            return None
        return str(answer["state"]), str(answer["digest"])

    def forfeit(self, problem: str) -> None:
        """End the episode with reward 0: what EnvScaler does when a tool raises."""
        self._forfeited, self.problem = True, problem
        self._release()

    def kill(self) -> None:
        """End the episode in the midst of whatever it is doing: its status is ``aborted``."""
        if self._process is not None:
            self._process.kill()
            self._process = None
            self.status, self.problem = Status.ABORTED, "aborted"

    def close(self) -> None:
        """End the episode and free its process; twice is fine."""
        self._closed = True
        self._release()

    def __enter__(self) -> "Episode":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The halves of a call, for EnvironmentRuntime, which keeps many in flight.

    def post_call(self, tool: str, arguments: Mapping[str, Any], validate: bool = True) -> Observation | None:
        """Send the call; an observation at once when there is nothing to wait for."""
        if self._process is None:
            return self.observation(f"the episode is over ({self.problem or 'closed'})", Outcome.ENDED)
        objection = self._toolbox.objection(tool, arguments, validate)
        if objection is not None:
            return self.observation(*objection)
        self._asked, self._asked_at = (tool, dict(arguments)), time.monotonic()
        try:
            self._process.post(self._call_question(), self._call_limit())
        except ProcessLost as lost:
            return self._call_again(lost)
        return None

    def collect_call(self) -> Observation:
        """Wait for the answer to the call that was sent."""
        assert self._process is not None
        try:
            return self._observe(self._process.collect())
        except ProcessLost as lost:
            return self._call_again(lost)

    def post_score(self) -> CheckReport | None:
        """Ask for a score; a report at once when there is nothing to wait for."""
        known = self._known_report()
        if known is not None:
            return known
        if self._process is None:
            return self._score_again(None, False)
        try:
            self._process.post(_score_question(None, False), self._config.score_seconds)
        except ProcessLost as lost:
            return self._score_again(lost, False)
        return None

    def collect_score(self) -> CheckReport:
        """Wait for the answer to ``post_score``."""
        assert self._process is not None
        try:
            answer = self._process.collect()
        except ProcessLost as lost:
            return self._score_again(lost, False)
        return self._report(answer["passed"], answer["problems"], self.status)

    def observation(self, text: str, outcome: Outcome) -> Observation:
        """An observation of this episode, counted."""
        self.counts[outcome] += 1
        self._all_counts[outcome] += 1
        ok = outcome in (Outcome.OK, Outcome.CUT)
        return Observation(text if ok else f"Error: {text}", ok, self.status, outcome)

    @property
    def process(self) -> EpisodeProcess | None:
        """The process that answers; None when the episode is over."""
        return self._process

    def post_start(self) -> None:
        """A process is on its way; ``collect_start`` waits for it.

        Raises:
            ProcessLost: no worker takes the order.
        """
        self._process = self._launcher.launch(self.task, self.seed, self.started_at)

    def collect_start(self) -> None:
        """Wait until the environment stands; where it can't, the status says so."""
        if self._process is None:
            return
        try:
            self._await_start(self._process)
        except ProcessLost as lost:
            self._process = None
            try:
                self._again(lost, self._live)
            except ProcessLost as at_last:
                self.refuse(f"the environment does not stand: {at_last}")

    def refuse(self, problem: str) -> None:
        """The episode never came to be."""
        self.status, self.problem = Status.INFRA_ERROR, problem

    def _call_question(self) -> dict[str, Any]:
        assert self._asked is not None
        tool, arguments = self._asked
        return {"op": "call", "tool": tool, "arguments": arguments}

    def _call_limit(self) -> float:
        """Wall clock that a call may take: its own limit, or what is left of the episode's."""
        return min(self._config.call_seconds, max(self._config.episode_seconds - self._seconds, 0.0))

    def _observe(self, answer: dict[str, Any]) -> Observation:
        assert self._asked is not None
        self.actions.append(self._asked)
        self._asked = None
        self._seconds += time.monotonic() - self._asked_at
        text = str(answer["text"])
        if answer["ok"] is not True:
            return self.observation(text, Outcome.RAISED)
        missing = int(answer["length"]) - len(text)
        if missing <= 0:
            return self.observation(text, Outcome.OK)
        return self.observation(f"{text}... [cut: {missing} of {missing + len(text)} characters not shown]", Outcome.CUT)

    def _call_again(self, lost: ProcessLost) -> Observation:
        try:
            return self._observe(self._again(lost, lambda: self._live().ask(self._call_question(), self._call_limit())))
        except ProcessLost as at_last:
            self._fail(at_last)
            return self.observation(self.problem, Outcome.TIMEOUT if at_last.late else Outcome.DIED)

    def _ask(self, question: dict[str, Any], seconds: float) -> dict[str, Any]:
        """An answer, if need be from a new process.

        Raises:
            ProcessLost: none came; no process is left.
        """
        try:
            return self._live().ask(question, seconds)
        except ProcessLost as lost:
            return self._again(lost, lambda: self._live().ask(question, seconds))

    def _again(self, lost: ProcessLost, action: Callable[[], Result]) -> Result:
        """``action`` on a new process, as long as the one before was ``lost`` through no fault of its own.

        Raises:
            ProcessLost: the last of them; no process is left.
        """
        while True:
            self._process = None
            if not lost.blameless or self._num_restores >= MAX_RESTORES:
                raise lost
            self._num_restores += 1
            try:
                return action()
            except ProcessLost as next_lost:
                lost = next_lost

    def _live(self) -> EpisodeProcess:
        """The process, or a new one in the state that ``actions`` lead to.

        Raises:
            StateLost: that state can't be reached.
            ProcessLost: the new process was killed too, from outside.
        """
        if self._process is None:
            process = self._launcher.launch(self.task, self.seed, self.started_at)
            try:
                self._await_start(process)
                for tool, arguments in self.actions:
                    process.ask({"op": "call", "tool": tool, "arguments": arguments}, REPLAY_PATIENCE * self._config.call_seconds)
            except ProcessLost as lost:
                if lost.blameless:
                    raise
                raise StateLost(f"its state can't be reached again: {lost}") from None
            self._process = process
        return self._process

    @staticmethod
    def _await_start(process: EpisodeProcess) -> None:
        answer = process.started()
        if answer["ok"] is not True:
            process.close()
            raise ProcessLost(str(answer["text"]))

    def _known_report(self) -> CheckReport | None:
        """Where no process need be asked."""
        if self._forfeited:
            return CheckReport(0.0, (False,) * len(self.task.checks), (), self.status)
        return self._no_report() if self._closed or self.status.is_missing else None

    def _score_again(self, lost: ProcessLost | None, empty: bool) -> CheckReport:
        """A report, of a new process where the one asked before was ``lost``."""
        question, seconds = _score_question(None, empty), self._config.score_seconds
        try:
            answer = self._ask(question, seconds) if lost is None else self._again(lost, lambda: self._live().ask(question, seconds))
        except StateLost as gone:
            return self._no_state(gone)
        except ProcessLost:
            return self._score_one_by_one(empty)
        return self._report(answer["passed"], answer["problems"], self.status)

    def _score_one_by_one(self, empty: bool) -> CheckReport:
        """Each check with a time limit of its own, and a new process after one that hangs or kills."""
        num_checks = len(self.task.checks)
        passed, problems, num_broken, num_late = [False] * num_checks, [], 0, 0
        for position in range(num_checks):
            try:
                answer = self._ask(_score_question([position], empty), self._config.check_seconds)
                passed[position] = answer["passed"] == [True]
                problems += answer["problems"]
            except ProcessLost as lost:
                if lost.blameless or isinstance(lost, StateLost):
                    return self._no_state(lost)
                num_broken, num_late = num_broken + 1, num_late + lost.late
                problems.append([position, "never_ends" if lost.late else "kills_process", str(lost)])
                if num_broken > MAX_BROKEN_CHECKS:
                    break
        failed = num_late > 0 or num_broken > MAX_BROKEN_CHECKS
        return self._report(passed, problems, Status.VERIFIER_ERROR if failed else self.status)

    def _report(self, passed: list[Any], problems: list[Any], status: Status) -> CheckReport:
        outcomes = tuple(outcome is True for outcome in passed)
        named = tuple(CheckProblem(int(check), str(kind), str(text)) for check, kind, text in problems)
        return CheckReport(None if status.is_missing else share(outcomes), outcomes, named, status)

    def _no_state(self, lost: ProcessLost) -> CheckReport:
        """There is nothing to score: no fault of the policy, nor of its checks."""
        self._process = None
        self.status, self.problem = Status.INFRA_ERROR, str(lost)
        return self._no_report()

    def _no_report(self) -> CheckReport:
        return CheckReport(None, (), (), self.status if self.status.is_missing else Status.VERIFIER_ERROR)

    def _fail(self, lost: ProcessLost) -> None:
        self._process = None
        self.status, self.problem = Status.TIMEOUT if lost.late else Status.INFRA_ERROR, str(lost)

    def _release(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None


def _score_question(checks: list[int] | None, empty: bool) -> dict[str, Any]:
    return {"op": "score", "checks": checks, "empty": empty}
