import json

import pytest

from envsched.pool.opening import open_pool
from tests.audit.runs import write_pool
from tests.cli.commands import run_command


def test_stats_count_what_a_pool_holds(capsys, tmp_path):
    folder = write_pool(tmp_path, num_environments=3, tasks_each=4)
    status, out, _ = run_command(capsys, "pool", "stats", folder, "--environments")
    assert status == 0
    assert "tasks         12\n" in out
    assert "environments  3, 3 with a task (4 tasks each)" in out
    assert "checks        12" in out
    assert open_pool(folder).fingerprint in out
    assert "env_2     4 tasks    1 tools  Shelf 2" in out


def test_show_lists_tasks_or_shows_one(capsys, tmp_path):
    folder = write_pool(tmp_path)
    status, out, _ = run_command(capsys, "pool", "show", folder, "--task", "env_1-task_2")
    assert status == 0
    assert "prompt       Take book 2 from shelf 1 and put 2 back" in out
    status, out, _ = run_command(capsys, "pool", "show", folder)
    assert status == 0
    assert out.count("\n") == len(open_pool(folder))
    assert "env_1-task_2  env_1  Take book 2" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("stats", "nowhere"), "error: pool nowhere: no such file or folder"),
        (("stats", "synthetic:5"), "expected synthetic:MxT"),
        (("stats", "synthetic:0x3"), "expected"),
        (("show", "bundled", "--task", "none"), "error: pool bundled has no task 'none'; envsched pool show bundled lists its 321 tasks"),
        (("show", "bundled", "--task", "library-1"), "pool bundled has no task 'library-1'; did you mean 'library-"),
        (("import", "bfcl", "nowhere.json", "--out", "x.jsonl"), "error: nowhere.json: No such file"),
        (("import", "bfcl", "nowhere.json", "--out", "x.json"), "expected a name that ends in .jsonl"),
        (("import", "bfcl", "x", "--out", "x.jsonl", "--environment", "e"), "does not take --environment; it takes --answers, --tools"),
        (("import", "tau-bench", "x.py", "--out", "x.jsonl"), "needs --environment KEY"),
    ],
)
def test_what_cannot_be_done_is_one_line(capsys, arguments, says):
    status, _, err = run_command(capsys, "pool", *arguments)
    assert status == 2
    assert says in err
    assert err.count("\n") == 1


def test_import_writes_a_pool_that_opens_by_its_name(capsys, tmp_path):
    out = tmp_path / "pool.jsonl"
    status, said, _ = run_command(capsys, "pool", "import", "envscaler", write_pool(tmp_path), "--out", out)
    assert status == 0
    assert open_pool(out).fingerprint == open_pool(write_pool(tmp_path)).fingerprint
    assert open_pool(out).fingerprint in said
    tasks = tmp_path / "tasks.json"
    tasks.write_text(json.dumps([{"instruction": "Go.", "actions": [{"name": "move", "arguments": {}}], "outputs": []}]))
    status, _, _ = run_command(capsys, "pool", "import", "tau-bench", tasks, "--environment", "here", "--out", out)
    assert status == 0
    status, said, _ = run_command(capsys, "pool", "stats", out)
    assert "executable    0 of 1 environments have code" in said


def test_pools_by_name():
    assert len(open_pool("synthetic:3x4")) == 12
    assert len(open_pool("bundled").environments) > 12


def test_check_says_that_a_pool_without_code_cannot_be_run(capsys):
    status, out, err = run_command(capsys, "pool", "check", "synthetic:3x4")
    assert status == 2
    assert out == ""
    assert err.startswith("error: pool synthetic:3x4: its environments have no code")
    assert err.count("\n") == 1


def test_check_names_tasks_without_a_check(capsys, tmp_path):
    environment = {"environment": "e", "class_name": "E", "source": "class E:\n    pass\n"}
    lines = [environment, {"key": "t", "environment": "e"}]
    (tmp_path / "pool.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    status, out, _ = run_command(capsys, "pool", "check", tmp_path / "pool.jsonl")
    assert status == 1
    assert "error    t: no_reward: it has no check" in out
