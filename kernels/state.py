"""The structures and operations of csrc/state.h, pairs.h and select.cpp: a whole step of a large pool in a few native calls.

Letters: N tasks, M environments, B batch, S visited tasks, V pairs.
"""

import ctypes
from ctypes import POINTER, byref, c_double, c_int, c_int64, c_uint64, c_void_p
from dataclasses import dataclass

import numpy as np

from kernels.forecast import RULES
from kernels.native import address, contiguous, library

GENERAL, ROW_TWICE = 1, -2  # outcomes: Python must compose this batch; two ranks gave a visit of one task
EXCHANGE = ctypes.CFUNCTYPE(c_int, c_void_p, c_int64, POINTER(c_void_p), POINTER(c_int64))
"""``Exchange``: this rank's bytes and their number; where all ranks' bytes lie and their number go into the last two."""

COLUMNS = {
    **dict.fromkeys(("order", "row", "environment", "stamp", "exposed", "streak", "visits"), np.int32),
    **dict.fromkeys(
        (
            "mass",
            "value",
            "reward",
            "told_mass",
            "told_value",
            "groups",
            "short_mass",
            "short_value",
            "exposure",
            "headroom",
            "given_mass",
            "given_value",
        ),
        np.float64,
    ),
}
"""What is kept of each visited task; csrc/state.h says what each column means."""


def _fields(kind: type, names: str) -> list[tuple[str, type]]:
    return [(name, kind) for name in names.split()]


class State(ctypes.Structure):
    """``struct State``."""

    _fields_ = (
        _fields(c_int64, "num_tasks num_environments first_row first_environment last_environment num_slots num_visits num_changed")
        + _fields(c_void_p, "offsets sums peak slot_of")
        + _fields(c_void_p, " ".join(COLUMNS))
        + _fields(c_void_p, "visit_slot visit_step changed decay short_decay own_decay")
        + _fields(c_int64, "num_ages")
        + _fields(c_void_p, "environment_mass environment_value environment_exposure seat_of")
        + _fields(c_int64, "step")
        + _fields(c_double, "base inverse_scale threshold half_life short_half_life own_half_life visit_half_life")
        + _fields(c_double, "graph_shrinkage own_shrinkage decline_weight mastery_weight prior_variance max_variance cross_weight")
        + _fields(c_double, "residual_shrinkage optimism optimism_spread lift told_within")
        + _fields(c_int64, "rule by_last_visit threads")
        + _fields(c_double, "pool_mass pool_value")
        + _fields(c_void_p, "exchange predicted")
    )


class Pairs(ctypes.Structure):
    """``struct Pairs``."""

    _fields_ = (
        _fields(c_int64, "count")
        + _fields(c_void_p, "u v w")
        + _fields(c_int64, "first_step num_cross")
        + [("base", c_double), ("cross", c_double * 3)]
        + _fields(c_double, "half_life start full full_cross tolerance max_variance")
        + _fields(c_int64, "calibrates min_distinct weighs_cross")
        + _fields(c_void_p, "knots values")
        + [("num_knots", c_int64), ("blend", c_double)]
    )


class Rules(ctypes.Structure):
    """``struct Rules``, the quotas and vectors in it laid flat."""

    _fields_ = (
        _fields(c_int64, "max_consecutive max_per_environment_window max_per_environment window_steps batch_size num_coverage")
        + _fields(c_double, "penalty explore exposure_scale")
        + [("discount_decays", c_int64), ("seed", c_uint64)]
        + [("size_count", c_void_p), ("num_sizes", c_int64)]
        + _fields(c_void_p, "within cross")
        + _fields(c_int64, "within_features cross_features shortlist capacity exhaustive")
        + [("flat", c_double)]
    )


class Closed(ctypes.Structure):
    """``struct Closed``."""

    _fields_ = (
        *_fields(c_void_p, "masked shut"),
        ("num_shut", c_int64),
        *_fields(c_void_p, "leased since"),
        ("num_leased", c_int64),
        ("barred", c_void_p),
    )


class Gifts(ctypes.Structure):
    """``struct Gifts``."""

    _fields_ = _fields(c_int64, "count") + _fields(c_void_p, "source slot start stop mass value more_mass more_value")


def age(state: State, pairs: Pairs, step: int) -> tuple[int, np.ndarray, np.ndarray]:
    """Bring all but the sums to ``step``: the exponent by which the scale of the sums shrank, and the gifts of S tasks: int64
    [4, S] (source row, slot, start and stop of its environment's rows), float64 [4, S] (mass, value, and what they exceed the
    task's last gift by)."""
    room = state.num_slots if state.rule == RULES["residual"] else state.num_changed
    places, amounts = np.empty((4, room), np.int64), np.empty((4, room))
    gifts = Gifts(0, *(address(row) for row in places), *(address(row) for row in amounts))
    shift = library().envsched_age(byref(state), byref(pairs), step, byref(gifts))
    return shift, places[:, : gifts.count], amounts[:, : gifts.count]


