"""Worker processes as the trainer holds them: started as fresh interpreters with a clean environment, replaced when dead."""

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
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


class Worker:
    """One persistent worker process and its control socket; any number of episodes live under it."""

    def __init__(self, config: RuntimeConfig) -> None:
        self.known_tasks: set[str] = set()
        self.num_episodes = 0
        self._lock = threading.Lock()
        self._folder = tempfile.TemporaryDirectory(prefix="envsched-worker-", ignore_cleanup_errors=True)
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = _launch(theirs.fileno(), self._folder.name)
        self._control = Channel(ours, CONTROL_LIMIT)
        self._control.send(config.model_dump() | {"folder": self._folder.name}, time.monotonic() + START_SECONDS)

    def greet(self) -> list[str]:
        """Wait until the worker is ready; the protections that it switched on.

        Raises:
            WorkerError: it did not come up, with what it said on standard error.
        """
        try:
            return list(self._control.receive(time.monotonic() + START_SECONDS)["protections"])
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
            OSError, TimeoutError: the worker is gone.
        """
        with self._lock:
            self._control.send(order, time.monotonic() + START_SECONDS, (episode_socket.fileno(),))
            self.known_tasks.add(order["task"])
            self.num_episodes += 1

    def end(self, episode: int, kill: bool) -> None:
        """Forget an episode; ``kill`` ends its process at once (closing its socket ends an idle one by itself)."""
        self.num_episodes -= 1
        if kill and self.alive:
            with self._lock:
                try:
                    self._control.send({"op": "kill", "episode": episode}, time.monotonic() + START_SECONDS)
                except OSError:
                    self._process.kill()

    def close(self) -> None:
        """End the worker and everything under it."""
        self._control.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()


def _launch(control: int, folder: str) -> subprocess.Popen[bytes]:
    """``-S -s -P``: no site packages, no current folder on the path. A fixed hash seed: sets iterate alike in every run."""
    command = [sys.executable, "-S", "-s", "-P", "-B", "-c", _BOOT, str(control), str(_FOLDER / "__init__.py"), str(_FOLDER)]
    return subprocess.Popen(
        command,
        env={"PYTHONHASHSEED": "0", "TZ": "UTC", "LANG": "C.UTF-8", "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=(control,),
        cwd=folder,
        start_new_session=True,
    )
