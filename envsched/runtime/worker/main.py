"""The worker: takes orders on its control socket and forks one process per episode.

Order ``start`` comes with a socket of its own, on which the episode's process then answers the trainer directly. The
worker itself never runs an environment's code; it compiles it, after a fork has tried that first.
"""

import contextlib
import gc
import importlib
import os
import select
import shutil
import signal
import socket
import sys
import threading
from types import CodeType
from typing import Any, NoReturn

from . import frames
from .compiling import compile_in_fork
from .determinism import Determinism
from .instance import Blueprint, Instance, silence
from .sandbox import Walls, enter_episode, enter_worker, probe_episode, writable_folder

# Loaded before the walls go up: extension modules need libraries that are out of sight afterwards.
_EARLY = (
    "_strptime", "array", "base64", "bisect", "calendar", "cmath", "collections", "copy", "csv", "dataclasses", "decimal", "difflib",
    "enum", "fractions", "functools", "hashlib", "heapq", "hmac", "itertools", "math", "operator", "re", "secrets", "sqlite3", "statistics",
    "string", "textwrap", "threading", "typing", "unicodedata", "zlib", "zoneinfo",
)  # fmt: skip

_PATIENCE = 20  # hundredths of a second


class Worker:
    """Code by environment key, blueprints by task key, process ids by episode number.

    Each episode has a folder of its own under ``folder``.
    """

    def __init__(self, control: socket.socket, settings: dict[str, Any], folder: str) -> None:
        self.control = control
        self.settings = settings
        self.folder = folder
        self.determinism = Determinism()
        self.environments: dict[str, CodeType | str] = {}
        self.payloads: dict[str, dict[str, Any]] = {}
        self.blueprints: dict[str, Blueprint] = {}
        self.process_of: dict[int, int] = {}
        self.episode_of: dict[int, int] = {}
        self.status_of: dict[int, int] = {}  # of processes that ended badly and were not asked about yet

    def serve(self) -> None:
        """Until the trainer closes the control socket."""
        while True:
            order, episode_socket = _receive_order(self.control)
            if order is None:
                break
            if order["op"] == "start":
                self._reap()
                self._start(order, episode_socket)
            elif order["op"] == "kill":
                status, was_alive = self._end(order["episode"], patience=_PATIENCE if order["ended"] else 0)
                self.control.sendall(frames.pack({"status": status, "alive": was_alive}))
        for episode in list(self.process_of):
            self._end(episode, patience=0)

    def _start(self, order: dict[str, Any], episode_socket: socket.socket) -> None:
        folder = self._folder_of(order["episode"])
        try:
            blueprint = self._blueprint(order)
            os.mkdir(folder)
            gc.freeze()  # what is here now is shared with the fork; collecting would copy its pages
            process = os.fork()
        except (OSError, RuntimeError, MemoryError) as error:
            episode_socket.sendall(frames.pack({"ok": False, "text": f"no process for the episode: {error}"}))
            episode_socket.close()
            return
        if process == 0:
            self.control.close()
            self._run_episode(episode_socket, blueprint, order, folder)
        if not order["keep"]:
            del self.blueprints[order["task"]]
        self.process_of[order["episode"]] = process
        self.episode_of[process] = order["episode"]
        episode_socket.close()

    def _run_episode(self, stream: socket.socket, blueprint: Blueprint, order: dict[str, Any], folder: str) -> NoReturn:
        """The life of an episode's process."""
        code = 1
        try:
            os.chdir(folder)
            os.environ["TMPDIR"] = folder
            if self.settings["sandbox"] != "off":
                enter_episode(self.settings, folder)
            silence()
            self.determinism.begin(order["seed"], order["start"])
            _answer_requests(stream, Instance(blueprint, self.settings["result_chars"]))
            code = 0
        except BaseException as error:
            stream.sendall(frames.pack({"ok": False, "text": f"{type(error).__name__}: {error}"}))
        finally:
            os._exit(code)

    def _blueprint(self, order: dict[str, Any]) -> Blueprint:
        """Compiled the first time; its sources stay until that has worked.

        Raises:
            RuntimeError: the compiler crashes on them.
        """
        task = order["task"]
        if "payload" in order:
            self.payloads[task] = order["payload"]
        if task not in self.blueprints:
            self.blueprints[task] = self._compile(self.payloads[task])
        self.payloads.pop(task, None)
        return self.blueprints[task]

    def _compile(self, payload: dict[str, Any]) -> Blueprint:
        key, sources = payload["environment"], payload["checks"]
        first = [] if key in self.environments else [payload["source"]]
        codes = compile_in_fork([*first, *sources], self.settings["memory_mb"])
        if first:
            self.environments[key] = codes.pop(0)
        reads_initial_state = any("initial_state" in source for source in sources)
        return Blueprint(self.environments[key], payload["class_name"], payload["initial_state"], codes, reads_initial_state)

    def _folder_of(self, episode: int) -> str:
        return f"{self.folder}/episode-{episode}"

    def _end(self, episode: int, patience: int) -> tuple[int, bool]:
        """Wait status of an episode's process, which is over afterwards, and whether it had to be killed.

        It gets ``patience`` hundredths of a second to end by itself.
        """
        process = self.process_of.pop(episode, None)
        if process is None:
            return self.status_of.pop(episode, 0), False
        del self.episode_of[process]
        ended, status = os.waitpid(process, os.WNOHANG)
        for _ in range(patience):
            if ended:
                break
            select.select([], [], [], 0.01)  # time.sleep is virtual here
            ended, status = os.waitpid(process, os.WNOHANG)
        if not ended:
            os.kill(process, signal.SIGKILL)
            _, status = os.waitpid(process, 0)
        _remove(self._folder_of(episode))
        return status, not ended

    def _reap(self) -> None:
        if not self.process_of:
            return
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process == 0:
                return
            episode = self.episode_of.pop(process, None)
            if episode is None:
                continue
            del self.process_of[episode]
            if status != 0:
                self.status_of[episode] = status
            _remove(self._folder_of(episode))


