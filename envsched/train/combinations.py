"""Settings that can't work together are refused before anything is loaded, each with its reason."""

import json
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Literal

import torch

from envsched.config import Config, VllmConfig
from envsched.errors import ConfigError, MissingExtraError
from envsched.graph.index import num_gpus
from envsched.maintained import refuse_unshared

Sharding = Literal["none", "fsdp", "zero3"]


def sharding_of(environment: Mapping[str, str]) -> Sharding:
    """How parameters are sharded, from the variables that ``accelerate launch`` sets."""
    if environment.get("ACCELERATE_USE_FSDP", "").lower() in ("1", "true"):
        return "fsdp"
    if environment.get("ACCELERATE_USE_DEEPSPEED", "").lower() in ("1", "true"):
        return "zero3" if environment.get("ACCELERATE_DEEPSPEED_ZERO_STAGE") == "3" else "none"
    return "none"


def refuse_impossible(config: Config, world_size: int, sharding: Sharding) -> None:
    """Hold the settings against what TRL's multi-turn tool loop can do.

    Raises:
        ConfigError: a combination that would hang, crash or cut every rollout; says why and what to set.
        MissingExtraError: vLLM is asked for and not installed.
    """
    t, v = config.train, config.vllm
    if not t.model:
        raise ConfigError("train.model is empty: give the policy's folder, in the config or by --model-path")
    for tracker in t.trackers:
        if find_spec(tracker) is None:
            raise MissingExtraError(f"train.trackers names {tracker}, which is not installed: pip install 'envsched[{tracker}]'")
    refuse_device(config)
    if t.shared_graph:
        _refuse_unshared(config)
    if v.tensor_parallel > 1:
        raise ConfigError(
            f"vllm.tensor_parallel is {v.tensor_parallel}: ranks that share an engine must call it together, but their tool loops end at "
            "different turns, so they would wait for each other for ever. Set it to 1; a server (vllm.mode: server) may use any number"
        )
    if v.mode == "off" and sharding != "none" and world_size > 1:
        raise ConfigError(
            f"{sharding} with rollouts by transformers: every forward pass gathers parameters from all ranks, but their tool loops end at "
            "different turns, so they would wait for each other for ever. Set vllm.mode to colocate or server, or train with DDP"
        )
    if v.mode != "colocate" and v.speculation != "off":
        flag = json.dumps(speculation_of(v)["speculative_config"])
        raise ConfigError(
            f"vllm.speculation {v.speculation} needs vllm.mode colocate: leave it off, and give the server --speculative-config '{flag}'"
        )
    if v.max_model_tokens is not None and v.max_model_tokens <= t.max_completion_tokens:
        raise ConfigError(
            f"vllm.max_model_tokens {v.max_model_tokens} leaves no room for a prompt beside train.max_completion_tokens "
            f"{t.max_completion_tokens}: every rollout would be cut. Raise the one or lower the other"
        )
    if v.speculation != "off" and is_on_cpu(t.device):
        raise ConfigError(
            f"vllm.speculation {v.speculation} needs CUDA: vLLM's build for CPUs drafts tokens, but can't decide which to keep "
            "(its rejection sampler is a GPU kernel there). Set it to off"
        )
    if v.mode == "colocate" and find_spec("vllm") is None:
        raise MissingExtraError(
            "vllm.mode is colocate, but vllm is not installed: install the extra 'vllm' (on a CPU: scripts/test_vllm.sh)"
        )
    if v.speculation == "suffix" and find_spec("arctic_inference") is None:
        raise MissingExtraError(
            "vllm.speculation is suffix, which vLLM does by the package arctic-inference, and that is not installed: "
            "pip install arctic-inference==0.1.1, or set vllm.speculation to ngram or off"
        )


def refuse_device(config: Config) -> None:
    """Hold the graph's device against its mode and this machine.

    Raises:
        ConfigError: a mode whose sums stay on the CPU.
        MissingExtraError: no GPU, or a FAISS that can't use it.
    """
    if config.train.graph_device != "cuda":
        return
    remedy, mode = "set train.graph_device to auto", config.scheduler.graph_mode
    if mode != "exact":
        raise ConfigError(
            f"train.graph_device cuda needs graph_mode exact: {mode} keeps its sums in the native library, on the CPU; {remedy}"
        )
    if not torch.cuda.is_available():
        raise MissingExtraError(f"train.graph_device is cuda, and torch {torch.__version__} finds no GPU here; {remedy}")
    if not num_gpus():
        raise MissingExtraError(f"train.graph_device is cuda, and this FAISS finds no GPU; install the extra 'cuda', or {remedy}")


def _refuse_unshared(config: Config) -> None:
    if config.train.scheduler != "envsched":
        raise ConfigError(
            f"train.shared_graph shares the graph of scheduler envsched; {config.train.scheduler!r} stays on rank 0: set it to false"
        )
    refuse_unshared(config.scheduler.graph_mode, config.scheduler.class_prior)


def is_on_cpu(device: str) -> bool:
    """Whether training runs without CUDA; ``device`` as in section train."""
    return device == "cpu" or not torch.cuda.is_available()


def speculation_of(config: VllmConfig) -> dict[str, Any]:
    """vLLM's ``speculative_config``, for drafts from the prompt (ngram) or from past rollouts' suffixes."""
    if config.speculation == "off":
        return {}
    drafts = {"method": config.speculation, "num_speculative_tokens": config.speculative_tokens}
    return {"speculative_config": {**drafts, "prompt_lookup_max": 4} if config.speculation == "ngram" else drafts}
