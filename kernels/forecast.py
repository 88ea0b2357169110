"""The structure and operation of csrc/forecast.cpp: one prediction of every task over lists of observed neighbours.

Letters: N tasks, M environments, K slots.
"""

import ctypes
from ctypes import byref, c_double, c_int64, c_void_p
from typing import Any

import numpy as np

from kernels.native import address, contiguous, library

RULES = {"pooled": 0, "paper": 1, "residual": 2}
OUT = ("u", "environment", "in_within", "within_mass", "in_cross", "cross_mass", "prior", "guard")
_COLUMNS = ("mass", "variance", "count", "value", "short_mass", "short_value", "environment_count", "environment_value")
Lists = tuple[np.ndarray, np.ndarray]
"""Sources int64 [N, K] (-1: none, at the end) and weights float64 [N, K] of one relation."""


class _Lists(ctypes.Structure):
    _fields_ = (("source", c_void_p), ("weight", c_void_p), ("num_slots", c_int64))


class _Forecast(ctypes.Structure):
    """``struct Forecast``."""

    _fields_ = (
        [("num_tasks", c_int64), ("num_environments", c_int64), ("offsets", c_void_p), ("within", _Lists), ("cross", _Lists)]
        + [(name, c_void_p) for name in _COLUMNS]
        + [(name, c_double) for name in ("pool_count", "pool_value", "shrinkage", "own_shrinkage", "decline_weight", "prior_variance")]
        + [(name, c_double) for name in ("max_variance", "cross_weight", "residual_shrinkage", "optimism", "lift")]
        + [("rule", c_int64)]
        + [(name, c_void_p) for name in OUT]
    )


def forecast(
    offsets: np.ndarray, within: Lists | None, cross: Lists | None, columns: dict[str, np.ndarray], settings: dict[str, Any], threads: int
) -> dict[str, np.ndarray]:
    """``OUT`` by name, float64 [N] each.

    Args:
        offsets: int64 [M + 1].
        within, cross: none: the relation is switched off.
        columns: of tasks, float64 [N]: mass, variance, count, value, short_mass, short_value; of environments, float64 [M]:
            environment_count and environment_value.
        settings: pool_count, pool_value, the numbers of the estimator (csrc/forecast.cpp has their names), and its rule, of ``RULES``.
    """
    columns = {name: contiguous(values, np.float64) for name, values in columns.items()}
    offsets, num_tasks = contiguous(offsets, np.int64), int(offsets[-1])
    made = np.empty((len(OUT), num_tasks))
    settings = {**settings, "rule": RULES[settings["rule"]]}
    call = _Forecast(num_tasks=num_tasks, num_environments=len(offsets) - 1, offsets=address(offsets), **settings)
    call.within, call.cross = _lists(within), _lists(cross)
    for name, values in [*columns.items(), *zip(OUT, made, strict=True)]:
        setattr(call, name, address(values))
    library().envsched_forecast(byref(call), threads)
    return dict(zip(OUT, made, strict=True))


def _lists(lists: Lists | None) -> _Lists:
    if lists is None:
        return _Lists(None, None, 0)
    source, weight = lists
    assert source.dtype == np.int64, "sources are int64"
    assert weight.dtype == np.float64, "weights are float64"
    assert source.flags.c_contiguous, "lists lie row by row"
    assert weight.flags.c_contiguous, "lists lie row by row"
    return _Lists(address(source), address(weight), source.shape[1])
