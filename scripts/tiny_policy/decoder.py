"""Reading and writing with the tiny policy at a third of what transformers needs: its layers as plain functions over one cache.

Rows of the cache are rollouts, each with a length of its own, so that none waits for the end of another's turn.
Letters: n rows, T new tokens, W columns of the cache, K key-value heads, D size of a head.
"""

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import Qwen3ForCausalLM


class Decoder:
    """A Qwen3 policy with a key-value cache.

    Args:
        model: only its weights are used, as they are when a token is read.
        num_rows, width: of the cache.
    """

    def __init__(self, model: Qwen3ForCausalLM, num_rows: int, width: int) -> None:
        config, self._base, self._head = model.config, model.model, model.lm_head.weight
        self._eps, self._size, self._num_kept = config.rms_norm_eps, config.head_dim, config.num_key_value_heads
        frequency = config.rope_parameters["rope_theta"] ** -(torch.arange(0, self._size, 2) / self._size)
        angle = torch.outer(torch.arange(width), frequency).repeat(1, 2)
        self._cos, self._sin = angle.cos(), angle.sin()  # [W, D]
        self.length = torch.zeros(num_rows, dtype=torch.long)
        shape = (len(self._base.layers), num_rows, self._num_kept, width, self._size)
        self._keys, self._values = torch.zeros(shape), torch.zeros(shape)

    @torch.no_grad()
    def read(self, new: list[list[int]], rows: Tensor | None = None) -> Tensor:
        """Append ids to rows [n], the first n where none are given; logits [n, vocabulary] after the last id of each.

        A row without new ids stays as it is; its logits mean nothing.
        """
        counts = torch.tensor([len(ids) for ids in new])
        longest = int(counts.max())
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in new])
        place = slice(len(new)) if rows is None else rows  # a slice is a view: nothing is copied
        at = self.length[place, None] + torch.arange(longest)  # columns; those of padding are written again before they are seen
        visible = torch.arange(int(at.max()) + 1) <= at[:, :, None]  # [n, T, W]
        x = F.embedding(ids, self._base.embed_tokens.weight)
        for layer, keys, values in zip(self._base.layers, self._keys, self._values, strict=True):
            x = x + self._attend(layer.self_attn, self._scaled(x, layer.input_layernorm), keys, values, place, at, visible)
            x = x + _mix(layer.mlp, self._scaled(x, layer.post_attention_layernorm))
        self.length[place] += counts
        last = x[torch.arange(len(new)), (counts - 1).clamp(min=0)]
        return F.linear(self._scaled(last, self._base.norm), self._head)

    def copy(self, sources: list[int], targets: list[int]) -> None:
        """Rows ``targets`` become what rows ``sources`` were."""
        end = int(self.length[sources].max())
        for kept in (self._keys, self._values):
            kept[:, targets, :, :end] = kept[:, sources, :, :end]
        self.length[targets] = self.length[sources]

    def _attend(self, weights, x: Tensor, keys: Tensor, values: Tensor, place, at: Tensor, visible: Tensor) -> Tensor:
        n, T, _ = x.shape
        q, k, v = (F.linear(x, part.weight).view(n, T, -1, self._size) for part in (weights.q_proj, weights.k_proj, weights.v_proj))
        q, k = self._turned(self._scaled(q, weights.q_norm), at), self._turned(self._scaled(k, weights.k_norm), at)
        row = torch.arange(n) if isinstance(place, slice) else place
        keys[row[:, None], :, at], values[row[:, None], :, at] = k, v
        K, W, D = self._num_kept, visible.shape[-1], self._size
        q = q.view(n, T, K, -1, D).permute(0, 2, 3, 1, 4).flatten(2, 3) * D**-0.5  # [n, K, heads of a key x T, D]
        match = (q @ keys[place, :, :W].transpose(2, 3)).view(n, K, -1, T, W).masked_fill(~visible[:, None, None], -torch.inf)
        mixed = match.softmax(-1).flatten(2, 3) @ values[place, :, :W]
        return F.linear(mixed.view(n, K, -1, T, D).permute(0, 3, 1, 2, 4).reshape(n, T, -1), weights.o_proj.weight)

    def _scaled(self, x: Tensor, norm) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], norm.weight, self._eps)

    def _turned(self, x: Tensor, at: Tensor) -> Tensor:
        """Rotary positions ``at`` [n, T] of x [n, T, heads, D]."""
        first, second = x.chunk(2, dim=-1)
        return x * self._cos[at][:, :, None] + torch.cat([-second, first], dim=-1) * self._sin[at][:, :, None]


def _mix(weights, x: Tensor) -> Tensor:
    return F.linear(F.silu(F.linear(x, weights.gate_proj.weight)) * F.linear(x, weights.up_proj.weight), weights.down_proj.weight)
