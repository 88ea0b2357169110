"""A pool shared by real processes over gloo: the batches of one process, bit for bit, on 1, 2 and 4 ranks."""

import json
import os
import subprocess
import sys

import pytest

from kernels import native

pytestmark = [
    pytest.mark.skipif(
        not native.is_built() or not native.has_int8(), reason="no native library with int8 products was built (python -m kernels.build)"
    ),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork"),
]

# Forked after the imports, so that seven ranks cost one start; one thread each, so that a fork is safe.
PROGRAM = """
import json, os, sys
import numpy as np
import torch.distributed as dist
from envsched.config import SchedulerConfig
from envsched.errors import EnvschedError
from envsched.maintained import BUILDERS, LargePool, shard_pool
from tests.graph.worlds import make_world
from tests.maintained.forking import answers_of_ranks

folder, scenario = sys.argv[1], json.loads(sys.argv[2])
SIZES = [1, 30, 7, 12, 2, 25, 9, 16, 3, 40] * 5
features, environment_of = make_world(SIZES, seed=4, num_archetypes=60)
offsets = np.concatenate([[0], np.cumsum(SIZES)])
config = SchedulerConfig(batch_size=16, calibration_start=32, calibration_full=64, **scenario["config"])
solved = np.random.default_rng(1).beta(0.5, 0.5, size=offsets[-1])

def rewards_of(step, rows):
    return np.array([np.random.default_rng([step, row]).binomial(1, solved[row], size=8) for row in rows], dtype=float).reshape(-1, 8)

def follow(pool, rank, size, steps):
    batches = []
    for step, rows in enumerate(scenario.get("recorded", [])):
        mine = np.array(rows[rank::size], dtype=np.int64)
        pool.observe(step, mine, rewards_of(step, mine))
    for step in range(len(scenario.get("recorded", [])), steps):
        made = pool.select(step)
        shown = [made.penalty.tolist(), [lane.value for lane in made.lanes], made.bound_by, made.certified, len(made.relaxed)]
        batches.append([made.rows.tolist(), *shown])
        mine = made.rows[rank::size] if step % 3 else made.rows[made.rows % size == rank]
        if rank == scenario.get("dies") and step == 2:
            os.kill(os.getpid(), 9)
        pool.observe(step, mine, rewards_of(step, mine))
    return batches + [pool.predict(steps).tolist()]

def shared(size, name):
    def answer_of(rank):
        try:
            dist.init_process_group("gloo", init_method=f"file://{folder}/{name}", rank=rank, world_size=size)
            pool = shard_pool(features, offsets, config, seed=3, mode=scenario["mode"], seconds=60)
            return follow(pool, rank, size, scenario["steps"])
        except EnvschedError as error:
            return f"{type(error).__name__}: {error}"

    return answers_of_ranks(size, folder, name, answer_of)

alone = follow(LargePool(features, offsets, BUILDERS[scenario["mode"]](features, offsets, config), config, 3), 0, 1, scenario["steps"])
print(json.dumps({"alone": alone, **{str(size): shared(size, f"ranks{size}") for size in scenario["ranks"]}}))
"""


def run(tmp_path, **scenario):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ENVSCHED_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), json.dumps(scenario)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("mode", "config"),
    [
        ("static", {}),
        ("kernel", {"coverage_share": 0.25}),
        ("static", {"prior": "residual"}),
        ("kernel", {"prior": "residual", "coverage_share": 0.25}),
        ("static", {"estimator": "paper", "max_consecutive": 1, "num_within": 2}),
        ("kernel", {"max_per_environment": 1, "max_per_environment_window": 1}),  # quotas that can't be kept: composed over all tasks
    ],
)
def test_the_batches_are_those_of_one_process(tmp_path, mode, config):
    made = run(tmp_path, mode=mode, config=config, steps=7, ranks=[1, 2, 4])
    for size in (1, 2, 4):
        for rank in range(size):
            assert made[str(size)][str(rank)] == made["alone"], (size, rank)


def test_a_rank_that_dies_ends_the_others_with_the_way_to_go_on(tmp_path):
    made = run(tmp_path, mode="static", config={}, steps=5, ranks=[2], dies=1)["2"]
    assert "1" not in made
    assert made["0"].startswith("RankError: rank 0 of 2 lost another rank"), made["0"]
    assert "observe the recorded steps once more" in made["0"]


def test_after_a_death_any_number_of_ranks_goes_on_from_the_recorded_steps(tmp_path):
    mode = "kernel"
    whole = run(tmp_path, mode=mode, config={}, steps=6, ranks=[])["alone"]
    killed = run(tmp_path, mode=mode, config={}, steps=6, ranks=[2], dies=1)["2"]
    assert "RankError" in killed["0"]
    (tmp_path / "again").mkdir()
    again = run(tmp_path / "again", mode=mode, config={}, steps=6, ranks=[1, 4], recorded=[step[0] for step in whole[:2]])
    for size in (1, 4):
        for rank in range(size):
            assert again[str(size)][str(rank)] == whole[2:], (size, rank)
