"""Synthetic inputs of any size. Letters: N tasks, M environments, D features, K slots."""

import numpy as np

from envsched.features.features import on_grid
from envsched.maintained import StaticLists


def offsets_of(num_tasks: int, num_environments: int, generator: np.random.Generator) -> np.ndarray:
    """Environments of log-normal sizes (sigma 0.6), at least one task each: int64 [M + 1]."""
    sizes = generator.lognormal(0, 0.6, num_environments)
    sizes = np.maximum(1, np.floor(sizes * num_tasks / sizes.sum())).astype(np.int64)
    sizes[: max(0, num_tasks - int(sizes.sum()))] += 1
    while (excess := int(sizes.sum()) - num_tasks) > 0:
        large = np.argsort(-sizes)[:excess]
        sizes[large] -= 1
    return np.concatenate([[0], np.cumsum(sizes)])


def within_vectors(offsets: np.ndarray, num_features: int, generator: np.random.Generator) -> np.ndarray:
    """An environment's centre plus noise, unit rows on the grid: float32 [N, D]."""
    centre = generator.standard_normal((len(offsets) - 1, num_features), dtype=np.float32)
    rows = generator.standard_normal((int(offsets[-1]), num_features), dtype=np.float32)
    rows += np.repeat(centre, np.diff(offsets), axis=0)
    return _unit(rows)


def cross_vectors(num_tasks: int, num_features: int, generator: np.random.Generator) -> np.ndarray:
    """Zipf archetypes with a latent of 16 and noise, unit rows on the grid: float32 [N, D]."""
    num_archetypes = max(10, num_tasks // 100)
    archetype = generator.zipf(1.3, num_tasks) % num_archetypes
    latent = generator.standard_normal((num_archetypes, 16), dtype=np.float32)[archetype]
    latent += 0.5 * generator.standard_normal((num_tasks, 16), dtype=np.float32)
    rows = latent @ generator.standard_normal((16, num_features), dtype=np.float32)
    rows += 0.5 * generator.standard_normal((num_tasks, num_features), dtype=np.float32)
    return _unit(rows)


def random_lists(offsets: np.ndarray, num_within: int, num_cross: int, generator: np.random.Generator) -> StaticLists:
    """Lists of the right shape without a build: random neighbours, cross sources with a heavy tail of listeners."""
    num_tasks, sizes = int(offsets[-1]), np.diff(offsets)
    start, size = np.repeat(offsets[:-1], sizes)[:, None], np.repeat(sizes, sizes)[:, None]
    within = (start + generator.integers(0, 1 << 40, (num_tasks, num_within)) % size).astype(np.int32)
    within[np.broadcast_to(size == 1, within.shape)] = -1
    cross = np.minimum(num_tasks - 1, num_tasks * generator.random((num_tasks, num_cross)) ** 1.5).astype(np.int32)
    weights = (0.2 + 0.8 * generator.random((num_tasks, slots), dtype=np.float32) for slots in (num_within, num_cross))
    return StaticLists(within, next(weights), cross, next(weights), "random")


def solve_rates(offsets: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Chance that a rollout passes, by environment and task: float64 [N]."""
    environment = np.repeat(generator.beta(0.7, 0.7, len(offsets) - 1), np.diff(offsets))
    return np.clip(environment + 0.15 * generator.standard_normal(int(offsets[-1])), 0, 1)


def _unit(rows: np.ndarray) -> np.ndarray:
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    for start in range(0, len(rows), 1 << 16):
        rows[start : start + (1 << 16)] = on_grid(rows[start : start + (1 << 16)])
    return rows
