"""What a policy takes of each training GPU; ``python -m envsched.train.memory`` prints the table of docs/memory.md.

Letters: P parameters, L layers, h hidden size, W GPUs, T tokens of a sequence, b sequences of a forward.
Gradients, optimizer and weights stay in fp32; activations, the engine's weights and its cache are bf16.
"""

from dataclasses import dataclass

from envsched.config import Config
from envsched.train.shapes import config_of, num_parameters

GIB = 2**30
FP32, BF16 = 4, 2


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on one GPU; ``cache_tokens`` is how many tokens the engine's key-value cache holds."""

    weights: float
    gradients: float
    optimizer: float
    working: float
    activations: float
    engine_weights: float
    cache: float
    cache_tokens: int

    @property
    def total(self) -> float:
        return self.weights + self.gradients + self.optimizer + self.working + self.activations + self.engine_weights + self.cache


def memory_of(config: Config, world_size: int, sharded: bool, gpu_gib: float, tokens: int = 8192) -> Memory:
    """Bytes per GPU of a profile.

    Args:
        config: of a profile whose model is in ``shapes.SHAPES``.
        world_size: training GPUs, W.
        sharded: FSDP2 or ZeRO-3; without, every GPU holds a replica, and DDP a second copy of the gradients in its buckets.
        gpu_gib: memory of a GPU, GiB.
        tokens: T of the sequences of a forward pass, prompt and episode.
    """
    shape, P = config_of(config.train.model), num_parameters(config.train.model)
    parts = world_size if sharded else 1
    colocated = config.vllm.mode == "colocate"
    engine = BF16 * P if colocated else 0.0
    cache = max(0.0, config.vllm.memory_share * gpu_gib * GIB - engine) if colocated else 0.0
    b, L, h = config.train.max_device_batch, shape.num_hidden_layers, shape.hidden_size
    return Memory(
        weights=FP32 * P / parts,
        gradients=FP32 * P * (2 if world_size > 1 and not sharded else 1) / parts,
        optimizer=2 * FP32 * P / parts if config.train.optimizer == "adamw" else 0.0,
        working=2 * BF16 * _largest_unit(shape) if sharded else 0.0,
        activations=BF16 * b * tokens * (L * h + _inside_a_layer(shape)),
        engine_weights=engine,
        cache=cache,
        cache_tokens=int(cache / cache_bytes_per_token(shape)),
    )


def cache_bytes_per_token(shape) -> int:
    """Keys and values of all layers, bf16."""
    return 2 * BF16 * shape.num_hidden_layers * shape.num_key_value_heads * shape.head_dim


def _largest_unit(shape) -> int:
    """Parameters that FSDP2 gathers at a time: the embedding, or one layer."""
    mlp = (
        3
        * shape.hidden_size
        * (shape.num_experts * shape.moe_intermediate_size if hasattr(shape, "num_experts") else shape.intermediate_size)
    )
    attention = 2 * shape.hidden_size * shape.head_dim * (shape.num_attention_heads + shape.num_key_value_heads)
    return max(shape.vocab_size * shape.hidden_size, mlp + attention)


def _inside_a_layer(shape) -> int:
    """Values per token that the recomputation of one layer holds: norms and residuals, q k v and output, gate, up and product."""
    heads = shape.head_dim * (2 * shape.num_attention_heads + 2 * shape.num_key_value_heads)
    width = shape.num_experts_per_tok * shape.moe_intermediate_size if hasattr(shape, "num_experts") else shape.intermediate_size
    return 4 * shape.hidden_size + heads + 3 * width


def main() -> None:
    """Print one row per profile and host."""
    from pathlib import Path

    from envsched.config import load_config

    print("| profile | GPUs | sharding | weights | gradients | Adam | working | activations | engine | cache | sum | cached tokens |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for path in sorted(Path("configs").glob("qwen3-*.yaml")):
        config = load_config(path)
        for world_size, sharded in ((1, False), (8, False), (8, True), (16, True)):
            for gpu in (80, 141):
                m = memory_of(config, world_size, sharded, gpu)
                parts = (m.weights, m.gradients, m.optimizer, m.working, m.activations, m.engine_weights, m.cache, m.total)
                figures = " | ".join(f"{part / GIB:.1f}" for part in parts)
                fits = "fits" if m.total < 0.92 * gpu * GIB and (m.cache_tokens or config.vllm.mode != "colocate") else "does not fit"
                kind = "FSDP2 / ZeRO-3" if sharded else ("DDP" if world_size > 1 else "none")
                print(f"| {path.stem} | {world_size} x {gpu} GiB: {fits} | {kind} | {figures} | {m.cache_tokens:,} |")


if __name__ == "__main__":
    main()
