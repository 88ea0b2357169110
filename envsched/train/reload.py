"""New weights for a vLLM engine on a CPU; imported by the trainer for its own engine, and by a server's workers.

vLLM on a CPU multiplies by packed copies of the weights. Its ``reload_weights`` packs every layer that it fills anew, but a head that is
tied to the embedding is filled by no one, and keeps multiplying by the old copy.
"""

from collections.abc import Iterable
from typing import Any

import torch


def reload_policy(runner: Any, weights: Iterable[tuple[str, torch.Tensor]] | None = None, folder: str | None = None) -> None:
    """Fill a model runner's model from named weights, or from a folder of safetensors."""
    runner.reload_weights(weights_iterator=weights, weights_path=folder)
    model = runner.get_model()
    head = getattr(model, "lm_head", None)
    embedding = getattr(getattr(model, "model", None), "embed_tokens", None)
    if head is not None and embedding is not None and head is not embedding and head.weight is embedding.weight:
        head.quant_method.process_weights_after_loading(head)


class ReloadingWorker:
    """For ``vllm serve --worker-extension-cls envsched.train.reload.ReloadingWorker`` on a CPU."""

    def reload_policy(self, folder: str) -> None:
        """Called through the server's ``/collective_rpc``."""
        reload_policy(self.model_runner, folder=folder)
