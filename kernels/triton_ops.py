"""Triton twins of the hot operations for CUDA; with ``TRITON_INTERPRET=1`` they run on CPU tensors, for the tests.

Letters: N tasks, D features, K slots, S sources.
"""

import torch
import triton
import triton.language as tl

BLOCK = 128
STREAM = {"BLOCK": 64, "SOURCES": 16, "CHUNK": 16}  # larger tiles spill on sm_80


@triton.jit
def gather_kernel(row, weight, stats, out, num_tasks, num_slots, BLOCK: tl.constexpr):
    """out[i] = sum_k weight[i, k] * stats[row[i, k]], two channels; row -1 is no neighbour."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    valid = i < num_tasks
    value = tl.zeros((BLOCK,), tl.float32)
    mass = tl.zeros((BLOCK,), tl.float32)
    for k in range(num_slots):
        j = tl.load(row + i * num_slots + k, mask=valid, other=-1)
        known = valid & (j >= 0)
        w = tl.load(weight + i * num_slots + k, mask=known, other=0.0)
        value += w * tl.load(stats + 2 * j, mask=known, other=0.0)
        mass += w * tl.load(stats + 2 * j + 1, mask=known, other=0.0)
    tl.store(out + 2 * i, value, mask=valid)
    tl.store(out + 2 * i + 1, mass, mask=valid)


@triton.jit
def sums_of(sums, i, valid):
    """W_w, m_w, W_c, m_c of rows i, 0 where they are not valid."""
    row = sums + 4 * i
    return (
        tl.load(row, mask=valid, other=0.0),
        tl.load(row + 1, mask=valid, other=0.0),
        tl.load(row + 2, mask=valid, other=0.0),
        tl.load(row + 3, mask=valid, other=0.0),
    )


@triton.jit
def score_kernel(sums, environment, u, num_tasks, scale, cross_weight, shrinkage, BLOCK: tl.constexpr):
    """u[i] = (lambda env_i + d (W_w + k W_c)) / (lambda + d (m_w + k m_c)): a task without own evidence (METHOD section 12)."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    valid = i < num_tasks
    w_within, m_within, w_cross, m_cross = sums_of(sums, i, valid)
    parent = tl.load(environment + i, mask=valid, other=0.0)
    value = shrinkage * parent + scale * (w_within + cross_weight * w_cross)
    mass = shrinkage + scale * (m_within + cross_weight * m_cross)
    tl.store(u + i, value / mass, mask=valid)


@triton.jit
def score_residual_kernel(sums, environment, u, num_tasks, residual_shrinkage, optimism, lift, max_variance, BLOCK: tl.constexpr):
    """u[i] = min(v_max, (1 + beta) max(0, env_i + R_w + R_c) + lift), R = W / (m + lambda_r): a task without own evidence."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    valid = i < num_tasks
    w_within, m_within, w_cross, m_cross = sums_of(sums, i, valid)
    heard = tl.load(environment + i, mask=valid, other=0.0)
    heard += w_within / (m_within + residual_shrinkage) + w_cross / (m_cross + residual_shrinkage)
    tl.store(u + i, tl.minimum(max_variance, (1 + optimism) * tl.maximum(0.0, heard) + lift), mask=valid)


@triton.jit
def stream_kernel(
    vectors, environment, source, mass, value, sums, num_tasks, num_sources, num_features, floor,
    BLOCK: tl.constexpr, SOURCES: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """sums[i, 2:] += sum_u k(s_iu) (value_u, mass_u) over sources of other environments, k(s) = max(0, (s - floor) / (1 - floor))^2.

    Products are taken a CHUNK of features at a time: whole rows of exact float32 products don't fit the registers of sm_80.
    """
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    valid = i < num_tasks
    home = tl.load(environment + i, mask=valid, other=-1)
    value_sum = tl.zeros((BLOCK,), tl.float32)
    mass_sum = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, num_sources, SOURCES):
        s = first + tl.arange(0, SOURCES)
        real = s < num_sources
        j = tl.load(source + s, mask=real, other=0)
        similarity = tl.zeros((BLOCK, SOURCES), tl.float32)
        for start in range(0, num_features, CHUNK):
            d = start + tl.arange(0, CHUNK)
            known = (d < num_features)[None, :]
            mine = tl.load(vectors + i[:, None] * num_features + d[None, :], mask=valid[:, None] & known, other=0.0)
            theirs = tl.load(vectors + j[:, None] * num_features + d[None, :], mask=real[:, None] & known, other=0.0)
            similarity += tl.dot(mine, tl.trans(theirs), input_precision="ieee")
        k = tl.maximum(0.0, (similarity - floor) / (1.0 - floor))
        foreign = home[:, None] != tl.load(environment + j, mask=real, other=-1)[None, :]
        k = tl.where(foreign & real[None, :], k * k, 0.0)
        value_sum += tl.sum(k * tl.load(value + s, mask=real, other=0.0)[None, :], axis=1)
        mass_sum += tl.sum(k * tl.load(mass + s, mask=real, other=0.0)[None, :], axis=1)
    tl.store(sums + 4 * i + 2, tl.load(sums + 4 * i + 2, mask=valid) + value_sum, mask=valid)
    tl.store(sums + 4 * i + 3, tl.load(sums + 4 * i + 3, mask=valid) + mass_sum, mask=valid)


def gather(row: torch.Tensor, weight: torch.Tensor, stats: torch.Tensor) -> torch.Tensor:
    """One whole propagation: lists int32 and float32 [N, K], stats float32 [N, 2] -> float32 [N, 2]."""
    out = torch.empty(len(row), 2, dtype=torch.float32, device=row.device)
    gather_kernel[(triton.cdiv(len(row), BLOCK),)](row, weight, stats, out, *row.shape, BLOCK=BLOCK)
    return out


def score(sums: torch.Tensor, environment: torch.Tensor, scale: float, cross_weight: float, shrinkage: float) -> torch.Tensor:
    """u float32 [N] from sums float32 [N, 4] and the mean of each task's environment float32 [N]."""
    u = torch.empty(len(sums), dtype=torch.float32, device=sums.device)
    score_kernel[(triton.cdiv(len(sums), BLOCK),)](sums, environment, u, len(sums), scale, cross_weight, shrinkage, BLOCK=BLOCK)
    return u


def score_residual(
    sums: torch.Tensor, environment: torch.Tensor, residual_shrinkage: float, optimism: float, lift: float, max_variance: float
) -> torch.Tensor:
    """u float32 [N] under the residual prior, from sums float32 [N, 4] and the mean of each task's environment float32 [N]."""
    u = torch.empty(len(sums), dtype=torch.float32, device=sums.device)
    numbers = residual_shrinkage, optimism, lift, max_variance
    score_residual_kernel[(triton.cdiv(len(sums), BLOCK),)](sums, environment, u, len(sums), *numbers, BLOCK=BLOCK)
    return u


def stream(
    vectors: torch.Tensor, environment: torch.Tensor, source: torch.Tensor, mass: torch.Tensor, value: torch.Tensor, sums: torch.Tensor,
    floor: float,
) -> None:  # fmt: skip
    """Add every source [S] to the cross sums of all tasks of other environments; vectors float32 [N, D], sums float32 [N, 4]."""
    stream_kernel[(triton.cdiv(len(sums), STREAM["BLOCK"]),)](
        vectors, environment, source, mass, value, sums, len(sums), len(source), vectors.shape[1], floor, **STREAM
    )  # fmt: skip
