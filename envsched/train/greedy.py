"""The trainer's own engine, without chance and with another budget: for validation between two steps."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from transformers import GenerationConfig


class GreedyGeneration:
    """Mix in before ``trl.GRPOTrainer``; the engine is transformers, or vLLM colocated or as a server."""

    def _ready_for_greedy(self) -> None:
        """Bring the present weights to the engine; every rank calls this, as pushing may gather."""
        if self.use_vllm and self.state.global_step != self._last_loaded_step:
            self.vllm_generation.sync_weights()
            self._last_loaded_step = self.state.global_step

    def _greedy(self, prompts: list[list[int]], max_tokens: int) -> Sequence[Sequence[int]]:
        """Completions in token ids, ends of turn included."""
        with self._without_chance(max_tokens):
            if self._is_shared_server():  # its turns are collectives; rank 0 asks alone
                return self._ask_server(prompts)[0]
            return super()._generate_single_turn(prompts, None, {}, 1)[0]

    @contextmanager
    def _without_chance(self, max_tokens: int) -> Iterator[None]:
        if self.use_vllm:
            changes: dict[Any, dict[str, Any]] = {
                self.vllm_generation: {"temperature": 0.0, "max_completion_length": max_tokens, "generation_kwargs": {}}
            }
        else:
            kept = {name: self.generation_kwargs[name] for name in ("pad_token_id", "bos_token_id", "eos_token_id")}
            settings = {**kept, "do_sample": False, "max_new_tokens": max_tokens}
            changes = {self: {"generation_config": GenerationConfig(**settings, disable_compile=True), "generation_kwargs": settings}}
        before = [(owner, name, getattr(owner, name)) for owner, names in changes.items() for name in names]
        for owner, names in changes.items():
            for name, value in names.items():
                setattr(owner, name, value)
        try:
            yield
        finally:
            for owner, name, value in before:
                setattr(owner, name, value)