def observe(
    state: State,
    pairs: Pairs,
    step: int,
    rows: np.ndarray,
    version: np.ndarray,
    num_valid: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
) -> int:
    """Take in visits of distinct rows [n]; columns, visits and pairs must have room. The visits of all ranks, or below 0 why not."""
    rows, version, num_valid = (contiguous(values, np.int64) for values in (rows, version, num_valid))
    mean, variance = contiguous(mean, np.float64), contiguous(variance, np.float64)
    columns = (address(values) for values in (rows, version, num_valid, mean, variance))
    return library().envsched_observe(byref(state), byref(pairs), step, *columns, len(rows))


def evaluate(state: State, rows: np.ndarray, environments: np.ndarray) -> np.ndarray:
    """u, g, environment, within mass, within, cross mass, cross, guard and headroom of tasks [n]: float64 [n, 9]."""
    rows, environments = contiguous(rows, np.int64), contiguous(environments, np.int64)
    out = np.empty((len(rows), 9))
    library().envsched_evaluate(byref(state), address(rows), address(environments), len(rows), address(out))
    return out


def predict(state: State, num_rows: int, threads: int) -> np.ndarray:
    """u of every task held here, float64 [num_rows]."""
    u = np.empty(num_rows)
    library().envsched_predict(byref(state), address(u), threads)
    return u


def slots(state: State, rows: np.ndarray) -> np.ndarray:
    """Slots int64 [n] of rows [n], -1 where a task was never visited."""
    rows = contiguous(rows, np.int64)
    slot = np.empty(len(rows), np.int64)
    library().envsched_slots(byref(state), address(rows), len(rows), address(slot))
    return slot


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """What ``select`` gives. ``outcome``: 0 done, 1 Python must compose, below 0 a rank failed."""

    outcome: int
    rows: np.ndarray  # int64 [B]
    penalty: np.ndarray  # float64 [B]
    bound_by: np.ndarray  # uint32 [B], bits of the quotas that shut out tasks that ranked before
    gap: float


def select(state: State, pairs: Pairs, rules: Rules, masked: np.ndarray | None, barred: np.ndarray | None, leased: np.ndarray) -> Made:
    """The batch of the state's step.

    Args:
        masked: shut out, tasks under a lease too, bool [N]; none: nothing is.
        barred: kept from the exploitation lane while any other task is open, bool [N].
        leased: rows under a lease and the steps at which they were picked, int64 [2, n].
    """
    rows, penalty, gap = np.empty(rules.batch_size, np.int64), np.empty(rules.batch_size), c_double(0)
    bound_by, leased = np.empty(rules.batch_size, np.uint32), contiguous(leased, np.int64)
    shut = np.flatnonzero(masked) if masked is not None else leased[0, :0]
    closed = Closed(
        masked=None if masked is None else address(masked), shut=address(shut), num_shut=len(shut),
        leased=address(leased[0]), since=address(leased[1]), num_leased=leased.shape[1], barred=None if barred is None else address(barred),
    )  # fmt: skip
    outcome = library().envsched_select(
        byref(state), byref(pairs), byref(rules), byref(closed), address(rows), address(penalty), address(bound_by), byref(gap)
    )
    return Made(outcome, rows, penalty, bound_by, gap.value)


def greedy(
    state: State, rules: Rules, rows: np.ndarray, bound: np.ndarray, sizes: np.ndarray, ceilings: np.ndarray
) -> tuple[np.ndarray, int, int]:
    """Fill a batch from candidates in the order of falling bounds, over shortlists of the given sizes and ceilings: rows int64
    [B], the inner products taken, and the size of the last shortlist looked at."""
    rows, sizes = contiguous(rows, np.int64), contiguous(sizes, np.int64)
    bound, ceilings = contiguous(bound, np.float64), contiguous(ceilings, np.float64)
    out, used = np.full(rules.batch_size, -1, np.int64), c_int64(0)
    products = library().envsched_greedy(
        byref(state), byref(rules), address(rows), address(bound), address(sizes), address(ceilings), len(sizes), address(out), byref(used)
    )
    return out, products, used.value


def cross_weight(pairs: Pairs) -> float:
    """k_c as the pairs show it."""
    return library().envsched_cross_weight(byref(pairs))
