"""Real weights, a real tokenizer and long prompts on EnvScaler's environments: one step of 2 x 2 rollouts with SmolLM2-135M.

``ENVSCHED_SMOLLM2`` names the folder that scripts/make_smollm2.py made, ``ENVSCHED_TESTDATA`` the folder of real environments.
"""

import os
import subprocess
import sys

import pytest

from envsched.audit import audit_run, read_manifest
from envsched.history import read_records
from envsched.pool import Pool
from tests.train.killing import ROOT

POLICY, DATA = os.environ.get("ENVSCHED_SMOLLM2", ""), os.environ.get("ENVSCHED_TESTDATA", "")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not (POLICY and DATA), reason="needs ENVSCHED_SMOLLM2 and ENVSCHED_TESTDATA (docs/training.md, Real weights on a CPU)")
def test_a_step_with_real_weights_ends_with_records_statuses_and_a_next_batch(tmp_path):
    run, pool = tmp_path / "run", Pool.from_envscaler(f"{DATA}/envscaler")
    settings = ["--config", "configs/smollm2.yaml", "--model-path", POLICY, "--pool", f"{DATA}/envscaler", "--run-dir", str(run)]
    done = subprocess.run([sys.executable, "train.py", *settings], cwd=ROOT, capture_output=True, text=True, timeout=3500)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    records = read_records(run / "rollouts/step_0.jsonl")[0]
    assert len(records) == 2
    for record in records:
        assert len(record.rewards) == len(record.status) == 2
        assert all(0 <= reward <= 1 for reward in record.rewards)
        assert all(0 < tokens <= 48 for tokens in record.tokens)
        assert len(record.extra["passed"][0]) == len(pool.task(record.task).checks)
    assert audit_run(run).steps == (0,)
    following = next_batch(run, pool)
    assert len(set(following.tasks)) == 2
    assert read_manifest(run / "selector/task_manifest.step_0.json").batch.tasks != following.tasks


def next_batch(run, pool):
    """What the run's scheduler would choose for step 1."""
    from envsched.config import load_config
    from envsched.features import Features
    from envsched.scheduler import EnvScheduler
    from envsched.train.checkpoints import read_seal

    config = load_config(run / "resolved_config.yaml")
    scheduler = EnvScheduler(pool, config.scheduler, config.train.seed, Features.load(run / "selector/features.npz", pool))
    scheduler.load_state_dict(read_seal(run / "checkpoint/checkpoint-1")["scheduler"])
    return scheduler.select(1)
