"""The C++ operations on numpy arrays. Shapes and meaning stand at each function; ``envsched.ops`` is the door for callers.

Letters: N tasks, M environments, D features, K slots, T targets, S visited tasks.
"""

import ctypes
from functools import cache

import numpy as np

from kernels.build import LIBRARIES, SOURCES, levels, sources_digest

MAX_WITHIN = 14  # slots of a list that lives in registers
_LANES = 32  # packed int8 features come in groups of this many tasks


class Unavailable(RuntimeError):
    """No library that this machine can run; the message says why."""


@cache
def library() -> ctypes.CDLL:
    """The best library for this processor.

    Raises:
        Unavailable: none was built, or it is older than its sources.
    """
    flags = _processor_flags()
    needed = {
        "avx512vnni": {"avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni"},
        "avx2": {"avx2", "fma", "bmi2"},
        "baseline": set(),
    }
    for level in levels():
        file = LIBRARIES / f"envsched-{level}.so"
        if needed[level] <= flags and file.is_file():
            loaded = ctypes.CDLL(str(file))
            loaded.envsched_sources.restype = ctypes.c_char_p
            if SOURCES.is_dir() and loaded.envsched_sources().decode() != sources_digest():
                raise Unavailable(f"{file.name} is older than its sources; run: python -m kernels.build")
            loaded.level = level
            return _declared(loaded)
    raise Unavailable("no native library was built; run: python -m kernels.build")


def is_built() -> bool:
    """Is there a library that this machine can run?"""
    try:
        library()
    except Unavailable:
        return False
    return True


def within(vectors: np.ndarray, offsets: np.ndarray, num_slots: int, threads: int) -> tuple[np.ndarray, np.ndarray]:
    """The best other tasks of each task's environment: rows int32 [N, K] and weights float32 [N, K], K <= 14."""
    assert num_slots <= MAX_WITHIN
    vectors, offsets = _as(vectors, np.float32), _as(offsets, np.int64)
    weight = np.empty((len(vectors), num_slots), np.float32)
    row = np.empty((len(vectors), num_slots), np.int32)
    library().envsched_within(_p(vectors), vectors.shape[1], _p(offsets), len(offsets) - 1, num_slots, _p(weight), _p(row), threads)
    return row, weight


def has_int8() -> bool:
    """Does the library have the int8 sieve?"""
    return bool(library().envsched_has_int8())


