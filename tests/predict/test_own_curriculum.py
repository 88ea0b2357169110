"""The example runs as a user runs it, and its curriculum beats chance on every seed tried."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_curriculum.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("own_curriculum", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_runs_from_the_command_line():
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLE.parents[1])}
    out = subprocess.run([sys.executable, EXAMPLE, "20"], capture_output=True, text=True, check=True, env=environment)
    assert [line.split()[:2] for line in out.stdout.splitlines()] == [["practises", "mean"], ["at", "random"], ["by", "forecast"]]


@pytest.mark.parametrize("seed", range(5))
def test_practising_by_forecast_beats_chance(example, seed):
    chosen, skill = example.practise(60, seed=seed)
    random, random_skill = example.practise(60, chooses=False, seed=seed)
    assert chosen > 1.15 * random
    assert skill > random_skill
