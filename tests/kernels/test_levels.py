"""Every level of instructions that this machine has gives the same lists and sums, to the last bit."""

import ctypes
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.worlds import cross_vectors
from kernels import live, native

LIBRARIES = [library for library in native.usable() if library.envsched_has_int8()] if native.is_built() else []
SHAPES = [(16, 64, 64), (1000, 128, 64), (77, 33, 1), (333, 100, 17), (130, 5, 40), (1029, 65, 150), (3, 4, 2)]  # N, D, S


def results(library: ctypes.CDLL, num_tasks: int, num_features: int, num_sources: int, monkeypatch: pytest.MonkeyPatch):
    """Bytes of all that the int8 tile has a part in, after three rounds."""
    monkeypatch.setattr(native, "library", lambda: library)
    generator = np.random.default_rng(num_tasks)
    codes = native.Quantised(cross_vectors(num_tasks, num_features, generator), 1)
    lists, table, place = live.LiveLists(num_tasks, 12), np.zeros((512, 2), np.float32), np.zeros(512, np.int32)
    sums = np.zeros((2, num_tasks, 4), np.float32)
    peak = np.zeros((2, num_tasks // native.BLOCK_ROWS + 1), np.float32)
    row, weight = np.full((num_tasks, 5), -1, np.int64), np.zeros((num_tasks, 5))
    order = generator.permutation(num_tasks)
    for step in range(3):
        source = np.sort(order[step * num_sources : (step + 1) * num_sources])
        if not len(source):
            break
        start = source // 3 * 3
        stop = np.minimum(start + 3, num_tasks)
        slot, mass, value = np.arange(len(source)) + 150 * step, generator.random(len(source)) + step, generator.random(len(source))
        table[slot], place[slot] = np.stack([value / np.sqrt(mass), np.sqrt(mass)], axis=1), source
        native.offer(codes, source, start, stop, row, weight, 3)
        native.stream(codes, *codes.codes_of(source), mass, value, start, stop, 0.1, sums[0], peak[0], 3)
        live.live_cross(lists, codes, source, slot, mass, start, stop, 0.1, table, place, sums[1], peak[1], 3)
    first = np.arange(num_tasks) // 3 * 3
    cross = native.cross(codes, first, np.minimum(first + 3, num_tasks), np.arange(num_tasks), 5, 3)
    return [values.tobytes() for values in (*cross, row, weight, sums, peak, lists.root, lists.slot, lists.least)]


@pytest.mark.skipif(len(LIBRARIES) < 2, reason="this machine runs fewer than two levels with int8 products")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_levels_are_equal(shape, monkeypatch):
    expected, *others = ([library.level, results(library, *shape, monkeypatch)] for library in LIBRARIES)
    for level, values in others:
        assert values == expected[1], f"{level} differs from {expected[0]}"


@pytest.mark.skipif(not native.is_built(), reason="no native library was built (python -m kernels.build)")
def test_the_best_usable_level_is_taken():
    assert native.library().level == next(native.usable()).level


@pytest.mark.skipif("amx" not in {library.level for library in LIBRARIES}, reason="this machine has no int8 tiles")
def test_without_leave_to_use_tiles_the_next_level_is_taken():
    """The system refuses tiles to a process whose signal stack is too small for their registers."""
    program = (
        "import ctypes, os\n"
        "class Stack(ctypes.Structure): _fields_ = [('at', ctypes.c_void_p), ('flags', ctypes.c_int), ('size', ctypes.c_size_t)]\n"
        "room = ctypes.create_string_buffer(6144)\n"
        "assert ctypes.CDLL(None).sigaltstack(ctypes.byref(Stack(ctypes.addressof(room), 0, len(room))), None) == 0\n"
        "from kernels import native\nprint(native.library().level)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "avx512vnni", done.stderr
