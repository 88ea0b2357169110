"""Worker processes as the trainer holds them: started as fresh interpreters with a clean environment, replaced when dead."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envsched.config import RuntimeConfig
from envsched.errors import WorkerError
from envsched.runtime.channel import Channel
from envsched.runtime.worker import frames

# The worker's package under a name of its own: importing it as part of envsched would run envsched's own imports.
_BOOT = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("envsched_worker", sys.argv[2], submodule_search_locations=[sys.argv[3]])
sys.modules["envsched_worker"] = package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
from envsched_worker.main import main
main()
"""
_FOLDER = Path(__file__).parent / "worker"
START_SECONDS = 60.0
CONTROL_LIMIT = 1 << 20


class WorkerGone(Exception):
    """The worker process died or stopped answering."""


@dataclass(frozen=True, slots=True)
class Protections:
    """``standing``: the walls that are up. ``missing``: why another is not. Both empty with ``sandbox: off``."""

    standing: tuple[str, ...]
    missing: Mapping[str, str]

    def __str__(self) -> str:
        absent = "".join(f"; no {name} ({why})" for name, why in self.missing.items())
        return f"{', '.join(self.standing) or 'none'}{absent}"


class Worker:
    """One persistent worker process and its control socket; any number of episodes live under it."""

    def __init__(self, config: RuntimeConfig) -> None:
        self.known_tasks: set[str] = set()
        self.num_episodes = 0
        self._protected = config.sandbox != "off"
        self._lock = threading.Lock()
        self._folder = tempfile.TemporaryDirectory(prefix="envsched-worker-", ignore_cleanup_errors=True)
        ours, theirs = socket.socketpair()
        with theirs:
            os.set_inheritable(theirs.fileno(), True)
            self._process = _launch(theirs.fileno(), self._folder.name, self._protected)
        self._control = Channel(ours, CONTROL_LIMIT)
        settings = config.model_dump() | {"folder": self._folder.name}
        with contextlib.suppress(OSError):  # already dead: greet tells what it said
            self._control.send(settings, time.monotonic() + START_SECONDS)

    def greet(self) -> Protections:
        """Wait until the worker is ready; the protections that it switched on.

        Raises:
            WorkerError: it did not come up, with what it said on standard error.
        """
        try:
            report = self._control.receive(time.monotonic() + START_SECONDS)
            return Protections(("clean_environment", *report["standing"]) if self._protected else (), report["missing"])
        except (OSError, frames.FrameError) as error:
            self.close()
            said = self._process.stderr.read().decode(errors="replace").strip()
            raise WorkerError(f"an environment worker did not start ({error or 'no answer'}): {said[-2000:]}") from None

    @property
    def process_id(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def start(self, order: dict[str, Any], episode_socket: socket.socket) -> None:
        """Hand ``episode_socket`` to a new episode's process.

        Raises:
            WorkerGone: the worker died.
        """
        with self._conversation():
            self._control.send(order, time.monotonic() + START_SECONDS, (episode_socket.fileno(),))
        if order["keep"]:
            self.known_tasks.add(order["task"])
        self.num_episodes += 1

    def forget(self) -> None:
        """One episode fewer."""
        self.num_episodes -= 1

    def kill(self, episode: int, ended: bool) -> tuple[int, bool]:
        """End an episode's process; its wait status, and whether it was alive.

        Args:
            ended: its socket closed, so it is given a moment to end by itself first.

        Raises:
            WorkerGone: the worker died, and every episode under it.
        """
        with self._conversation():
            self._control.send({"op": "kill", "episode": episode, "ended": ended}, time.monotonic() + START_SECONDS)
            answer = self._control.receive(time.monotonic() + START_SECONDS)
        return int(answer["status"]), bool(answer["alive"])

    @contextlib.contextmanager
    def _conversation(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except (OSError, frames.FrameError) as error:
                self._process.kill()
                self._process.wait()
                raise WorkerGone(f"environment worker {self.process_id} is gone: {error}") from None

    def close(self) -> None:
        """End the worker and everything under it."""
        self._control.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()


def _launch(control: int, folder: str, protected: bool) -> subprocess.Popen[bytes]:
    """``-S -s -P``: no site packages, no current folder on the path. A fixed hash seed: sets iterate alike in every run."""
    needed = {"PYTHONHASHSEED": "0", "TZ": "UTC", "LANG": "C.UTF-8"}
    if "LD_LIBRARY_PATH" in os.environ:  # where some Pythons find their own library
        needed["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    return subprocess.Popen(
        [sys.executable, "-S", "-s", "-P", "-B", "-c", _BOOT, str(control), str(_FOLDER / "__init__.py"), str(_FOLDER)],
        env=needed if protected else dict(os.environ) | needed,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=(control,) if protected else (),
        close_fds=protected,
        cwd=folder,
        start_new_session=True,
    )
