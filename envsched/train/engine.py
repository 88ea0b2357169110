"""vLLM where TRL's own way does not reach: weight pushes without CUDA, speculative decoding, what the engine counts.

TRL builds its engine inside ``GRPOTrainer.__init__``, so what it builds is swapped while that runs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import trl.generation.vllm_generation as seam

from envsched.config import VllmConfig
from envsched.train.combinations import speculation_of
from envsched.train.reload import reload_policy
from envsched.train.server import FileClient, ServerClient

SHARES = {  # metric: (part, whole), by vLLM's names of its counters
    "vllm/prefix_cache_hit_rate": ("vllm:prefix_cache_hits", "vllm:prefix_cache_queries"),
    "vllm/draft_acceptance": ("vllm:spec_decode_num_accepted_tokens", "vllm:spec_decode_num_draft_tokens"),
}


@contextmanager
def adapted_engine(config: VllmConfig, on_cpu: bool, dtype: str) -> Iterator[None]:
    """While this is open, TRL builds its engine with our settings.

    Args:
        config: section vllm.
        on_cpu: training without CUDA, where weights reach a server by a saved file and compiling a model takes longer than it saves.
        dtype: of a colocated engine's weights; fp32 policies are checkpoints of fp32, which vLLM would read as bf16.
    """
    names = {"LLM": getattr(seam, "LLM", None), "VLLMClient": seam.VLLMClient}
    if config.mode == "colocate":
        seam.LLM = partial(names["LLM"], dtype=dtype, disable_log_stats=False, enforce_eager=on_cpu, **speculation_of(config))
    if config.mode == "server":
        seam.VLLMClient = partial(FileClient if on_cpu else ServerClient, silent_seconds=config.silent_seconds)
    try:
        yield
    finally:
        for name, value in names.items():
            if value is not None:
                setattr(seam, name, value)


def push_by_reload(generation: Any) -> None:
    """TRL's ``sync_weights`` for a colocated engine on a CPU, whose re-packed layers ``load_weights`` can't fill."""
    runner = generation.llm.llm_engine.model_executor.driver_worker.model_runner
    reload_policy(runner, generation._iter_named_params())
    generation.llm.reset_prefix_cache()


class EngineFigures:
    """Shares of what an engine has done since it was last asked, under namespaced keys.

    ``vllm/prefix_cache_hit_rate``: prompt tokens found in the prefix cache, of those asked for. ``vllm/draft_acceptance``: drafted
    tokens that were kept, of all; only with speculation.
    """

    def __init__(self) -> None:
        self._before: dict[str, float] = {}

    def since_last(self, generation: Any) -> dict[str, float]:
        """Of TRL's ``VLLMGeneration``; a share of nothing is left out."""
        counts = _counts(generation)
        new = {name: count - self._before.get(name, 0.0) for name, count in counts.items()}
        self._before = counts
        return {share: new.get(part, 0.0) / new[whole] for share, (part, whole) in SHARES.items() if new.get(whole)}


def _counts(generation: Any) -> dict[str, float]:
    """Counters since the engine started."""
    if generation.mode == "colocate":
        return {metric.name: metric.value for metric in generation.llm.get_metrics() if hasattr(metric, "value")}
    lines = generation.vllm_client.read_metrics().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
    return {name.partition("{")[0].removesuffix("_total"): float(value) for name, value in pairs}
