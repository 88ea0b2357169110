"""The one place that imports FAISS: brute-force inner-product search on the GPU when FAISS can, on the CPU otherwise.

Letters: Q queries, S sources, D features, K neighbours.
"""

import importlib.metadata
import logging
from functools import cache
from types import ModuleType

import numpy as np
import torch

from envsched import ops
from envsched.errors import MissingExtraError

_log = logging.getLogger(__name__)
_DISTRIBUTIONS = ("faiss-cpu", "faiss-gpu", "faiss-gpu-cu12", "faiss-gpu-cuvs")
_GPU_LIMIT = 2048  # most neighbours that a GPU search returns
_BLAS_THRESHOLD = 1  # FAISS multiplies matrices only above this many queries x features; its default leaves small blocks 10x slower


def nearest(queries: np.ndarray, sources: np.ndarray, num_neighbours: int) -> tuple[np.ndarray, np.ndarray]:
    """The sources with the largest float32 inner products, best first.

    Args:
        queries: float32 [Q, D].
        sources: float32 [S, D], S >= num_neighbours.

    Returns:
        products float32 [Q, K] and source positions int64 [Q, K]. Equal products come in no promised order.

    Raises:
        MissingExtraError: FAISS is not installed, or two distributions of it are.
    """
    faiss = load_faiss()
    queries, sources = np.ascontiguousarray(queries), np.ascontiguousarray(sources)
    if num_gpus() and num_neighbours <= _GPU_LIMIT:
        return faiss.knn_gpu(_resources(), queries, sources, num_neighbours, metric=faiss.METRIC_INNER_PRODUCT)
    return faiss.knn(queries, sources, num_neighbours, metric=faiss.METRIC_INNER_PRODUCT)


class Cells:
    """Approximate search: sources in cells (FAISS IVF), of which a query visits a few. On a GPU where FAISS has one, through cuVS
    where it was built with it.

    Args:
        sources: float32 [S, D].
        num_cells: at most S.
    """

    def __init__(self, sources: np.ndarray, num_cells: int) -> None:
        faiss = load_faiss()
        sources = np.ascontiguousarray(sources)
        self.num_cells = num_cells
        self._index = faiss.IndexIVFFlat(faiss.IndexFlatIP(sources.shape[1]), sources.shape[1], num_cells, faiss.METRIC_INNER_PRODUCT)
        self._index.cp.min_points_per_centroid = 1  # a small pool is no reason for a warning
        if num_gpus():
            options = faiss.GpuClonerOptions()
            options.use_cuvs = hasattr(faiss, "GpuIndexCagra")
            self._index = faiss.index_cpu_to_gpu(_resources(), 0, self._index, options)
        self._index.train(sources)
        self._index.add(sources)

    def search(self, queries: np.ndarray, num_neighbours: int, num_visited: int) -> tuple[np.ndarray, np.ndarray]:
        """As ``nearest``, from the ``num_visited`` cells nearest to each query; position -1 where they hold too few."""
        self._index.nprobe = num_visited
        return self._index.search(np.ascontiguousarray(queries), num_neighbours)


def num_gpus() -> int:
    """GPUs that the installed FAISS can use and may; 0 with faiss-cpu, or where ``ENVSCHED_DEVICE`` is cpu."""
    faiss = load_faiss()
    if ops.device() == "cpu":
        return 0
    return faiss.get_num_gpus() if hasattr(faiss, "StandardGpuResources") else 0


@cache
def load_faiss() -> ModuleType:
    """The faiss module with its thread count and BLAS threshold set, once a process."""
    refuse_two_distributions(installed_distributions())
    try:
        import faiss
    except ImportError as error:
        raise MissingExtraError(
            f"the exact graph builder needs FAISS ({error}): pip install 'envsched[cpu]', or 'envsched[cuda]' on a machine with a GPU"
        ) from None
    faiss.omp_set_num_threads(torch.get_num_threads())
    faiss.cvar.distance_compute_blas_threshold = _BLAS_THRESHOLD
    gpus = faiss.get_num_gpus() if hasattr(faiss, "StandardGpuResources") else 0
    _log.info("FAISS %s finds %s", faiss.__version__, f"{gpus} GPU(s)" if gpus else "no GPU")
    return faiss


def installed_distributions() -> list[str]:
    """Distributions present that bring a package named ``faiss``."""
    return [name for name in _DISTRIBUTIONS if _is_installed(name)]


def refuse_two_distributions(names: list[str]) -> None:
    """Two distributions write the same folder, so that which code runs depends on the order of installation.

    Raises:
        MissingExtraError: more than one name, with the commands that leave one.
    """
    if len(names) > 1:
        raise MissingExtraError(
            f"{' and '.join(names)} are both installed and overwrite each other's package 'faiss'; keep one: "
            f"pip uninstall -y {' '.join(names)} && pip install {names[-1]}"
        )


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


@cache
def _resources():
    return load_faiss().StandardGpuResources()
