"""Similarities in [0, 1], exact in float64 whatever the order of summation (see ``envsched.features.features``).

Letters: N tasks, D features.
"""

import numpy as np

_CHUNK = 1 << 22  # float64 values in flight


def products(rows_a: np.ndarray, rows_b: np.ndarray) -> np.ndarray:
    """Every pair: float32 [A, D] and [B, D] -> float64 [A, B], clipped to [0, 1]."""
    step = max(1, _CHUNK // max(1, rows_a.shape[1]))
    right = rows_b.astype(np.float64).T
    out = np.empty((len(rows_a), len(rows_b)))
    for start in range(0, len(rows_a), step):
        out[start : start + step] = rows_a[start : start + step].astype(np.float64) @ right
    return np.clip(out, 0, 1, out=out)


def pair_products(vectors: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """One pair a slot: rows ``a`` and ``b`` (int, same shape) of ``vectors`` float32 [N, D] -> float64, clipped to [0, 1]."""
    flat_a, flat_b = a.reshape(-1), b.reshape(-1)
    step = max(1, _CHUNK // max(1, vectors.shape[1]))
    out = np.empty(flat_a.size)
    for start in range(0, flat_a.size, step):
        left, right = vectors[flat_a[start : start + step]], vectors[flat_b[start : start + step]]
        out[start : start + step] = np.einsum("pd,pd->p", left, right, dtype=np.float64)
    return np.clip(out, 0, 1, out=out).reshape(a.shape)
