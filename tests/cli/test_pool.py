import pytest

from envsched.pool.opening import open_pool
from tests.audit.runs import write_pool
from tests.cli.commands import run_command


def test_pool_counts_what_it_holds(capsys, tmp_path):
    folder = write_pool(tmp_path, num_environments=3, tasks_each=4)
    status, out, _ = run_command(capsys, "pool", folder, "--environments")
    assert status == 0
    assert "tasks         12\n" in out
    assert "environments  3, 3 with a task (4 to 4 tasks each)" in out
    assert "checks        12" in out
    assert open_pool(folder).fingerprint in out
    assert "env_2     4 tasks    1 tools  Shelf 2" in out


def test_pool_shows_one_task(capsys, tmp_path):
    status, out, _ = run_command(capsys, "pool", write_pool(tmp_path), "--task", "env_1-task_2")
    assert status == 0
    assert "prompt       Take book 2 from shelf 1 and put 2 back" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nowhere",), "error: nowhere: no file of environments"),
        (("synthetic:5",), "expected synthetic:MxT"),
        (("synthetic:0x3",), "expected"),
    ],
)
def test_a_pool_that_cannot_be_opened_is_one_line(capsys, arguments, says):
    status, _, err = run_command(capsys, "pool", *arguments)
    assert status == 1
    assert says in err
    assert err.count("\n") == 1


def test_pools_by_name():
    assert len(open_pool("synthetic:3x4")) == 12
    assert len(open_pool("bundled").environments) > 12
