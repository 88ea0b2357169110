"""The profiles of configs/ for GPUs, as far as they can be built without one."""

import json
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from accelerate.commands.config.config_args import load_config_from_file

from envsched.audit import audit_run, read_manifest
from envsched.config import load_config
from envsched.errors import ConfigError
from envsched.train.combinations import refuse_impossible, sharding_of
from envsched.train.memory import cache_bytes_per_token, memory_of
from envsched.train.preparation import prepare
from envsched.train.shapes import SHAPES, config_of, num_parameters
from tests.train.killing import ROOT

PROFILES = sorted((ROOT / "configs").glob("qwen3-*.yaml"))
PUBLISHED = {"Qwen/Qwen3-1.7B": 1.72e9, "Qwen/Qwen3-4B": 4.02e9, "Qwen/Qwen3-8B": 8.19e9, "Qwen/Qwen3-30B-A3B": 30.5e9}


SYNTHETIC = ["train.pool=synthetic:51x50", "features.encoder=tfidf"]


@pytest.fixture(scope="module")
def features_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared")
    prepare(load_config(PROFILES[0], SYNTHETIC), folder)
    return folder / "selector/features.npz"


def test_there_is_a_profile_for_each_model():
    assert {load_config(path).train.model for path in PROFILES} == set(SHAPES) == set(PUBLISHED)


@pytest.mark.slow
def test_trl_takes_every_profile_on_1_8_and_16_processes(tmp_path):
    words = [sys.executable, "-m", "tests.train.fake_world", str(tmp_path), *map(str, PROFILES), "1", "8", "16"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    built = [json.loads(line) for line in done.stdout.splitlines()]
    assert [args["world_size"] for args in built] == [1] * len(PROFILES) + [8] * len(PROFILES) + [16] * len(PROFILES)
    for args in built:
        assert (args["generation_batch_size"], args["num_generations"]) == (512, 8)
        assert args["steps_per_generation"] == args["gradient_accumulation_steps"]
        assert (args["learning_rate"], args["epsilon"], args["beta"]) == (1e-6, 0.2, 0)
        assert (args["max_steps"], args["save_steps"]) == (201, 20)
        assert args["use_vllm"]
        assert args["chat_template_kwargs"] == {"enable_thinking": True}


@pytest.mark.slow
@pytest.mark.parametrize("world_size", [1, 8, 16])
@pytest.mark.parametrize("profile", PROFILES, ids=lambda path: path.stem)
def test_every_profile_writes_its_first_batch_anywhere(tmp_path, monkeypatch, profile, world_size, features_file):
    monkeypatch.setenv("WORLD_SIZE", str(world_size))
    config = load_config(profile, SYNTHETIC)
    (tmp_path / "run/selector").mkdir(parents=True)
    shutil.copy(features_file, tmp_path / "run/selector")  # as a second run of the same pool may
    prepare(config, tmp_path / "run")
    batch = read_manifest(tmp_path / "run/selector/task_manifest.step_0.json").batch
    assert len(set(batch.tasks)) == 64
    assert len({pick.environment for pick in batch.picks}) == 51
    assert audit_run(tmp_path / "run").steps == (0,)


@pytest.mark.parametrize("model", sorted(SHAPES))
def test_parameters_counted_on_the_meta_device_are_those_of_the_memory_page(model):
    assert num_parameters(model) == pytest.approx(PUBLISHED[model], rel=0.005)
    assert f"{num_parameters(model):,}" in (ROOT / "docs/memory.md").read_text()


def test_memory_by_hand():
    """Qwen3-8B on 8 GPUs, sharded: 16 bytes a parameter over 8; 36 layers x 8 heads x 128 x 2 x 2 bytes of cache a token."""
    made = memory_of(load_config(ROOT / "configs/qwen3-8b.yaml"), 8, True, 80)
    assert made.weights + made.gradients + made.optimizer == 8190735360 * 16 / 8
    assert cache_bytes_per_token(config_of("Qwen/Qwen3-8B")) == 147456
    assert made.cache == pytest.approx(0.45 * 80 * 2**30 - 2 * 8190735360)


@pytest.mark.parametrize("path", sorted((ROOT / "configs/accelerate").glob("*.yaml")), ids=lambda path: path.stem)
def test_accelerate_reads_every_launcher_file(path):
    read = load_config_from_file(str(path))
    stated = yaml.safe_load(path.read_text())
    assert (read.num_processes, read.num_machines) == (stated["num_processes"], stated["num_machines"])
    assert str(read.distributed_type).endswith(stated["distributed_type"])


def refusal_of(settings, sharding):
    """What eight processes are told that want this; none: they may."""
    try:
        refuse_impossible(load_config(overrides=["train.model=some", *settings]), 8, sharding)
    except ConfigError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("settings", "sharding", "words"),
    [
        (["vllm.tensor_parallel=2", "vllm.mode=colocate"], "none", "wait for each other for ever.*Set it to 1"),
        ([], "fsdp", "fsdp with rollouts by transformers.*vllm.mode"),
        ([], "zero3", "zero3 with rollouts by transformers"),
        (["vllm.mode=server", "vllm.speculation=ngram"], "none", "needs vllm.mode colocate.*--speculative-config.*prompt_lookup_max"),
        (["vllm.mode=colocate", "vllm.speculation=ngram", "train.device=cpu"], "none", "speculation ngram needs CUDA.*Set it to off"),
        (["vllm.mode=server", "vllm.max_model_tokens=8192"], "none", "leaves no room for a prompt"),
        (["train.model=''"], "none", "--model-path"),
    ],
)
def test_what_can_not_work_is_refused_with_its_reason(settings, sharding, words):
    assert re.search(words, refusal_of(settings, sharding) or "let through")


@pytest.mark.parametrize(("settings", "sharding"), [([], "none"), (["vllm.mode=server"], "fsdp"), (["vllm.mode=server"], "zero3")])
def test_what_works_is_let_through(settings, sharding):
    assert refusal_of(settings, sharding) is None


def test_sharding_is_read_from_the_launchers_variables():
    assert sharding_of({}) == "none"
    assert sharding_of({"ACCELERATE_USE_FSDP": "true"}) == "fsdp"
    assert sharding_of({"ACCELERATE_USE_DEEPSPEED": "true", "ACCELERATE_DEEPSPEED_ZERO_STAGE": "3"}) == "zero3"
    assert sharding_of({"ACCELERATE_USE_DEEPSPEED": "true", "ACCELERATE_DEEPSPEED_ZERO_STAGE": "2"}) == "none"
