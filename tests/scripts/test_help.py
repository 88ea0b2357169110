"""What a person sees who tries a script or an example without knowing it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(script, *words):
    environment = {name: value for name, value in os.environ.items() if name != "RANK"} | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, str(ROOT / script), *words], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize("script", sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "scripts").glob("*.py")))
def test_every_script_explains_itself_and_does_nothing_else(script):
    done = run(script, "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: ")


def test_the_curriculum_example_explains_itself():
    done = run("examples/own_curriculum.py", "--help")
    assert done.returncode == 0, done.stderr
    assert "how often is practised" in done.stdout


def test_the_example_of_ranks_says_how_to_start_it():
    done = run("examples/sharded_pool.py")
    assert done.returncode == 1
    assert done.stderr == "a pool is shared by the ranks of a launcher: torchrun --nproc-per-node 2 examples/sharded_pool.py\n"
