"""A run whose ranks share the scheduler's graph: the batches of a run on one process, also after a rank was killed."""

import os
import signal
from dataclasses import replace

import pytest
import torch

from envsched.audit import audit_run, read_manifest
from envsched.config import load_config
from envsched.errors import ConfigError, MissingExtraError
from envsched.graph.index import num_gpus
from envsched.train.combinations import refuse_impossible
from envsched.train.preparation import prepare
from tests.train.test_faults import ended, launched, rank_of, wait_for

STEPS = 6


def manifests(run_dir):
    """Without the digest of the history, which holds statuses: sampling decides those."""
    made = [read_manifest(run_dir / f"selector/task_manifest.step_{step}.json") for step in range(STEPS)]
    return [replace(manifest, digests={**manifest.digests, "history": ""}) for manifest in made]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["kernel", "static"])
def test_a_rank_dies_and_other_ranks_go_on_with_the_batches_of_one_process(tmp_path, run_flags, mode):
    flags = [*run_flags, "--set", f"graph_mode={mode}"]
    code, said = ended(launched(1, tmp_path / "one", flags))
    assert code == 0, said[-3000:]
    shared = [*flags, "--set", "train.shared_graph=true"]
    process = launched(2, tmp_path / "shared", shared)
    wait_for(tmp_path / "shared/rollouts/step_3.jsonl", process)
    os.kill(rank_of(process.pid, 1), signal.SIGKILL)
    code, said = ended(process, 120)
    assert code != 0
    assert "Signal 9 (SIGKILL)" in said, said[-3000:]
    code, said = ended(launched(4, tmp_path / "shared", [*shared, "--resume"]))
    assert code == 0, said[-3000:]
    assert "training on 4 processes (cpu), from step 2 of 6" in said
    assert manifests(tmp_path / "shared") == manifests(tmp_path / "one")
    assert audit_run(tmp_path / "shared").steps == tuple(range(STEPS))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (["graph_mode=live"], "sharded in mode static or kernel; came 'live'"),
        (["graph_mode=auto"], "sharded in mode static or kernel; came 'auto'"),
        (["graph_mode=static", "class_prior=true"], "not sharded with class_prior"),
        (["graph_mode=static", "train.scheduler=random"], "'random' stays on rank 0"),
    ],
)
def test_what_ranks_can_not_share_is_refused_at_start(settings, says):
    config = load_config(None, ["train.model=any", "train.trackers=[]", "train.shared_graph=true", *settings])
    with pytest.raises(ConfigError, match=says):
        refuse_impossible(config, 2, "none")


@pytest.mark.parametrize(
    ("mode", "says"), [("auto", "needs graph_mode exact: auto keeps its sums in the native library"), ("exact", "finds no GPU here")]
)
def test_a_gpu_that_is_not_there_or_not_used_is_refused_with_the_remedy(tmp_path, mode, says):
    if mode == "exact" and torch.cuda.is_available():
        pytest.skip("there is a GPU")
    config = load_config(None, ["train.model=any", "train.trackers=[]", "train.graph_device=cuda", f"graph_mode={mode}"])
    with pytest.raises((ConfigError, MissingExtraError), match=f"{says}.*set train.graph_device to auto"):
        refuse_impossible(config, 1, "none")
    with pytest.raises((ConfigError, MissingExtraError), match=says):
        prepare(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_faiss_is_kept_off_the_gpu_where_the_setting_says_so(monkeypatch):
    monkeypatch.setenv("ENVSCHED_DEVICE", "cpu")
    assert num_gpus() == 0
    monkeypatch.setenv("ENVSCHED_DEVICE", "tpu")
    with pytest.raises(ConfigError, match="expected auto, cpu or cuda"):
        num_gpus()
