import json
import sys

import pytest

from envsched.pool.opening import open_pool
from envsched.topology import read_topologies
from tests.audit.runs import write_pool
from tests.cli.commands import run_command
from tests.topology.protocol import Say, good_answer, serving

KEY = "sk-a-secret-that-must-not-be-seen"


def test_static_writes_a_line_a_task_in_pool_order(capsys, tmp_path):
    out = tmp_path / "topologies.jsonl"
    status, _, err = run_command(capsys, "topology", "static", "--pool", "bundled", "--out", out)
    assert status == 0
    assert list(read_topologies(out, open_pool("bundled"))) == [task.key for task in open_pool("bundled").tasks]
    assert "static), 0 with a part that could not be read" in err


def test_static_runs_the_checks_at_the_start_when_asked(capsys, tmp_path):
    folder, out = write_pool(tmp_path, num_environments=2, tasks_each=2), tmp_path / "topologies.jsonl"
    status, _, _ = run_command(capsys, "topology", "static", "--pool", folder, "--out", out, "--run-checks")
    assert status == 0
    shares = [topology.reward.true_at_start for topology in read_topologies(out).values()]
    assert all(share is not None and 0 <= share <= 1 for share in shares)


def test_show_prints_one_line_a_task(capsys, tmp_path):
    out = tmp_path / "topologies.jsonl"
    run_command(capsys, "topology", "static", "--pool", "synthetic:2x3", "--out", out)
    status, said, _ = run_command(capsys, "topology", "show", out)
    assert (status, said.count("\n")) == (0, 6)
    key = open_pool("synthetic:2x3").tasks[4].key
    status, said, _ = run_command(capsys, "topology", "show", out, "--task", key)
    assert said.startswith(f"{key}: ")
    assert said.count("\n") == 1
    status, _, err = run_command(capsys, "topology", "show", out, "--task", "none")
    assert status == 2
    assert "has no such task" in err


@pytest.fixture
def endpoint(monkeypatch):
    def script(body, position):
        return Say("no", refusal="never") if "environment_000001-task_0002" in json.dumps(body) else Say(good_answer(body))

    with serving(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield server


def ask(capsys, tmp_path, *more):
    arguments = ("--pool", "synthetic:2x3", "--model", "m", "--cache", tmp_path / "cache", "--out", tmp_path / "out.jsonl", *more)
    return run_command(capsys, "topology", "llm", *arguments)


def test_llm_estimates_then_asks_and_shows_no_key(capsys, tmp_path, endpoint):
    status, out, err = ask(capsys, tmp_path, "--estimate", "--price", "1", "2")
    assert status == 0
    assert "estimate: 6 tasks to ask (0 answered before)" in err
    assert "at the prices given" in err
    assert not endpoint.bodies
    status, out, err = ask(capsys, tmp_path)
    assert status == 0
    assert "6 tasks answered now, 0 before; 6 requests, 600 tokens in, 120 out" in err
    assert "6 topologies (6 llm)" in err
    assert KEY not in out + err + (tmp_path / "out.jsonl").read_text()
    assert list(read_topologies(tmp_path / "out.jsonl", open_pool("synthetic:2x3")))


def test_llm_lists_tasks_that_fell_back(capsys, tmp_path, endpoint):
    status, _, err = ask(capsys, tmp_path, "--max-requests", "2", "--concurrency", "1")
    assert status == 0
    assert err.count("fallback ") == 4
    assert "the cap of 2 requests is reached" in err
    assert "(2 llm, 4 fallback)" in err


def test_llm_without_key_or_endpoint_says_what_to_set(capsys, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    status, _, err = ask(capsys, tmp_path)
    assert status == 2
    assert "OPENAI_API_KEY is not set" in err


def test_llm_without_its_package_names_the_extra(capsys, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name == "openai" or name.startswith("envsched.topology.llm")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "openai", None)
    status, _, err = ask(capsys, tmp_path)
    assert status == 2
    assert "pip install 'envsched[topology]'" in err
