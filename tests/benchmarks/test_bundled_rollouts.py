"""benchmarks/bundled_rollouts.py: what the scripted expert earns, and that the tiny policy's rollouts have their shape."""

import runpy
from pathlib import Path

import pytest

from envsched.pool import Pool
from envsched.simulate.recorded import read_recordings

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


def test_stages_are_the_policy_as_it_ships_and_the_checkpoints_in_order(tmp_path):
    for step in (20, 5):
        (tmp_path / "checkpoint" / f"checkpoint-{step}").mkdir(parents=True)
    stages = SCRIPT["stages_of"](tmp_path)
    assert list(stages) == [0, 5, 20]
    assert stages[20] == tmp_path / "checkpoint" / "checkpoint-20"


def test_stages_of_a_file_are_kept_and_its_lines_make_a_chain(tmp_path):
    out = tmp_path / "stages.jsonl"
    lines = [SCRIPT["_lines"](FEW, [[0.0, 1.0]] * len(FEW), "tiny", step) for step in (0, 10)]
    out.write_text("".join(lines[0] + lines[1]))
    before = out.read_bytes()
    SCRIPT["record_stages"](FEW, {0: Path("no model here"), 10: Path("nor here")}, 2, out)
    assert out.read_bytes() == before
    (recording,) = read_recordings(out, pool=POOL)
    assert recording.policies == ("tiny at step 0", "tiny at step 10")
    assert recording.pool.tasks == FEW.tasks
