"""One episode's process as the trainer holds it: questions and answers, each with a deadline, and how it ended."""

import contextlib
import signal
import time
from typing import Any, NoReturn

from envsched.runtime.channel import Channel, ProcessEnded
from envsched.runtime.worker.frames import FrameError
from envsched.runtime.workers import Worker, WorkerGone


class ProcessLost(Exception):
    """The process ended or broke the protocol.

    ``late``: it used up its time. ``blameless``: it was killed from outside, alone or with its worker; by the walls around
    it no environment can do that to itself.
    """

    def __init__(self, reason: str, late: bool = False, blameless: bool = False) -> None:
        super().__init__(reason)
        self.late = late
        self.blameless = blameless


class EpisodeProcess:
    """At most one question is open at a time. After ``ProcessLost`` nothing of the process is left."""

    def __init__(self, worker: Worker, channel: Channel, number: int, seconds: float) -> None:
        self._worker = worker
        self._channel = channel
        self._number = number
        self._question = 0
        self._open = True
        self.deadline = time.monotonic() + seconds

    def fileno(self) -> int:
        """Where the answer arrives."""
        return self._channel.fileno()

    def started(self) -> dict[str, Any]:
        """Wait for the word that the environment stands, or why it does not."""
        return self._receive()

    def ask(self, question: dict[str, Any], seconds: float) -> dict[str, Any]:
        """``post`` and ``collect``."""
        self.post(question, seconds)
        return self.collect()

    def post(self, question: dict[str, Any], seconds: float) -> None:
        """Send a question; ``collect`` waits at most ``seconds`` from now for the answer."""
        self.deadline = time.monotonic() + seconds
        self._question += 1
        try:
            self._channel.send(question | {"number": self._question}, self.deadline)
        except (OSError, FrameError) as error:
            self._lose(error)

    def collect(self) -> dict[str, Any]:
        """The answer.

        Raises:
            ProcessLost: none came.
        """
        answer = self._receive()
        if answer.get("number") != self._question:
            self._lose(FrameError("an answer to no question"))
        return answer

    def close(self) -> None:
        """Let the process go: an idle one ends when its socket closes."""
        if self._open:
            self._open = False
            self._channel.close()
            self._worker.forget()

    def kill(self) -> None:
        """End the process at once, whatever it is doing."""
        if self._open:
            self.close()
            with contextlib.suppress(WorkerGone):
                self._worker.kill(self._number, ended=False)

    def _receive(self) -> dict[str, Any]:
        try:
            return self._channel.receive(self.deadline)
        except (OSError, FrameError) as error:
            self._lose(error)

    def _lose(self, error: Exception) -> NoReturn:
        self.close()
        try:
            status, was_alive = self._worker.kill(self._number, ended=isinstance(error, ProcessEnded))
        except WorkerGone:
            raise ProcessLost("its worker is gone", blameless=True) from None
        if isinstance(error, TimeoutError):
            raise ProcessLost("it took longer than its time limit", late=True) from None
        if was_alive:
            raise ProcessLost(f"its process broke the protocol: {error}") from None
        ended_by = status & 0x7F
        if ended_by == signal.SIGXCPU:
            raise ProcessLost("it used up its CPU seconds", late=True) from None
        raise ProcessLost(f"its process is gone ({_fate(status)})", blameless=ended_by == signal.SIGKILL) from None


def _fate(status: int) -> str:
    """Words for a wait status."""
    if status & 0x7F:
        return f"ended by {signal.Signals(status & 0x7F).name}"
    return f"exit code {status >> 8}"