class Quantised:
    """Features as int8 codes with scale and residual, packed for the tiles: D + 8 bytes a task."""

    def __init__(self, vectors: np.ndarray, threads: int) -> None:
        self.vectors = _as(vectors, np.float32)
        num_tasks, num_features = vectors.shape
        padded = -(-num_tasks // _LANES) * _LANES
        self.packed = np.empty((padded, -(-num_features // 4) * 4), np.uint8)
        self.scale, self.residual = np.empty(padded, np.float32), np.empty(padded, np.float32)
        library().envsched_quantise(_p(self.vectors), num_tasks, num_features, _p(self.packed), _p(self.scale), _p(self.residual), threads)

    @property
    def nbytes(self) -> int:
        return self.packed.nbytes + self.scale.nbytes + self.residual.nbytes


def cross(
    features: Quantised, start: np.ndarray, stop: np.ndarray, targets: np.ndarray, num_slots: int, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """The best tasks outside start[i] .. stop[i] for each target i: rows int64 [T, K], weights float64 [T, K], exact."""
    num_tasks, num_features = features.vectors.shape
    start, stop, targets = (_as(values, np.int64) for values in (start, stop, targets))
    weight, row = np.empty((len(targets), num_slots)), np.empty((len(targets), num_slots), np.int64)
    library().envsched_cross(
        _p(features.vectors), _p(features.packed), _p(features.scale), _p(features.residual), num_tasks, num_features,
        _p(start), _p(stop), _p(targets), len(targets), num_slots, _p(weight), _p(row), threads,
    )  # fmt: skip
    return row, weight


def offer(
    features: Quantised, source: np.ndarray, start: np.ndarray, stop: np.ndarray, row: np.ndarray, weight: np.ndarray, threads: int
) -> None:
    """Let sources [S], in no list yet, compete for the lists of all tasks outside start .. stop, their own environment's rows.

    Args:
        row, weight: int64 and float64 [N, K], updated in place.
    """
    num_tasks, num_features = features.vectors.shape
    for lists, kind in ((row, np.int64), (weight, np.float64)):
        assert lists.dtype == kind, "lists are updated in place"
        assert lists.flags.c_contiguous, "lists are updated in place"
    source, start, stop = (_as(values, np.int64) for values in (source, start, stop))
    library().envsched_offer(
        _p(features.vectors), _p(features.packed), _p(features.scale), _p(features.residual), num_tasks, num_features,
        _p(source), _p(start), _p(stop), len(source), row.shape[1], _p(weight), _p(row), threads,
    )  # fmt: skip


def stream(
    features: Quantised, source: np.ndarray, mass: np.ndarray, value: np.ndarray, start: np.ndarray, stop: np.ndarray,
    floor: float, sums: np.ndarray, peak: np.ndarray, threads: int,
) -> None:  # fmt: skip
    """Add k(s) * value and k(s) * mass of every source [S] to the cross sums of all tasks outside its start .. stop.

    Args:
        floor: the similarity from which k rises, to 1 at similarity 1; see csrc/stream.cpp.
        sums: float32 [N, 4]; the last two columns are added to.
        peak: float32 [N / 16], as for ``scatter``.
    """
    num_tasks, num_features = features.vectors.shape
    source, start, stop = (_as(values, np.int64) for values in (source, start, stop))
    mass, value = _as(mass, np.float64), _as(value, np.float64)
    library().envsched_stream(
        _p(features.packed), _p(features.scale), num_tasks, num_features, _p(source), _p(mass), _p(value), _p(start), _p(stop),
        len(source), floor, _p(sums), _p(peak), threads,
    )  # fmt: skip


def reverse(row: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lists [N, K] by source: pointer int64 [N + 1], target int32 [E], weight float32 [E], targets ascending."""
    row, weight = _as(row, np.int32), _as(weight, np.float32)
    num_edges = int(np.count_nonzero(row >= 0))
    pointer, target, out = np.empty(len(row) + 1, np.int64), np.empty(num_edges, np.int32), np.empty(num_edges, np.float32)
    library().envsched_reverse(_p(row), _p(weight), *row.shape, _p(pointer), _p(target), _p(out))
    return pointer, target, out


def scatter(
    sums: np.ndarray, peak: np.ndarray, reversed_lists: tuple[np.ndarray, np.ndarray, np.ndarray], relation: int,
    source: np.ndarray, mass: np.ndarray, value: np.ndarray,
) -> int:  # fmt: skip
    """Add weight * (value, mass) of every source [S] to sums float32 [N, 4] of its targets; the number of edges.

    ``peak`` float32 [N / 16] stays an upper bound of the values of each block of 16 rows.
    """
    pointer, target, weight = reversed_lists
    source, mass, value = _as(source, np.int64), _as(mass, np.float64), _as(value, np.float64)
    return library().envsched_scatter(
        _p(sums), _p(peak), _p(pointer), _p(target), _p(weight), relation, _p(source), _p(mass), _p(value), len(source)
    )


def gather(row: np.ndarray, weight: np.ndarray, stats: np.ndarray, threads: int) -> np.ndarray:
    """sum_k weight[i, k] * stats[row[i, k]] over lists [N, K] (-1: none); stats and result float32 [N, 2]."""
    row, weight, stats = _as(row, np.int32), _as(weight, np.float32), _as(stats, np.float32)
    out = np.empty((len(row), 2), np.float32)
    library().envsched_gather(_p(row), _p(weight), _p(stats), *row.shape, _p(out), threads)
    return out


BLOCK_ROWS = 16


class State(ctypes.Structure):
    """``struct State`` of csrc/state.h."""

    _fields_ = (
        [(name, ctypes.c_int64) for name in ("num_tasks", "num_environments", "num_slots")]
        + [(name, ctypes.c_void_p) for name in ("offsets", "sums", "peak", "slot_of", "masked", "order", "row", "environment")]
        + [(name, ctypes.c_void_p) for name in ("mass", "value", "groups", "short_mass", "short_value", "stamp", "exposure")]
        + [(name, ctypes.c_void_p) for name in ("decay", "short_decay")]
        + [("num_ages", ctypes.c_int64)]
        + [(name, ctypes.c_void_p) for name in ("environment_mass", "environment_value", "environment_exposure")]
        + [("step", ctypes.c_int64), ("inverse_scale", ctypes.c_double)]
        + [(name, ctypes.c_double) for name in ("graph_shrinkage", "own_shrinkage", "decline_weight", "prior_variance")]
        + [(name, ctypes.c_double) for name in ("max_variance", "cross_weight")]
        + [("paper", ctypes.c_int64), ("pool_mass", ctypes.c_double), ("pool_value", ctypes.c_double)]
    )


def refresh(state: State) -> None:
    """Write masses and values of environments and pool from the visited tasks."""
    library().envsched_refresh(ctypes.byref(state))


def evaluate(state: State, rows: np.ndarray, environments: np.ndarray) -> np.ndarray:
    """u, g, environment, within mass, within, cross mass, cross and guard of tasks [n]: float64 [n, 8]."""
    rows, environments = _as(rows, np.int64), _as(environments, np.int64)
    out = np.empty((len(rows), 8))
    library().envsched_evaluate(ctypes.byref(state), _p(rows), _p(environments), len(rows), _p(out))
    return out


def score(state: State, threshold: float, capacity: int, threads: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Rows int64 with u float64 >= threshold, at most ``capacity`` of them, and how many there are."""
    rows, u = np.empty(capacity, np.int64), np.empty(capacity)
    found = library().envsched_score(ctypes.byref(state), ctypes.c_double(threshold), _p(rows), _p(u), capacity, threads)
    kept = min(found, capacity)
    return rows[:kept], u[:kept], found


def predict(state: State, threads: int) -> np.ndarray:
    """u of every task, float64 [N]."""
    u = np.empty(state.num_tasks)
    library().envsched_predict(ctypes.byref(state), _p(u), threads)
    return u


def isotonic(u: np.ndarray, v: np.ndarray, w: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """Knots and non-decreasing values [K] nearest to v [V] with weights w; u ascending."""
    u, v, w = (_as(values, np.float64) for values in (u, v, w))
    knots, values = np.empty(len(u)), np.empty(len(u))
    count = library().envsched_isotonic(_p(u), _p(v), _p(w), len(u), tolerance, _p(knots), _p(values))
    return knots[:count], values[:count]


class Filling:
    """One batch while it is filled; see csrc/select.cpp."""

    def __init__(self, state: State, quotas: np.ndarray, window: np.ndarray, carried: np.ndarray, streak_row: np.ndarray,
                 streak: np.ndarray, batch_size: int, within: np.ndarray, cross: np.ndarray) -> None:  # fmt: skip
        self._held = (
            _as(quotas, np.int64), _as(window, np.int32), _as(carried, np.int32), _as(streak_row, np.int64), _as(streak, np.int32),
            _as(within, np.float32), _as(cross, np.float32),
        )  # fmt: skip
        q, w, c, r, s, x, y = map(_p, self._held)
        self._handle = ctypes.c_void_p(
            library().envsched_begin(ctypes.byref(state), q, w, c, r, s, len(streak_row), batch_size, x, within.shape[1], y, cross.shape[1])
        )

    def __enter__(self) -> "Filling":
        return self

    def __exit__(self, *_) -> None:
        library().envsched_end(self._handle)

    @property
    def capacity(self) -> int:
        """Picks that the quotas allow together."""
        return library().envsched_capacity(self._handle)

    def cover(self, keys: np.ndarray, due: int, explores: np.ndarray) -> np.ndarray:
        """Coverage picks int64, at most one for each entry of ``explores`` bool; ``keys`` uint64 [M] order equal exposures."""
        keys, explores = _as(keys, np.uint64), _as(explores, np.uint8)
        out = np.empty(len(explores), np.int64)
        made = library().envsched_cover(self._handle, _p(keys), due, _p(explores), len(explores), _p(out))
        return out[:made]

    def exploit(self, rows: np.ndarray, bound: np.ndarray, variance: np.ndarray, penalty: float, ceiling: float, wanted: int,
                forced: bool) -> tuple[np.ndarray, np.ndarray, float, int]:  # fmt: skip
        """Picks int64, their closeness to the batch, the largest shortfall below the ceiling, and the inner products taken."""
        rows, bound, variance = _as(rows, np.int64), _as(bound, np.float64), _as(variance, np.float64)
        out, closeness = np.empty(wanted, np.int64), np.empty(wanted)
        gap, dots = ctypes.c_double(0), ctypes.c_int64(0)
        made = library().envsched_exploit(
            self._handle, _p(rows), _p(bound), _p(variance), len(rows), ctypes.c_double(penalty), ctypes.c_double(ceiling), wanted,
            int(forced), _p(out), _p(closeness), ctypes.byref(gap), ctypes.byref(dots),
        )  # fmt: skip
        return out[:made], closeness[:made], gap.value, dots.value


def _p(array: np.ndarray) -> int:
    """Where the values lie; ``array.ctypes`` costs ten times as much."""
    return array.__array_interface__["data"][0]


def _as(array: np.ndarray, kind: type) -> np.ndarray:
    return np.ascontiguousarray(array, dtype=kind)


def _declared(loaded: ctypes.CDLL) -> ctypes.CDLL:
    """Integers cross as 64 bits; the last argument of the parallel operations, their threads, as 32."""
    pointer, integer, threads, real = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_double
    p, i, t, d = pointer, integer, threads, real
    signatures = {
        "has_int8": (t, []),
        "within": (None, [p, i, p, i, i, p, p, t]),
        "quantise": (None, [p, i, i, p, p, p, t]),
        "cross": (None, [p, p, p, p, i, i, p, p, p, i, i, p, p, t]),
        "offer": (None, [p, p, p, p, i, i, p, p, p, i, i, p, p, t]),
        "stream": (None, [p, p, i, i, p, p, p, p, p, i, d, p, p, t]),
        "reverse": (None, [p, p, i, i, p, p, p]),
        "gather": (None, [p, p, p, i, i, p, t]),
        "scatter": (i, [p, p, p, p, p, i, p, p, p, i]),
        "refresh": (None, [p]),
        "evaluate": (None, [p, p, p, i, p]),
        "score": (i, [p, d, p, p, i, t]),
        "predict": (None, [p, p, t]),
        "isotonic": (i, [p, p, p, i, d, p, p]),
        "begin": (p, [p, p, p, p, p, p, i, i, p, i, p, i]),
        "capacity": (i, [p]),
        "end": (None, [p]),
        "cover": (i, [p, p, i, p, i, p]),
        "exploit": (i, [p, p, p, p, i, d, d, i, t, p, p, p, p]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(loaded, f"envsched_{name}", None)
        if function is not None:  # the int8 sieve needs its instructions
            function.restype, function.argtypes = result, arguments
    return loaded


def _processor_flags() -> set[str]:
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as stream:
            return next((set(line.partition(":")[2].split()) for line in stream if line.startswith("flags")), set())
    except OSError:
        return set()
