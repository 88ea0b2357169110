"""The client of a server that is slow, silent or gone; the server here only speaks the protocol, so no engine is needed."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed here; scripts/test_vllm.sh runs these tests")

from envsched.errors import ServerError
from envsched.train import server as seen
from envsched.train.server import ServerClient


class Speaker(ThreadingHTTPServer):
    daemon_threads = True
    delay = 0.0  # seconds before a completion
    is_silent = False  # connections stay open, and nothing comes
    refusal = ""  # of every completion, in the server's words

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.freed = threading.Event()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self._answer({"/v1/models": {"data": [{"id": "m"}]}}.get(self.path, {}))

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.freed.wait(self.server.delay)
        if self.server.refusal:
            self._answer({"error": {"message": self.server.refusal}}, 400)
        else:
            self._answer({"choices": []})

    def _answer(self, content, status=200):
        if self.server.is_silent:
            self.server.freed.wait()
            return
        raw = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format, *args):
        """Nobody reads it."""


@pytest.fixture
def speaker(monkeypatch):
    monkeypatch.setattr(seen, "POLL_SECONDS", 0.2)
    speaker = Speaker()
    thread = threading.Thread(target=speaker.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield speaker
    speaker.freed.set()
    speaker.shutdown()
    speaker.server_close()
    thread.join()


def client_of(speaker):
    return ServerClient(base_url=f"http://127.0.0.1:{speaker.server_port}", connection_timeout=5, silent_seconds=1.0)


def test_a_long_answer_is_waited_for_while_the_server_gives_signs_of_life(speaker):
    client = client_of(speaker)
    speaker.delay = 3.0
    began = time.monotonic()
    assert client._post(f"{client.base_url}/v1/completions", json={}) == {"choices": []}
    assert time.monotonic() - began > 2.5 > client._silent_seconds


def test_a_server_that_falls_silent_is_given_up(speaker):
    client = client_of(speaker)
    speaker.is_silent = True
    began = time.monotonic()
    with pytest.raises(ServerError, match=r"went away: no answer to a health check for 1 seconds; .*--resume"):
        client._post(f"{client.base_url}/v1/completions", json={})
    assert time.monotonic() - began < 30


def test_a_refusal_is_given_in_the_servers_words(speaker):
    client = client_of(speaker)
    speaker.refusal = "Out of range float values are not JSON compliant"
    with pytest.raises(ServerError, match=rf"^the vLLM server at {client.base_url} refused: .* 400, .*{speaker.refusal}.*--resume"):
        client._post(f"{client.base_url}/v1/completions", json={})


def test_a_server_that_never_was_is_named_with_the_settings():
    with pytest.raises(ServerError, match=r"no vLLM server answers at http://127.0.0.1:9 within 0 seconds; .*vllm.port"):
        ServerClient(base_url="http://127.0.0.1:9", connection_timeout=0.0, silent_seconds=1.0)
