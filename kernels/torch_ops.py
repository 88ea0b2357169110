"""The operations on tensors in plain torch, on any device: what the Triton kernels are tested against, and their place elsewhere.

Letters: N tasks, D features, K slots, S sources.
"""

import torch

_PAIRS = 1 << 26  # similarities in memory at once


def gather(row: torch.Tensor, weight: torch.Tensor, stats: torch.Tensor) -> torch.Tensor:
    """sum_k weight[i, k] * stats[row[i, k]] over lists [N, K] (-1: none); stats and result float32 [N, 2]."""
    known = torch.where(row >= 0, weight, 0.0)
    return torch.nn.functional.embedding_bag(row.clamp(min=0).long(), stats, mode="sum", per_sample_weights=known)


def score(sums: torch.Tensor, environment: torch.Tensor, scale: float, cross_weight: float, shrinkage: float) -> torch.Tensor:
    """u float32 [N] of tasks without own evidence (METHOD section 12) from sums [N, 4] and their environments' means [N]."""
    value = shrinkage * environment + scale * (sums[:, 0] + cross_weight * sums[:, 2])
    return value / (shrinkage + scale * (sums[:, 1] + cross_weight * sums[:, 3]))


def score_residual(
    sums: torch.Tensor, environment: torch.Tensor, residual_shrinkage: float, optimism: float, lift: float, max_variance: float
) -> torch.Tensor:
    """u float32 [N] of tasks without own evidence under the residual prior (csrc/state.h), from sums [N, 4] and environments [N]."""
    beyond = sums[:, 0] / (sums[:, 1] + residual_shrinkage) + sums[:, 2] / (sums[:, 3] + residual_shrinkage)
    return ((1 + optimism) * (environment + beyond).clamp(min=0) + lift).clamp(max=max_variance)


def stream(
    vectors: torch.Tensor, environment: torch.Tensor, source: torch.Tensor, mass: torch.Tensor, value: torch.Tensor, sums: torch.Tensor,
    floor: float,
) -> None:  # fmt: skip
    """Add every source [S] to the cross sums [N, 4] of all tasks of other environments, weighted by max(0, (s - floor) / (1 - floor))^2
    of the similarity s of vectors float32 [N, D]."""
    change, sources = torch.stack([value, mass], dim=1), vectors[source.long()]
    step = max(1, _PAIRS // max(1, len(source)))
    for first in range(0, len(vectors), step):
        part = slice(first, first + step)
        k = ((vectors[part] @ sources.T - floor) / (1 - floor)).clamp(min=0) ** 2
        k[environment[part, None] == environment[source.long()]] = 0
        sums[part, 2:] += k @ change
