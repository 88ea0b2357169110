"""benchmarks/bundled_rollouts.py: what the scripted expert earns, and that the tiny policy's rollouts have their shape."""

import runpy
from pathlib import Path

import pytest

from envsched.pool import Pool

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "bundled_rollouts.py"), run_name="bundled_rollouts")
POOL = Pool.bundled()
FEW = Pool(POOL.environments, POOL.tasks[:30:10])


def test_an_expert_who_forgets_nothing_solves_every_task():
    assert SCRIPT["expert"](FEW, 2, 0.0, 0) == [[1.0, 1.0]] * len(FEW)


def test_an_expert_who_forgets_some_calls_earns_different_rewards():
    rewards = SCRIPT["expert"](FEW, 8, 0.5, 0)
    assert any(len(set(group)) > 1 for group in rewards)
    assert rewards == SCRIPT["expert"](FEW, 8, 0.5, 0)


@pytest.mark.slow
def test_the_tiny_policy_earns_rewards_in_range():
    pytest.importorskip("transformers")
    rewards = SCRIPT["tiny"](FEW, 2, 0)
    assert [len(group) for group in rewards] == [2] * len(FEW)
    assert all(0 <= reward <= 1 for group in rewards for reward in group)
