"""Native operations against their numpy reference."""

import os
import subprocess
import sys

import numpy as np
import pytest

from envsched import ops
from envsched.features.features import on_grid
from envsched.predict.calibration import isotonic
from kernels import native, reference
from tests.graph.worlds import unit

needs_native = pytest.mark.skipif(not native.is_built(), reason="no native library was built (python -m kernels.build)")


def vectors_of(num_tasks, num_features, seed=0, num_distinct=None, positive=False):
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(num_distinct or num_tasks, num_features))
    rows = np.abs(rows) if positive else rows + 0.3
    return on_grid(unit(rows)[np.arange(num_tasks) % len(rows)])


SHAPES = [
    {"sizes": [1, 2, 0, 15, 16, 17, 31, 32, 33, 50, 129], "num_features": 37},
    {"sizes": [70, 3, 40], "num_features": 384, "num_distinct": 9},
    {"sizes": [40, 40, 40], "num_features": 8, "num_distinct": 1},
    {"sizes": [60] * 5, "num_features": 3, "positive": True},
    {"sizes": [5], "num_features": 4},
]


@needs_native
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("num_slots", [1, 6, 14])
@pytest.mark.parametrize("threads", [1, 3])
def test_within(shape, num_slots, threads):
    sizes, options = shape["sizes"], {k: v for k, v in shape.items() if k != "sizes"}
    vectors, offsets = vectors_of(sum(sizes), **options), np.concatenate([[0], np.cumsum(sizes)])
    row, weight = native.within(vectors, offsets, num_slots, threads)
    expected_row, expected_weight = reference.within_lists(vectors, offsets, num_slots)
    assert np.array_equal(row, expected_row)
    np.testing.assert_allclose(weight, expected_weight, atol=1e-6)


@needs_native
@pytest.mark.skipif(native.is_built() and not native.has_int8(), reason="this processor has no int8 inner products")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("num_slots", [1, 12])
@pytest.mark.parametrize("threads", [1, 3])
def test_cross(shape, num_slots, threads):
    sizes, options = shape["sizes"], {k: v for k, v in shape.items() if k != "sizes"}
    vectors, offsets = vectors_of(sum(sizes), **options), np.concatenate([[0], np.cumsum(sizes)])
    start, stop = np.repeat(offsets[:-1], sizes), np.repeat(offsets[1:], sizes)
    targets = np.arange(len(vectors))
    row, weight = native.cross(native.Quantised(vectors, threads), start, stop, targets, num_slots, threads)
    expected_row, expected_weight = reference.cross_lists(vectors, offsets, num_slots, targets)
    assert np.array_equal(row, expected_row)
    assert np.array_equal(weight.astype(np.float32), expected_weight)


@needs_native
@pytest.mark.skipif(native.is_built() and not native.has_int8(), reason="this processor has no int8 inner products")
def test_cross_over_many_blocks_of_sources():
    vectors, offsets = vectors_of(5000, 33, num_distinct=2500), np.arange(101) * 50
    targets = np.random.default_rng(0).choice(5000, 500, replace=False)
    row, _ = ops.cross_lists(vectors, offsets, 12, targets)
    assert np.array_equal(row, reference.cross_lists(vectors, offsets, 12, targets)[0])


@needs_native
def test_reverse_and_scatter():
    generator = np.random.default_rng(0)
    row = generator.integers(-1, 30, size=(30, 5)).astype(np.int32)
    weight = generator.random((30, 5)).astype(np.float32)
    made, expected = native.reverse(row, weight), reference.reverse_lists(row, weight)
    for ours, theirs in zip(made, expected, strict=True):
        assert np.array_equal(ours, theirs)
    mass, value, sums = generator.random(30), generator.random(30), np.zeros((30, 4), np.float32)
    peak = np.zeros(2, np.float32)
    assert native.scatter(sums, peak, made, 1, np.arange(30), mass, value) == (row >= 0).sum()
    known = np.where(row >= 0, weight, 0)
    np.testing.assert_allclose(sums[:, 2], (known * value[row]).sum(1), rtol=1e-5)
    np.testing.assert_allclose(sums[:, 3], (known * mass[row]).sum(1), rtol=1e-5)
    assert not sums[:, :2].any()
    assert np.array_equal(peak, [sums[:16, 2].max(), sums[16:, 2].max()])
    shrunk = np.zeros(2, np.float32)
    native.scatter(np.zeros_like(sums), shrunk, made, 1, np.arange(30), mass, -value, 3.0)
    assert not shrunk.any()
    native.scatter(sums, shrunk, made, 1, np.arange(30), mass, value, 3.0)
    residual = sums[:, 2] / (sums[:, 3] + np.float32(3))
    assert (shrunk >= np.array([residual[:16].max(), residual[16:].max()]) * (1 - 1e-6)).all()


@needs_native
def test_isotonic_equals_pooling():
    generator = np.random.default_rng(0)
    u = np.sort(np.round(generator.random(500), 3))
    v, w = u + 0.3 * generator.normal(size=500), generator.random(500) + 0.1
    knots, values = native.isotonic(u, v, w, 1e-9)
    first = np.unique(u, return_index=True)[1]
    weights = np.add.reduceat(w, first)
    expected = isotonic(np.add.reduceat(w * v, first) / weights, weights)
    assert np.array_equal(knots, np.unique(u))
    np.testing.assert_allclose(values, expected, rtol=1e-12)


@pytest.mark.parametrize(("backend", "expected"), [("torch", "torch"), ("native", "native"), ("auto", None)])
def test_the_backend_can_be_forced(backend, expected):
    if backend == "native" and not native.is_built():
        pytest.skip("no native library was built (python -m kernels.build)")
    done = run(backend, "from envsched import ops; print(ops.backend())")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in ({expected} if expected else {"torch", "native"})


def test_an_unknown_backend_is_refused():
    done = run("cuda", "from envsched import ops; ops.backend()")
    assert "expected auto, native, torch or triton; came 'cuda'" in done.stderr


@needs_native
def test_both_backends_give_the_same_lists():
    program = (
        "import numpy as np, hashlib\nfrom tests.kernels.test_native import vectors_of\nfrom envsched import ops\n"
        "x = vectors_of(600, 40, num_distinct=300)\noffsets = np.arange(13) * 50\n"
        "print(hashlib.sha256(ops.within_lists(x, offsets, 6)[0].tobytes() + ops.cross_lists(x, offsets, 12)[0].tobytes()).hexdigest())"
    )
    assert run("torch", program).stdout == run("native", program).stdout != ""


def run(backend, program):
    environment = {**os.environ, "ENVSCHED_BACKEND": backend}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env=environment)
