"""Shapes of the policies that configs/ has profiles for: enough to count parameters and memory without a download."""

from functools import cache

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig

_DENSE = {"model_type": "qwen3", "vocab_size": 151936, "head_dim": 128, "num_key_value_heads": 8, "max_position_embeddings": 40960}
_SPARSE = {**_DENSE, "model_type": "qwen3_moe", "num_key_value_heads": 4, "num_experts": 128, "num_experts_per_tok": 8}


def _shape(base: dict, hidden: int, layers: int, heads: int, intermediate: int, tied: bool, **more: int) -> dict:
    return {
        **base,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": intermediate,
        "tie_word_embeddings": tied,
        **more,
    }


SHAPES = {  # as the models' own config.json state them
    "Qwen/Qwen3-1.7B": _shape(_DENSE, 2048, 28, 16, 6144, True),
    "Qwen/Qwen3-4B": _shape(_DENSE, 2560, 36, 32, 9728, True),
    "Qwen/Qwen3-8B": _shape(_DENSE, 4096, 36, 32, 12288, False),
    "Qwen/Qwen3-30B-A3B": _shape(_SPARSE, 2048, 48, 32, 6144, False, moe_intermediate_size=768),
}


def config_of(model: str) -> PretrainedConfig:
    """The transformers config of a model in ``SHAPES``."""
    shape = dict(SHAPES[model])
    return AutoConfig.for_model(shape.pop("model_type"), **shape)


@cache
def num_parameters(model: str) -> int:
    """Parameters of the real class built on the meta device; a tied embedding counts once."""
    with torch.device("meta"):
        built = AutoModelForCausalLM.from_config(config_of(model))
    return sum(parameter.numel() for parameter in built.parameters())
