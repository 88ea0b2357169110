"""A local HTTP server that speaks the chat-completions protocol; what it answers is up to each test's script.

A script gets the request's body and its position among all requests and returns a ``Say``. Everything the server was asked is kept.
"""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Say:
    """One answer: a completion, or an error where ``status`` is not 200."""

    text: str | None = ""
    status: int = 200
    finish: str = "stop"
    refusal: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    raw: bytes | None = None  # sent in place of a completion


Script = Callable[[dict[str, Any], int], Say]


def good_answer(body: dict[str, Any], **changes: Any) -> str:
    """An answer that fits the question: as many checks as it names."""
    question = next(message["content"] for message in body["messages"] if message["role"] == "user")
    checks = int(re.search(r"^## Checks \((\d+)\)$", question, re.MULTILINE)[1])
    return json.dumps(
        {
            "execution": {"phases": ["look_up", "update"], "reads": 2, "writes": 1, "depth": 2, "entities": 1, "discovery": "some"},
            "reward": {"checks": ["equality"] * checks, "negative": 0, "initial": 0, "grading": "partial", **changes},
        }
    )


class ProtocolServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.bodies: list[dict[str, Any]] = []
        self.answered: list[dict[str, Any]] = []  # bodies whose whole answer was written
        self.keys: set[str] = set()
        self.running = self.most_running = 0
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed in the middle of an answer is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    server: ProtocolServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        with server.lock:
            position = len(server.bodies)
            server.bodies.append(body)
            server.keys.add(self.headers.get("Authorization", ""))
            server.running += 1
            server.most_running = max(server.most_running, server.running)
        try:
            say = server.script(body, position) if self.path == "/v1/chat/completions" else Say(status=404)
            time.sleep(say.delay)
            self._answer(say, body)
        finally:
            with server.lock:
                server.running -= 1

    def _answer(self, say: Say, body: dict[str, Any]) -> None:
        if say.status != 200:
            content = {"error": {"message": say.text or f"status {say.status}", "type": "error"}}
        else:
            message = {"role": "assistant", "content": say.text, "refusal": say.refusal}
            content = {
                "id": "c",
                "object": "chat.completion",
                "created": 0,
                "model": body["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": say.finish}],
                "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
            }
        raw = json.dumps(content).encode() if say.raw is None else say.raw
        self.send_response(say.status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(raw)), **say.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)
        self.wfile.flush()
        with self.server.lock:
            self.server.answered.append(body)

    def log_message(self, format: str, *args: Any) -> None:
        """The tests look at what was asked, not at a log."""


@contextmanager
def serving(script: Script) -> Iterator[ProtocolServer]:
    server = ProtocolServer(script)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
