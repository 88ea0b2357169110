"""vLLM where TRL's own way does not reach: weight pushes without CUDA, speculative decoding, the prefix cache's hit rate.

TRL builds its engine inside ``GRPOTrainer.__init__``, so what it builds is swapped while that runs.
"""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import trl.generation.vllm_generation as seam
from safetensors.torch import save_file
from trl.generation.vllm_client import VLLMClient

from envsched.config import VllmConfig
from envsched.train.reload import reload_policy


@contextmanager
def adapted_engine(config: VllmConfig, on_cpu: bool, dtype: str) -> Iterator[None]:
    """While this is open, TRL builds its engine with our settings.

    Args:
        config: section vllm.
        on_cpu: training without CUDA, where weights reach a server by a saved file.
        dtype: of a colocated engine's weights; fp32 policies are checkpoints of fp32, which vLLM would read as bf16.
    """
    names = {"LLM": getattr(seam, "LLM", None), "VLLMClient": seam.VLLMClient}
    if config.mode == "colocate":
        seam.LLM = partial(names["LLM"], dtype=dtype, disable_log_stats=False, **speculation_of(config))
    if config.mode == "server" and on_cpu:
        seam.VLLMClient = FileClient
    try:
        yield
    finally:
        for name, value in names.items():
            if value is not None:
                setattr(seam, name, value)


def speculation_of(config: VllmConfig) -> dict[str, Any]:
    """vLLM's ``speculative_config``, for drafts from the prompt (ngram) or from past rollouts' suffixes."""
    if config.speculation == "off":
        return {}
    drafts = {"method": config.speculation, "num_speculative_tokens": config.speculative_tokens}
    return {"speculative_config": {**drafts, "prompt_lookup_max": 4} if config.speculation == "ngram" else drafts}


class FileClient(VLLMClient):
    """Pushes weights to a vLLM server on the same file system, which needs no NCCL: a saved file, read by ``ReloadingWorker``."""

    def init_communicator(self, device: Any = 0) -> None:
        """Nothing to connect."""

    def update_named_params(self, metadata: list[tuple[str, str, list[int]]], params: Iterable[tuple[str, torch.Tensor]]) -> None:
        """Save the parameters and let every worker of the server read them."""
        with tempfile.TemporaryDirectory(prefix="envsched-weights-") as folder:
            tensors = {name: value.detach().cpu().contiguous() for name, value in params}
            save_file(tensors, f"{folder}/model.safetensors", metadata={"format": "pt"})
            self._post(f"{self.base_url}/collective_rpc", json={"method": "reload_policy", "kwargs": {"folder": folder}})


def push_by_reload(generation: Any) -> None:
    """TRL's ``sync_weights`` for a colocated engine on a CPU, whose re-packed layers ``load_weights`` can't fill."""
    runner = generation.llm.llm_engine.model_executor.driver_worker.model_runner
    reload_policy(runner, generation._iter_named_params())
    generation.llm.reset_prefix_cache()


def prefix_cache_counts(generation: Any) -> tuple[float, float]:
    """Prompt tokens asked for and found in the prefix cache since the engine started."""
    if generation.mode == "colocate":
        counts = {metric.name: metric.value for metric in generation.llm.get_metrics() if hasattr(metric, "value")}
    else:
        counts = _prometheus(generation.vllm_client)
    return counts.get("vllm:prefix_cache_queries", 0.0), counts.get("vllm:prefix_cache_hits", 0.0)


def _prometheus(client: VLLMClient) -> dict[str, float]:
    text = client.session.get(f"{client.base_url}/metrics").text
    pairs = (line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))
    return {name.partition("{")[0].removesuffix("_total"): float(value) for name, value in pairs}
