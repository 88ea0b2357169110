"""A scheduler on rank 0 whose graph lies on all ranks, over gloo: the batches, manifests and predictions of one process."""

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

PROGRAM = """
import json, os, sys
import numpy as np
import torch.distributed as dist
from envsched.files import canonical_json
from envsched.maintained import Leader, Part, follow
from envsched.scheduler import EnvScheduler
from tests.maintained.forking import answers_of_ranks
from tests.scheduler.worlds import make_features, make_pool, records_of, small_config

folder, mode, prior = sys.argv[1:]
pool = make_pool(16, 6)
features = make_features(pool)
config = small_config(graph_mode=mode, prior=prior, filters=("progress",), top_visits=2, flat_visits=2, lease_steps=2)

def shown(scheduler, step):
    batch = scheduler.select(step)
    said = [[p.task, p.lane.value, p.score, dict(p.terms), list(p.bound_by)] for p in batch.picks]
    return [said, dict(batch.masked), batch.gap, [[r.quota, r.reason] for r in batch.relaxed]], batch

def run(scheduler):
    told = [dict(scheduler.graph_header)]
    late = []
    for step in range(8):
        told.append([*shown(scheduler, step)[:1], scheduler.digests(step)])
        batch = scheduler.select(step)
        records = records_of(batch)
        scheduler.observe(late + records[: len(records) - 3 * (step % 2)])  # some come a step late, and hold leases
        late = records[len(records) - 3 * (step % 2):]
    state = json.loads(canonical_json(scheduler.state_dict()))
    scheduler.load_state_dict(state)
    told += [*shown(scheduler, 8)[:1], scheduler.predict(8).tolist(), scheduler.metrics()["calibration/cross_weight"]]
    return told

def rank_of(rank, size):
    dist.init_process_group("gloo", init_method=f"file://{folder}/group{size}", rank=rank, world_size=size)
    if rank:
        follow(Part(features, pool.offsets, config, mode, 60))
        return "followed"
    leader = Leader(features, pool.offsets, config, mode, 60)
    told = run(EnvScheduler(pool, config, 5, features, leader=leader))
    leader.close()
    return told

def shared(size):
    found = answers_of_ranks(size, folder, size, lambda rank: rank_of(rank, size))
    return [found[rank] for rank in range(size)]

alone = json.loads(json.dumps(run(EnvScheduler(pool, config, 5, features))))
print(json.dumps({"alone": alone, **{str(size): shared(size) for size in (1, 2, 4)}}))
"""


@pytest.mark.parametrize(("mode", "prior"), [("static", "pooled"), ("kernel", "pooled"), ("static", "residual"), ("kernel", "residual")])
def test_what_rank_0_says_is_what_one_process_says(tmp_path, mode, prior):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ENVSCHED_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), mode, prior], capture_output=True, text=True, timeout=300, env=environment
    )
    assert done.returncode == 0, done.stderr[-3000:]
    made = json.loads(done.stdout.splitlines()[-1])
    assert any(step[0][1] for step in made["alone"][1:9]), "something was masked"
    for size in (1, 2, 4):
        leader, *others = made[str(size)]
        assert leader == made["alone"], size
        assert others == ["followed"] * (size - 1)
