"""A policy update that computes what it needs: no padding beyond a chunk's own, no backward pass where there is no gradient.

TRL pads all rollouts of a device batch to the longest prompt and the longest episode, and goes backward through groups whose rewards
are all equal, whose advantages are 0. Loss, gradients and metrics are those of TRL, up to rounding. Letters: n rows, T tokens kept.
"""

from collections.abc import Iterator
from typing import Any

import torch

CPU_CHUNK = 16  # rows of similar length that go through the policy together; a GPU takes all at once


class TrimmedUpdate:
    """Mix in before ``trl.GRPOTrainer``; acts on one process, where forward passes need not keep step with other ranks."""

    _silent: torch.Tensor | None = None  # bool [n], in the update of these rows

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        """TRL's loss; rows of advantage 0 are left out of the backward pass where nothing but the advantages gives a gradient."""
        if self.accelerator.num_processes == 1 and not (self.beta or self._entropy_bonus_enabled or self.aux_loss_enabled):
            self._silent = inputs["advantages"] == 0
        try:
            return super()._compute_loss(model, inputs)
        finally:
            self._silent = None

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: torch.Tensor, attention_mask: torch.Tensor, logits_to_keep: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """Log-probabilities [n, T] and entropies [n, T] of the completions, 0 where a row is padded."""
        one_chunk = super()._get_per_token_logps_and_entropies
        if self._silent is None or args or any(value is not None for name, value in kwargs.items() if not name.startswith("compute_")):
            return one_chunk(model, input_ids, attention_mask, logits_to_keep, *args, **kwargs)
        rows_of_chunks, made = [], []
        for rows, columns, silent in self._chunks(attention_mask, logits_to_keep):
            kept = columns.stop - (input_ids.shape[1] - logits_to_keep)
            with torch.set_grad_enabled(torch.is_grad_enabled() and not silent):
                found = one_chunk(model, input_ids[rows, columns], attention_mask[rows, columns], kept, **kwargs)
            made.append([None if x is None else torch.nn.functional.pad(x, (0, logits_to_keep - kept)) for x in found[:2]])
            rows_of_chunks.append(rows)
        back = torch.argsort(torch.cat(rows_of_chunks))
        logps, entropies = (None if parts[0] is None else torch.cat(parts)[back] for parts in zip(*made, strict=True))
        return logps, entropies, None

    def _chunks(self, attention_mask: torch.Tensor, num_kept: int) -> Iterator[tuple[torch.Tensor, slice, bool]]:
        """Rows, the columns between which they are not all padding, and whether they need no gradient."""
        first = attention_mask.argmax(dim=1)  # prompts are padded on the left, completions on the right
        past_last = attention_mask.shape[1] - attention_mask.flip(1).argmax(dim=1)
        start = attention_mask.shape[1] - num_kept
        silent = self._silent
        assert silent is not None
        loud_or_one = ~silent if bool((~silent).any()) else torch.arange(len(silent), device=silent.device) == 0  # a loss needs a graph
        for needs_gradient in (True, False):
            rows = torch.nonzero(loud_or_one == needs_gradient).flatten()
            rows = rows[torch.argsort(past_last[rows] - first[rows], descending=True, stable=True)]
            for chunk in rows.split(CPU_CHUNK if attention_mask.device.type == "cpu" else max(1, len(rows))):
                if len(chunk):
                    columns = slice(int(first[chunk].min()), max(int(past_last[chunk].max()), start + 1))
                    yield chunk, columns, not needs_gradient
