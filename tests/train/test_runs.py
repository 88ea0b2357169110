"""Whole runs in processes of their own: kills, resumes, several ranks, flags."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from envsched.audit import audit_run, read_manifest
from tests.train.killing import ROOT, judge

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def run(*words, **environment):
    done = subprocess.run([*words], cwd=ROOT, env={**ENVIRONMENT, **environment}, capture_output=True, text=True, timeout=500)
    return done.returncode, done.stdout + done.stderr


def train(run_dir, flags, *more):
    return run(sys.executable, "train.py", "--run-dir", str(run_dir), *flags, *more)


def on_ranks(number, run_dir, flags, **environment):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(number)]
    return run(*launcher, "-m", "tests.train.pure_run", "--run-dir", str(run_dir), *flags, **environment)


def test_prepare_only_writes_a_batch_that_audits_and_loads_no_model(tmp_path, run_flags):
    code, said = train(tmp_path / "run", run_flags, "--prepare-only", "--model-path", "nowhere")
    assert code == 0, said
    assert said.splitlines() == [f"batch of step 0: 4 tasks, written to {tmp_path}/run/selector/task_manifest.step_0.json"]
    assert len(read_manifest(tmp_path / "run/selector/task_manifest.step_0.json").batch.picks) == 4
    assert audit_run(tmp_path / "run").steps == (0,)
    code, said = train(tmp_path / "run", run_flags, "--prepare-only")
    assert code == 2
    assert "holds a run" in said


@pytest.mark.parametrize(("name", "says"), [("nowhere", "no such folder, and no model of that name"), ("tests", "tests: ")])
def test_a_policy_that_is_not_there_is_one_line_and_takes_no_run_directory(tmp_path, run_flags, name, says):
    code, said = train(tmp_path / "run", run_flags, "--model-path", name)
    assert code == 2
    assert said.splitlines()[-1].startswith(f"error: --model-path {name}: ")
    assert says in said
    assert "Traceback" not in said
    assert not (tmp_path / "run").exists()


def test_a_batch_that_does_not_divide_is_refused_with_what_does(tmp_path, run_flags):
    code, said = run(sys.executable, "train.py", "--run-dir", str(tmp_path / "run"), *run_flags, "--prepare-only", WORLD_SIZE="3")
    assert code == 2
    assert "batch_size 3 or 6, or 2 or 4 processes" in said
    assert not (tmp_path / "run").exists()


def test_an_unknown_setting_names_the_nearest(tmp_path, run_flags):
    code, said = train(tmp_path / "run", run_flags, "--set", "train.learning_rat=1")
    assert code == 2
    assert "did you mean 'learning_rate'?" in said


@pytest.mark.slow
def test_a_killed_run_goes_on_as_if_nothing_had_happened(tmp_path, run_flags):
    assert judge(tmp_path, [*run_flags, "--pure"], moments=2, seed=1) == []


@pytest.mark.slow
def test_two_and_four_processes_choose_the_batches_of_one(tmp_path, run_flags):
    flags = [*run_flags, "--max-steps", "10"]
    for number in (1, 2, 4):
        code, said = on_ranks(number, tmp_path / str(number), flags)
        assert code == 0, said
        assert f"training on {number} process" in said
    for step in range(10):
        one, *others = (read_manifest(tmp_path / number / f"selector/task_manifest.step_{step}.json") for number in "124")
        for other in others:
            assert one.batch == other.batch
            # the history holds statuses, which sampling decides
            assert replace(one, digests={**one.digests, "history": ""}) == replace(other, digests={**other.digests, "history": ""})
    rewards = [
        [[json.loads(line)["rewards"] for line in (tmp_path / number / f"rollouts/step_{step}.jsonl").open()] for step in range(10)]
        for number in "124"
    ]
    assert rewards[0] == rewards[1] == rewards[2]


@pytest.mark.slow
def test_ranks_with_different_pools_stop_with_both_digests(tmp_path, run_flags, bundled):
    folder = shutil.copytree(ROOT / "envsched/pool/bundled", tmp_path / "stale")
    tasks = (folder / "tasks.json").read_text()
    first = bundled.tasks[0].prompt
    (folder / "tasks.json").write_text(tasks.replace(first, f"{first} Please."))
    code, said = on_ranks(2, tmp_path / "run", run_flags, ENVSCHED_TEST_RANK1_POOL=str(folder))
    assert code != 0
    assert "the ranks disagree on the batch of step 0: rank 0: " in said
    assert "; rank 1: " in said
    assert not (tmp_path / "run/rollouts").exists(), "stopped before any rollout"
