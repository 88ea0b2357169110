"""Rollouts that can't start, and pools none can be started of."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from transformers import TrainerCallback

from envsched.audit import audit_run
from envsched.history import read_records
from envsched.pool import Pool
from envsched.pool.jsonl import write_jsonl
from envsched.runtime import EnvironmentRuntime
from envsched.train.run_log import read_metrics
from envsched.types import Batch, Lane, Pick, Status
from tests.train.killing import ROOT
from tests.train.rotation import Rotation

BROKEN = "raise OSError('no disk')"


def train(run_dir, flags, *more):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    words = [sys.executable, "train.py", "--run-dir", str(run_dir), *flags, *more]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def failing(pool, keys, **changes):
    """The pool with environments of ``keys`` that can't start."""
    return Pool([replace(e, source=BROKEN, **changes) if e.key in keys else e for e in pool.environments], pool.tasks)


def test_a_pool_without_code_is_prepared_but_not_trained_on(tmp_path, run_flags):
    flags = [*run_flags, "--pool", "synthetic:6x10"]
    code, said = train(tmp_path / "run", flags)
    assert code == 2
    assert said.splitlines()[-1].startswith("error: pool synthetic:6x10: its environments have no code, so no rollout can start there")
    assert "Traceback" not in said
    assert not (tmp_path / "run").exists()
    assert train(tmp_path / "run", flags, "--prepare-only")[0] == 0
    assert audit_run(tmp_path / "run").steps == (0,)
    code, said = train(tmp_path / "run", flags, "--resume")
    assert code == 2
    assert "Traceback" not in said


@pytest.mark.slow
@pytest.mark.parametrize("tools", ["with tools", "without"])
def test_a_run_in_which_nothing_starts_goes_on_and_resumes(tmp_path, run_flags, bundled, tools):
    keys = {environment.key for environment in bundled.environments}
    write_jsonl(failing(bundled, keys, **({"tools": ()} if tools == "without" else {})), tmp_path / "broken.jsonl")
    flags = [*run_flags, "--pool", str(tmp_path / "broken.jsonl")]
    code, said = train(tmp_path / "run", [*flags, "--max-steps", "2"])
    assert code == 0, said
    code, said = train(tmp_path / "run", [*flags, "--max-steps", "3"], "--resume")
    assert code == 0, said
    assert "from step 2 of 3" in said
    for step in range(3):
        records, _ = read_records(tmp_path / f"run/rollouts/step_{step}.jsonl")
        assert [record.rewards for record in records] == [(None,) * 4] * 4
        assert {status for record in records for status in record.status} == {Status.INFRA_ERROR}
        assert all("no disk" in error for record in records for errors in record.extra["errors"] for error in errors)
    assert audit_run(tmp_path / "run").steps == (0, 1, 2)
    assert [line["step"] for line in read_metrics(tmp_path / "run/logs/metrics.jsonl")] == [0, 1, 2]


class InTurn(Rotation):
    """Tasks of whole environments on even steps, of broken ones on odd steps."""

    def __init__(self, pool, batch_size, broken):
        super().__init__(pool, batch_size)
        self.tasks = [[t for t in pool.tasks if (t.environment in broken) == odd] for odd in (False, True)]

    def select(self, step):
        tasks = self.tasks[step % 2][: self.batch_size]
        return Batch(step, tuple(Pick(task.key, task.environment, Lane.COVERAGE, 0.0) for task in tasks))


class Weights(TrainerCallback):
    """Copies of the policy's weights and its optimizer's momentum after each step."""

    def __init__(self):
        self.seen = []

    def on_step_end(self, args, state, control, model=None, optimizer=None, **_):
        momentum = [kept["exp_avg"].clone() for kept in optimizer.state_dict()["state"].values()]
        self.seen.append([value.clone() for value in model.state_dict().values()] + momentum)


def test_a_step_without_any_reward_moves_neither_weights_nor_momentum(build, bundled):
    broken = {environment.key for environment in bundled.environments[::2]}
    pool, weights = failing(bundled, broken), Weights()
    with EnvironmentRuntime(pool, num_workers=1) as runtime:
        trainer = build(InTurn(pool, 3, broken), settings=["train.max_steps=3"], pool=pool, runtime=runtime)
        trainer.add_callback(weights)
        trainer.train()
    first, second, third = weights.seen
    assert all(map(torch.equal, first, second))
    assert not all(map(torch.equal, second, third))
    statuses = [{s for r in read_records(trainer._rounds.run.layout.rollouts(step))[0] for s in r.status} for step in range(3)]
    assert statuses[1] == {Status.INFRA_ERROR}
    assert not any(status.is_missing for status in statuses[0] | statuses[2])
