"""The C++ operations on numpy arrays. Shapes and meaning stand at each function; ``envsched.ops`` is the door for callers.

Letters: N tasks, M environments, D features, K slots, T targets, S visited tasks.
"""

import ctypes
from collections.abc import Iterator
from functools import cache

import numpy as np

from kernels.build import LIBRARIES, SOURCES, levels, sources_digest

MAX_WITHIN = 14  # slots of a list that lives in registers
BLOCK_ROWS = 16  # places that share one entry of `peak`
TILE_TASKS = 16  # int8 codes are read this many tasks at a time
_LINE = 64  # bytes of a cache line, and of a tile's row
_AVX512 = {"avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni"}
_NEEDED = {"amx": {*_AVX512, "amx_tile", "amx_int8"}, "avx512vnni": _AVX512, "avx2": {"avx2", "fma", "bmi2"}, "baseline": set()}


class Unavailable(RuntimeError):
    """No library that this machine can run; the message says why."""


@cache
def library() -> ctypes.CDLL:
    """The best library for this processor.

    Raises:
        Unavailable: none was built, or it is older than its sources.
    """
    best = next(usable(), None)
    if best is None:
        raise Unavailable("no native library was built; run: python -m kernels.build")
    return best


def usable() -> Iterator[ctypes.CDLL]:
    """Libraries that this machine can run, best first; ``level`` names each.

    Raises:
        Unavailable: one is older than its sources.
    """
    flags = _processor_flags()
    for level in levels():
        file = LIBRARIES / f"envsched-{level}.so"
        if not (_NEEDED[level] <= flags and file.is_file()):
            continue
        loaded = ctypes.CDLL(str(file))
        loaded.envsched_sources.restype = ctypes.c_char_p
        if SOURCES.is_dir() and loaded.envsched_sources().decode() != sources_digest():
            raise Unavailable(f"{file.name} is older than its sources; run: python -m kernels.build")
        if loaded.envsched_ready():
            loaded.level = level
            yield _declared(loaded)


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
    vectors, offsets = contiguous(vectors, np.float32), contiguous(offsets, np.int64)
    weight = np.empty((len(vectors), num_slots), np.float32)
    row = np.empty((len(vectors), num_slots), np.int32)
    library().envsched_within(
        address(vectors), vectors.shape[1], address(offsets), len(offsets) - 1, num_slots, address(weight), address(row), threads
    )
    return row, weight


def has_int8() -> bool:
    """Does the library have the int8 sieve?"""
    return bool(library().envsched_has_int8())