def _answer_requests(stream: socket.socket, instance: Instance) -> None:
    stream.sendall(frames.pack({"ok": True}))
    inbox = frames.Inbox()
    while True:
        while (request := inbox.take()) is None:
            if not inbox.read(stream):
                return
        if request["op"] == "call":
            reply = instance.call(request["tool"], request["arguments"])
        elif request["op"] == "score":
            reply = instance.score(request["checks"], request["empty"])
        elif request["op"] == "methods":
            reply = instance.methods(request["tools"])
        else:
            reply = instance.snapshot()
        reply["number"] = request["number"]
        stream.sendall(frames.pack(reply))


def _receive_order(control: socket.socket) -> tuple[dict[str, Any] | None, socket.socket | None]:
    header, descriptors, _, _ = socket.recv_fds(control, frames.HEADER.size, 1)
    if not header:
        return None, None
    rest = frames.receive_exactly(control, frames.HEADER.size - len(header)) if len(header) < frames.HEADER.size else b""
    (length,) = frames.HEADER.unpack(header + rest)
    body = frames.receive_exactly(control, length)
    return frames.unpack(body), socket.socket(fileno=descriptors[0]) if descriptors else None


def _remove(folder: str) -> None:
    """The folder of an ended episode, whatever its code left there: too deep to remove stays, and dies with the worker."""
    try:
        os.rmdir(folder)
    except OSError:
        with contextlib.suppress(RecursionError):
            shutil.rmtree(folder, ignore_errors=True)


def _preload() -> None:
    for name in _EARLY:
        with contextlib.suppress(ImportError):  # a Python built without it
            importlib.import_module(name)
    # Runs in every fork to mend locks and lists of threads: here one thread forks and holds no lock, and its pages are copied for it.
    threading._after_fork.__code__ = (lambda: None).__code__


def main() -> None:
    """Entry of the fresh interpreter; argument 1 is the control socket's descriptor."""
    control = socket.socket(fileno=int(sys.argv[1]))
    settings = frames.receive(control)
    if settings is None:
        return
    _preload()
    null = os.open(os.devnull, os.O_WRONLY)
    walls, folder = Walls(), settings["folder"]
    if settings["sandbox"] != "off":
        walls = enter_worker(settings, folder)
        folder = writable_folder(walls, folder)
        walls.join(probe_episode(settings, folder))
    control.sendall(frames.pack({"standing": walls.standing, "missing": walls.missing}))
    os.dup2(null, 2)
    os.close(null)
    Worker(control, settings, folder).serve()
