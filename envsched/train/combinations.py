"""Settings that can't work together are refused before anything is loaded, each with its reason."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Literal

from envsched.config import Config
from envsched.errors import ConfigError, MissingExtraError

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
        raise ConfigError(f"vllm.speculation {v.speculation} needs vllm.mode colocate; a server takes --speculative-config")
    if v.max_model_tokens is not None and v.max_model_tokens <= t.max_completion_tokens:
        raise ConfigError(
            f"vllm.max_model_tokens {v.max_model_tokens} leaves no room for a prompt beside train.max_completion_tokens "
            f"{t.max_completion_tokens}: every rollout would be cut. Raise the one or lower the other"
        )
    if v.mode == "colocate" and find_spec("vllm") is None:
        raise MissingExtraError(
            "vllm.mode is colocate, but vllm is not installed: install the extra 'vllm' (on a CPU: scripts/test_vllm.sh)"
        )
