"""The FAISS wrapper: results, settings, installation faults, import order."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from envsched.errors import MissingExtraError
from envsched.graph.index import installed_distributions, load_faiss, nearest, refuse_two_distributions


def test_nearest_equals_numpy():
    generator = np.random.default_rng(0)
    queries, sources = generator.normal(size=(33, 20)).astype(np.float32), generator.normal(size=(57, 20)).astype(np.float32)
    product, position = nearest(queries, sources, 7)
    everything = queries @ sources.T
    assert np.array_equal(position, np.argsort(-everything, axis=1)[:, :7])
    np.testing.assert_allclose(product, np.take_along_axis(everything, position, 1), rtol=1e-5)


def test_settings_are_made_once():
    faiss = load_faiss()
    assert faiss is load_faiss()
    assert faiss.cvar.distance_compute_blas_threshold == 1
    assert faiss.omp_get_max_threads() == torch.get_num_threads()


def test_two_distributions_are_refused_with_the_remedy():
    with pytest.raises(MissingExtraError, match=r"pip uninstall -y faiss-cpu faiss-gpu && pip install faiss-gpu"):
        refuse_two_distributions(["faiss-cpu", "faiss-gpu"])
    refuse_two_distributions(["faiss-gpu"])


def test_a_second_distribution_is_found_on_disk(tmp_path, monkeypatch):
    present = installed_distributions()
    assert len(present) == 1
    absent = "faiss-gpu" if present == ["faiss-cpu"] else "faiss-cpu"
    folder = tmp_path / f"{absent.replace('-', '_')}-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {absent}\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert sorted(installed_distributions()) == sorted([*present, absent])


@pytest.mark.parametrize("order", ["import torch, faiss", "import faiss, torch"])
def test_either_import_order_works(order):
    program = (
        f"{order}\nimport numpy as np\nfrom envsched.graph.index import nearest\n"
        "x = np.eye(64, dtype=np.float32)\nproduct, position = nearest(x, x, 2)\n"
        "assert position[:, 0].tolist() == list(range(64))\n"
        "y = torch.rand(256, 256) @ torch.rand(256, 256)\nassert torch.isfinite(y).all()\nprint('fine')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=500, env=os.environ)
    assert done.stdout == "fine\n", done.stderr
