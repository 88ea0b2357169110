"""The worker: takes orders on its control socket and forks one process per episode.

Order ``start`` comes with a socket of its own, on which the episode's process then answers the trainer directly. The
worker itself never runs an environment's code; it compiles it, after a fork has tried that first.
"""

import gc
import os
import signal
import socket
import sys
from typing import Any

from . import frames
from .determinism import make_deterministic
from .instance import Blueprint, Instance, silence
from .limits import limit_episode, limit_worker

MAX_REQUEST = 256 << 20


class Worker:
    """Blueprints by task key, process ids by episode number."""

    def __init__(self, control: socket.socket, settings: dict[str, Any]) -> None:
        self.control = control
        self.settings = settings
        self.blueprints: dict[str, Blueprint] = {}
        self.process_of: dict[int, int] = {}

    def serve(self) -> None:
        """Until the trainer closes the control socket."""
        while True:
            order, episode_socket = _receive_order(self.control)
            if order is None:
                break
            self._reap()
            if order["op"] == "start":
                self._start(order, episode_socket)
            elif order["op"] == "kill":
                self._kill(order["episode"])
        for process in self.process_of.values():
            _kill(process)

    def _start(self, order: dict[str, Any], episode_socket: socket.socket) -> None:
        try:
            blueprint = self._blueprint(order)
            gc.freeze()  # what is here now is shared with the fork; collecting would copy its pages
            process = os.fork()
        except (OSError, RuntimeError, MemoryError) as error:
            episode_socket.sendall(frames.pack({"ok": False, "text": f"no process for the episode: {error}"}))
            episode_socket.close()
            return
        if process == 0:
            self.control.close()
            run_episode(episode_socket, blueprint, order, self.settings)
        self.process_of[order["episode"]] = process
        episode_socket.close()

    def _blueprint(self, order: dict[str, Any]) -> Blueprint:
        if "payload" in order:
            _try_in_fork(lambda: Blueprint.of(order["payload"]), self.settings)
            self.blueprints[order["task"]] = Blueprint.of(order["payload"])
        return self.blueprints[order["task"]]

    def _kill(self, episode: int) -> None:
        process = self.process_of.pop(episode, None)
        if process is not None:
            _kill(process)

    def _reap(self) -> None:
        if not self.process_of:
            return
        while True:
            try:
                process, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process == 0:
                return
            self.process_of = {episode: other for episode, other in self.process_of.items() if other != process}


def run_episode(stream: socket.socket, blueprint: Blueprint, order: dict[str, Any], settings: dict[str, Any]) -> None:
    """The life of an episode's process; never returns."""
    code = 1
    try:
        silence()
        limit_episode(settings)
        make_deterministic(order["seed"], order["start"])
        _answer_requests(stream, blueprint)
        code = 0
    except BaseException as error:
        stream.sendall(frames.pack({"ok": False, "text": f"{type(error).__name__}: {error}"}))
    finally:
        os._exit(code)


def _answer_requests(stream: socket.socket, blueprint: Blueprint) -> None:
    instance = Instance(blueprint)
    stream.sendall(frames.pack({"ok": True}))
    while (request := frames.receive(stream)) is not None:
        if request["op"] == "call":
            reply = instance.call(request["tool"], request["arguments"])
        elif request["op"] == "score":
            reply = instance.score(request["checks"])
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


def _try_in_fork(action, settings: dict[str, Any]) -> None:
    """Source that crashes the compiler must not take the worker, and every episode under it, along."""
    process = os.fork()
    if process == 0:
        try:
            limit_episode(settings)
            action()
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(process, 0)
    if status != 0:
        raise RuntimeError(f"compiling the source ended its process (status {status})")


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    except (ProcessLookupError, ChildProcessError):
        pass


def main() -> None:
    """Entry of the fresh interpreter; argument 1 is the control socket's descriptor."""
    control = socket.socket(fileno=int(sys.argv[1]))
    settings = frames.receive(control)
    if settings is None:
        return
    protections = limit_worker(settings)
    control.sendall(frames.pack({"protections": protections}))
    Worker(control, settings).serve()
