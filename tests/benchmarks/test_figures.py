"""Each benchmark of the graph backend as a person runs it, tiny: what its JSON file holds."""

import json
import subprocess
import sys
from numbers import Real
from pathlib import Path

import pytest

from kernels import native

ROOT = Path(__file__).parents[2]
PROMISED = {
    "step": (
        *("step_ms", "step_over_copy", "certified_share", "manifest_ms", "speedup_over_pyg", "speedup_over_scipy", "scatter_growth"),
        *("state_bytes_per_task", "kernel_bytes_per_task", "kernel_update_over_copy"),
    ),
    "graph": ("within_over_gemm", "faiss_over_within", "faiss_over_cross", "cross_seconds_per_query"),
    "select": ("select_ms", "naive_over_select"),
    "kernels": ("live_update_over_copy",),
}
ONCE = {"machine", "versions", "date", "command", "default_threads"}


@pytest.mark.slow
@pytest.mark.skipif(not native.is_built() or not native.has_int8(), reason="no native library with int8 products was built")
@pytest.mark.parametrize("name", PROMISED)
def test_one_thread_stands_at_the_top_and_default_threads_repeats_it(tmp_path, name):
    file = tmp_path / "figures.json"
    words = ["--tasks", "600", "--environments", "12", "--repeats", "3", "--json", str(file)]
    done = subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *words], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    figures = json.loads(file.read_text())
    assert figures.keys() - figures["default_threads"].keys() == ONCE
    assert figures["default_threads"].keys() <= figures.keys()
    for measured in (figures, figures["default_threads"]):
        assert measured["repeats"] == 3
        assert all(isinstance(measured[key], Real) and measured[key] > 0 for key in PROMISED[name])
    assert figures["machine"].keys() == {"kind", "processors", "load"}
    assert figures["versions"].keys() >= {"torch", "torch-geometric", "faiss-cpu", "numpy", "scipy"}
    if name == "graph":
        assert figures["within_neighbours_identical"]
        assert figures["cross_neighbours_identical"]
    if name == "kernels":
        assert max(figures["largest_error"].values()) < 1e-5
        assert figures["milliseconds"].keys() == figures["over_native"].keys()
