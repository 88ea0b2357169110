"""Turns of many rollouts whose earlier tokens stay in a key-value cache.

TRL's tool loop generates each turn from the whole conversation so far; with transformers on a CPU, reading it anew every turn costs most
of the rollouts' time. Here a turn reads only what is new, and the G rollouts of a prompt share its first reading. Same distribution of
samples as ``model.generate``. Letters: n rollouts, W columns of the cache.
"""

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from transformers import DynamicCache, GenerationConfig, PreTrainedModel
from transformers.cache_utils import DynamicLayer
from trl.models.utils import unwrap_model_for_generation


class Turns:
    """Samples turns; remembers the rollouts of the last one.

    Args:
        model: a causal language model whose cache is a ``DynamicCache`` of plain layers, see ``can_keep``.
        config: temperature, end-of-turn and padding tokens, new tokens at most; nothing else of it is used.
    """

    def __init__(self, model: PreTrainedModel, config: GenerationConfig) -> None:
        self._model, self._config = model, config
        self._cache = DynamicCache(config=model.config)
        self._cache_name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"  # in older ones
        self._read: list[list[int]] = []  # ids of each row that lie in the cache
        self._mask = torch.zeros(0, 0, dtype=torch.long)  # [n, W], 1 where a column of the cache holds an id of the row

    @torch.no_grad()
    def take(self, prompts: Sequence[list[int]]) -> list[list[int]]:
        """New ids of each rollout, up to and with the end of its turn.

        Args:
            prompts: ids of each conversation; those that continue rollouts of the last call stand in its order.
        """
        parents = self._parents(prompts)
        if parents is None:
            logits = self._begin(prompts)
        else:
            self._keep(parents)
            logits = self._forward([prompt[len(read) :] for prompt, read in zip(prompts, self._read, strict=True)])
        return self._sample(prompts, logits)

    def _parents(self, prompts: Sequence[list[int]]) -> list[int] | None:
        """The row of the cache that each prompt continues; None where one continues none."""
        parents, row = [], 0
        for prompt in prompts:
            while row < len(self._read) and prompt[: len(self._read[row])] != self._read[row]:
                row += 1
            if row == len(self._read):
                return None
            parents.append(row)
            row += 1
        return parents

    def _begin(self, prompts: Sequence[list[int]]) -> torch.Tensor:
        """Read each different prompt once, then give every rollout its copy."""
        different = {tuple(prompt): row for row, prompt in enumerate(dict.fromkeys(map(tuple, prompts)))}
        self._cache, self._read = DynamicCache(config=self._model.config), []
        self._mask = torch.zeros(len(different), 0, dtype=torch.long, device=self._model.device)
        logits = self._forward([list(prompt) for prompt in different])
        rows = [different[tuple(prompt)] for prompt in prompts]
        self._keep(rows)
        return logits[rows]

    def _keep(self, rows: list[int]) -> None:
        """Keep these rows of the cache, and the columns in which any of them has an id."""
        self._mask = self._mask[rows]
        used = self._mask.any(dim=0)
        self._mask = self._mask[:, used]
        for layer in self._cache.layers:
            layer.keys, layer.values = layer.keys[rows][:, :, used], layer.values[rows][:, :, used]
        self._read = [self._read[row] for row in rows] if self._read else []  # none before the first turn

    def _forward(self, new: list[list[int]]) -> torch.Tensor:
        """Read new ids (at least one each), padded on the left; logits [n, vocabulary] after the last."""
        width = max(map(len, new))
        device = self._model.device
        ids = torch.tensor([[self._config.pad_token_id] * (width - len(row)) + row for row in new], device=device)
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in new], device=device)
        return self._read_columns(ids, mask)

    def _read_columns(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        self._mask = torch.cat([self._mask, mask], dim=1)
        positions = (self._mask.cumsum(dim=1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        cache: dict[str, Any] = {self._cache_name: self._cache}
        made = self._model(input_ids=ids, attention_mask=self._mask, position_ids=positions, use_cache=True, logits_to_keep=1, **cache)
        return made.logits[:, -1].float()

    def _sample(self, prompts: Sequence[list[int]], logits: torch.Tensor) -> list[list[int]]:
        config = self._config
        ends = torch.tensor(config.eos_token_id, device=logits.device).flatten()
        assert config.max_new_tokens is not None
        sampled, lengths = [], torch.zeros(len(prompts), dtype=torch.long, device=logits.device)
        running = torch.ones(len(prompts), dtype=torch.bool, device=logits.device)
        while True:
            ids = torch.multinomial(torch.softmax(logits / config.temperature, dim=-1), 1).squeeze(1)
            sampled.append(torch.where(running, ids, config.pad_token_id))
            masks = running.long().unsqueeze(1)
            lengths += running
            running = running & ~torch.isin(ids, ends)
            if len(sampled) == config.max_new_tokens or not bool(running.any()):
                break
            logits = self._read_columns(sampled[-1].unsqueeze(1), masks)
        rows = torch.stack(sampled, dim=1).tolist()
        made = [row[:length] for row, length in zip(rows, lengths.tolist(), strict=True)]
        self._read = [prompt + new[: len(sampled) - 1] for prompt, new in zip(prompts, made, strict=True)]
        return made


def can_keep(model: PreTrainedModel, config: GenerationConfig) -> bool:
    """Whether ``Turns`` samples what ``model.generate`` would: plain temperature sampling, a cache of plain layers."""
    plain = config.do_sample and config.top_k in (None, 0) and config.top_p in (None, 1.0) and config.min_p in (None, 0.0)
    plain = plain and config.repetition_penalty in (None, 1.0) and config.cache_implementation is None
    return bool(plain) and all(type(layer) is DynamicLayer for layer in DynamicCache(config=model.config).layers)


class KeptTurns:
    """Mix in before ``trl.GRPOTrainer``: rollouts by transformers on a CPU keep their cache from turn to turn."""

    _turns: Turns | None = None

    def _generate(self, prompts: list) -> tuple:
        model = self.accelerator.unwrap_model(self.model_wrapped)
        alone = self.accelerator.num_processes == 1 and self.accelerator.device.type == "cpu"
        if alone and not self.use_vllm and not self.use_transformers_continuous_batching and can_keep(model, self.generation_config):
            self._turns = Turns(model, self.generation_config)
        try:
            return super()._generate(prompts)
        finally:
            self._turns = None

    def _generate_single_turn(self, prompt_ids: list[list[int]], images: Any, fields: Any, *args: Any, **kwargs: Any) -> tuple:
        if self._turns is None or images or fields:
            return super()._generate_single_turn(prompt_ids, images, fields, *args, **kwargs)
        with unwrap_model_for_generation(self.model_wrapped, self.accelerator, generation_kwargs=self.generation_kwargs):
            return self._turns.take(prompt_ids), None
