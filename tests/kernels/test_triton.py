"""Triton twins: equal to the reference in the interpreter, and compiled ahead of time for three generations without spills.

Both run in processes of their own: Triton reads ``TRITON_INTERPRET`` at import.
"""

import importlib.util
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")

INTERPRETED = """
import numpy as np, torch
from envsched import ops
from kernels import reference, torch_ops, triton_ops
assert ops.tensor_ops(torch.empty(1)) is triton_ops
g = np.random.default_rng(0)
N, K, D, S = 1000, 18, 24, 40
row = g.integers(-1, N, size=(N, K)).astype(np.int32)
weight, stats = g.random((N, K), dtype=np.float32), g.random((N, 2), dtype=np.float32)
t = torch.from_numpy
for kernels in (triton_ops, torch_ops):
    np.testing.assert_allclose(kernels.gather(t(row), t(weight), t(stats)), reference.gather(row, weight, stats), rtol=1e-5)
assert ops.backend() == "triton"
np.testing.assert_allclose(ops.gather(row, weight, stats), reference.gather(row, weight, stats), rtol=1e-5)

sums, parent = g.random((N, 4), dtype=np.float32), g.random(N, dtype=np.float32)
expected = (2 * parent + 0.5 * (sums[:, 0] + 0.3 * sums[:, 2])) / (2 + 0.5 * (sums[:, 1] + 0.3 * sums[:, 3]))
for kernels in (triton_ops, torch_ops):
    np.testing.assert_allclose(kernels.score(t(sums), t(parent), 0.5, 0.3, 2.0), expected, rtol=1e-5)

signed = sums - np.float32([0.5, 0, 0.5, 0])
expected = 1.5 * np.maximum(0, 0.1 * parent + signed[:, 0] / (signed[:, 1] + 5) + signed[:, 2] / (signed[:, 3] + 5)) + 0.01
assert (expected == 0.01).any() and (expected > 0.2).any()
for kernels in (triton_ops, torch_ops):
    made = kernels.score_residual(t(signed), t(np.float32(0.1) * parent), 5.0, 0.5, 0.01, 0.2)
    np.testing.assert_allclose(made, np.minimum(0.2, expected), rtol=1e-5)

x = np.abs(g.normal(size=(N, D))).astype(np.float32)
x /= np.linalg.norm(x, axis=1, keepdims=True)
environment, source = np.repeat(np.arange(20), 50).astype(np.int32), g.choice(N, S, replace=False).astype(np.int32)
mass, value = g.random(S, dtype=np.float32), g.random(S, dtype=np.float32)
k = np.clip((x.astype(float) @ x[source].T.astype(float) - 0.6) / 0.4, 0, None) ** 2
k[environment[:, None] == environment[source]] = 0
for kernels in (triton_ops, torch_ops):
    made = torch.from_numpy(sums.copy())
    kernels.stream(t(x), t(environment), t(source), t(mass), t(value), made, 0.6)
    np.testing.assert_allclose(made[:, 2], sums[:, 2] + k @ value, rtol=1e-4)
    np.testing.assert_allclose(made[:, 3], sums[:, 3] + k @ mass, rtol=1e-4)
    assert np.array_equal(made[:, :2], sums[:, :2])
print("equal")
"""

COMPILED = """
import pathlib, re, subprocess, sys, tempfile
import triton
import triton.backends.nvidia
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from kernels import triton_ops as ops
kinds = {
    "gather_kernel": dict(row="*i32", weight="*fp32", stats="*fp32", out="*fp32", num_tasks="i32", num_slots="i32"),
    "score_kernel": dict(sums="*fp32", environment="*fp32", u="*fp32", num_tasks="i32", scale="fp32", cross_weight="fp32",
                         shrinkage="fp32"),
    "score_residual_kernel": dict(sums="*fp32", environment="*fp32", u="*fp32", num_tasks="i32", residual_shrinkage="fp32",
                                  optimism="fp32", lift="fp32", max_variance="fp32"),
    "stream_kernel": dict(vectors="*fp32", environment="*i32", source="*i32", mass="*fp32", value="*fp32", sums="*fp32", num_tasks="i32",
                          num_sources="i32", num_features="i32", floor="fp32"),
}
sizes = {**dict.fromkeys(("gather_kernel", "score_kernel", "score_residual_kernel"), dict(BLOCK=128)), "stream_kernel": ops.STREAM}
limits = {"gather_kernel": 64, "score_kernel": 64, "score_residual_kernel": 64, "stream_kernel": 255}
for name, signature in kinds.items():
    constants = sizes[name]
    source = ASTSource(getattr(ops, name), {**signature, **dict.fromkeys(constants, "constexpr")}, constexprs=constants)
    made = triton.compile(source, target=GPUTarget("cuda", int(sys.argv[1]), 32))
    assert made.asm["cubin"], name
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(made.asm["cubin"])
        file.flush()
        tool = pathlib.Path(triton.backends.nvidia.__file__).parent / "bin/cuobjdump"
        usage = subprocess.run([tool, "-res-usage", file.name], capture_output=True, text=True, check=True).stdout
    registers, stack, local = (int(re.search(rf"{field}:(\\d+)", usage).group(1)) for field in ("REG", "STACK", "LOCAL"))
    print(name, "registers", registers, "stack", stack, "local", local)
    assert registers <= limits[name], (name, registers)
    assert stack == local == 0, (name, "spills", stack, local)
"""


def run(program, *arguments, **changes):
    environment = {**{k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}, **changes}
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=300, env=environment)


def test_interpreted_kernels_equal_the_reference():
    done = run(INTERPRETED, TRITON_INTERPRET="1", ENVSCHED_BACKEND="triton")
    assert done.stdout.strip().endswith("equal"), done.stderr[-3000:]


@pytest.mark.parametrize("capability", ["80", "90", "100"])
def test_kernels_compile_ahead_of_time_and_spill_nothing(capability, tmp_path):
    done = run(COMPILED, capability, TRITON_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr[-3000:]