class Quantised:
    """Features as int8 codes with scale and residual: D + 8 bytes a task.

    ``codes``: 128 more than the code, uint8 [N rounded up to 16, D rounded up to 4].
    """

    def __init__(self, vectors: np.ndarray, threads: int) -> None:
        self.vectors = contiguous(vectors, np.float32)
        num_tasks, num_features = vectors.shape
        padded, width = -(-num_tasks // TILE_TASKS) * TILE_TASKS, -(-num_features // 4) * 4
        room = np.empty(padded * width + 2 * _LINE, np.uint8)  # tiles begin at a line, and the last one is read beyond its end
        first = -address(room) % _LINE
        self.codes = room[first : first + padded * width].reshape(padded, width)
        self.scale, self.residual = np.empty(padded, np.float32), np.empty(padded, np.float32)
        library().envsched_quantise(
            address(self.vectors), num_tasks, num_features, address(self.codes), address(self.scale), address(self.residual), threads
        )

    def codes_of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Codes int8 [n, D rounded up to 4] and scales float32 [n] of rows [n]."""
        return (self.codes[rows] ^ 128).view(np.int8), self.scale[rows]

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes + self.scale.nbytes + self.residual.nbytes


def cross(
    features: Quantised, start: np.ndarray, stop: np.ndarray, targets: np.ndarray, num_slots: int, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """The best tasks outside start[i] .. stop[i] for each target i: rows int64 [T, K], weights float64 [T, K], exact."""
    num_tasks, num_features = features.vectors.shape
    start, stop, targets = (contiguous(values, np.int64) for values in (start, stop, targets))
    weight, row = np.empty((len(targets), num_slots)), np.empty((len(targets), num_slots), np.int64)
    library().envsched_cross(
        address(features.vectors), address(features.codes), address(features.scale), address(features.residual), num_tasks, num_features,
        address(start), address(stop), address(targets), len(targets), num_slots, address(weight), address(row), threads,
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
    _require_lists(row, weight)
    source, start, stop = (contiguous(values, np.int64) for values in (source, start, stop))
    library().envsched_offer(
        address(features.vectors), address(features.codes), address(features.scale), address(features.residual), num_tasks, num_features,
        address(source), address(start), address(stop), len(source), row.shape[1], address(weight), address(row), threads,
    )  # fmt: skip


def offer_within(vectors: np.ndarray, source: np.ndarray, start: np.ndarray, stop: np.ndarray, row: np.ndarray, weight: np.ndarray) -> None:
    """``offer`` to the other rows of start .. stop, the sources' own environments, by exact similarities of vectors float32 [N, D]."""
    _require_lists(row, weight)
    vectors = contiguous(vectors, np.float32)
    source, start, stop = (contiguous(values, np.int64) for values in (source, start, stop))
    library().envsched_offer_within(
        address(vectors), vectors.shape[1], address(source), address(start), address(stop), len(source), row.shape[1], address(weight),
        address(row),
    )  # fmt: skip


def stream(
    features: Quantised, codes: np.ndarray, scale: np.ndarray, mass: np.ndarray, value: np.ndarray, start: np.ndarray, stop: np.ndarray,
    floor: float, sums: np.ndarray, peak: np.ndarray, threads: int, shrinkage: float = 0.0,
) -> None:  # fmt: skip
    """Add k(s) * value and k(s) * mass of every source [S] to the cross sums of all tasks outside its start .. stop.

    Args:
        codes, scale: of the sources, as ``Quantised.codes_of`` gives them.
        floor: the similarity from which k rises, to 1 at similarity 1; see csrc/stream.cpp.
        sums: float32 [N, 4]; the last two columns are added to.
        peak, shrinkage: float32 [N / 16] and number, as for ``scatter``.
    """
    num_tasks, num_features = features.vectors.shape
    codes, scale, start, stop = (
        contiguous(codes, np.int8),
        contiguous(scale, np.float32),
        contiguous(start, np.int64),
        contiguous(stop, np.int64),
    )
    mass, value = contiguous(mass, np.float64), contiguous(value, np.float64)
    library().envsched_stream(
        address(features.codes), address(features.scale), num_tasks, num_features, address(codes), address(scale), address(mass),
        address(value), address(start), address(stop), len(codes), floor, address(sums), address(peak), shrinkage, threads,
    )  # fmt: skip


def reverse(row: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lists [N, K] by source: pointer int64 [N + 1], target int32 [E], weight float32 [E], targets ascending."""
    row, weight = contiguous(row, np.int32), contiguous(weight, np.float32)
    num_edges = int(np.count_nonzero(row >= 0))
    pointer, target, out = np.empty(len(row) + 1, np.int64), np.empty(num_edges, np.int32), np.empty(num_edges, np.float32)
    library().envsched_reverse(address(row), address(weight), *row.shape, address(pointer), address(target), address(out))
    return pointer, target, out


def scatter(
    sums: np.ndarray, peak: np.ndarray, reversed_lists: tuple[np.ndarray, np.ndarray, np.ndarray], relation: int,
    source: np.ndarray, mass: np.ndarray, value: np.ndarray, shrinkage: float = 0.0,
) -> int:  # fmt: skip
    """Add weight * (value, mass) of every source [S] to sums float32 [N, 4] of its targets; the number of edges.

    ``peak`` float32 [N / 16] stays an upper bound over each block of 16 rows: of both relations' values together, or of both
    residuals where they are shrunk by ``shrinkage``.
    """
    pointer, target, weight = reversed_lists
    source, mass, value = contiguous(source, np.int64), contiguous(mass, np.float64), contiguous(value, np.float64)
    return library().envsched_scatter(
        address(sums),
        address(peak),
        address(pointer),
        address(target),
        address(weight),
        relation,
        address(source),
        address(mass),
        address(value),
        len(source),
        shrinkage,
    )


def gather(row: np.ndarray, weight: np.ndarray, stats: np.ndarray, threads: int) -> np.ndarray:
    """sum_k weight[i, k] * stats[row[i, k]] over lists [N, K] (-1: none); stats and result float32 [N, 2]."""
    row, weight, stats = contiguous(row, np.int32), contiguous(weight, np.float32), contiguous(stats, np.float32)
    out = np.empty((len(row), 2), np.float32)
    library().envsched_gather(address(row), address(weight), address(stats), *row.shape, address(out), threads)
    return out


def isotonic(u: np.ndarray, v: np.ndarray, w: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """Knots and non-decreasing values [K] nearest to v [V] with weights w; u ascending."""
    u, v, w = (contiguous(values, np.float64) for values in (u, v, w))
    knots, values = np.empty(len(u)), np.empty(len(u))
    count = library().envsched_isotonic(address(u), address(v), address(w), len(u), tolerance, address(knots), address(values))
    return knots[:count], values[:count]


def _require_lists(row: np.ndarray, weight: np.ndarray) -> None:
    for lists, kind in ((row, np.int64), (weight, np.float64)):
        assert lists.dtype == kind, "lists are updated in place"
        assert lists.flags.c_contiguous, "lists are updated in place"


def address(array: np.ndarray) -> int:
    """Where the values lie; ``array.ctypes`` costs ten times as much."""
    return array.__array_interface__["data"][0]


def contiguous(array: np.ndarray, kind: type) -> np.ndarray:
    return np.ascontiguousarray(array, dtype=kind)


def _declared(loaded: ctypes.CDLL) -> ctypes.CDLL:
    """Integers cross as 64 bits; the last argument of the parallel operations, their threads, as 32."""
    pointer, integer, threads, real = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_double
    p, i, t, d = pointer, integer, threads, real
    signatures = {
        "ready": (t, []),
        "has_int8": (t, []),
        "within": (None, [p, i, p, i, i, p, p, t]),
        "quantise": (None, [p, i, i, p, p, p, t]),
        "cross": (None, [p, p, p, p, i, i, p, p, p, i, i, p, p, t]),
        "offer": (None, [p, p, p, p, i, i, p, p, p, i, i, p, p, t]),
        "offer_within": (None, [p, i, p, p, p, i, i, p, p]),
        "stream": (None, [p, p, i, i, p, p, p, p, p, p, i, d, p, p, d, t]),
        "live_cross": (None, [p, p, i, i, p, p, p, p, p, i, d, p, p, p, p, i, p, p, d, t]),
        "live_within": (None, [p, i, p, p, p, p, p, i, p, p, p, p, i, p, p, d]),
        "live_settle": (None, [i, i, p, p, p, p, i, p, p, d, t]),
        "classes": (i, [p, p, p, p, p, p, p, p, p, i, p, p, p, i, d]),
        "reverse": (None, [p, p, i, i, p, p, p]),
        "gather": (None, [p, p, p, i, i, p, t]),
        "scatter": (i, [p, p, p, p, p, i, p, p, p, i, d]),
        "isotonic": (i, [p, p, p, i, d, p, p]),
        "forecast": (None, [p, t]),
        "cross_weight": (d, [p]),
        "age": (i, [p, p, i, p]),
        "observe": (i, [p, p, i, p, p, p, p, p, i]),
        "evaluate": (None, [p, p, p, i, p]),
        "predict": (None, [p, p, t]),
        "slots": (None, [p, p, i, p]),
        "select": (i, [p, p, p, p, p, p, p, p]),
        "greedy": (i, [p, p, p, p, p, p, i, p, p]),
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
