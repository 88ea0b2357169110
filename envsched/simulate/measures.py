"""Rank correlations and simple predictors that the court reports; the yardsticks of calibration and of replays.

Letters: N tasks, M environments, K neighbours, D bootstrap draws. Numpy only; scipy's ``spearmanr`` is the oracle in the tests.
"""

import numpy as np


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks [n] from 1, ties averaged."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[place]


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Rank correlation of two samples [n]; 0 where one of them is constant (nothing is ordered)."""
    if len(a) < 2:
        return 0.0
    a, b = ranks(a), ranks(b)
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / scale) if scale > 0 else 0.0


def repeated_spearman(a: np.ndarray, b: np.ndarray, times: np.ndarray) -> np.ndarray:
    """``spearman`` [D] of samples in which pair i of a [n] and b [n] occurs ``times[d, i]`` times; NaN where one is constant."""
    a, b = (_centred(_repeated_ranks(values, times), times) for values in (a, b))
    scale = np.sqrt((times * a * a).sum(axis=1) * (times * b * b).sum(axis=1))
    return np.divide((times * a * b).sum(axis=1), scale, out=np.full(len(times), np.nan), where=scale > 1e-9)


def _repeated_ranks(values: np.ndarray, times: np.ndarray) -> np.ndarray:
    """``ranks`` [D, n] among repeated values."""
    order = np.argsort(values, kind="stable")
    _, first, place = np.unique(values[order], return_index=True, return_inverse=True)
    counts = np.add.reduceat(times[:, order], first, axis=1)
    out = np.empty(times.shape)
    out[:, order] = (np.cumsum(counts, axis=1) - (counts - 1) / 2)[:, place]
    return out


def _centred(values: np.ndarray, times: np.ndarray) -> np.ndarray:
    return values - (times * values).sum(axis=1, keepdims=True) / times.sum(axis=1, keepdims=True)


def leave_one_out_mean(values: np.ndarray, environment_of: np.ndarray) -> np.ndarray:
    """Mean [N] of the other tasks of the same environment; NaN for the only task of one."""
    count = np.bincount(environment_of)[environment_of]
    total = np.bincount(environment_of, weights=values)[environment_of]
    return np.where(count > 1, (total - values) / np.maximum(count - 1, 1), np.nan)


def neighbour_mean(values: np.ndarray, vectors: np.ndarray, environment_of: np.ndarray, num: int, same_environment: bool) -> np.ndarray:
    """Mean [N] over the ``num`` most similar other tasks, all of the same environment or all of other ones."""
    similarity = vectors @ vectors.T
    same = environment_of[:, None] == environment_of[None, :]
    similarity[same != same_environment] = -np.inf
    np.fill_diagonal(similarity, -np.inf)
    nearest = np.argpartition(-similarity, num, axis=1)[:, :num]
    return values[nearest].mean(axis=1)


def slope(x: np.ndarray, y: np.ndarray) -> float:
    """Least-squares slope of y on x through the origin; 0 where x is all 0."""
    return float(x @ y / (x @ x)) if np.any(x) else 0.0
