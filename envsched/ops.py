"""Which implementation of the hot operations runs: the native library where one was built, numpy and torch otherwise.

``ENVSCHED_BACKEND`` forces ``native``, ``torch`` or ``triton`` (operations on tensors, all else as ``torch``);
``ENVSCHED_THREADS`` sets the number of threads of all native work; ``ENVSCHED_DEVICE`` keeps FAISS off the GPU (``cpu``), or propagates
there too (``cuda``).

Letters: N tasks, M environments, D features, K slots.
"""

import importlib
import importlib.util
import logging
import os
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from envsched.errors import ConfigError, MissingExtraError
from kernels import forecast as native_forecast
from kernels import native, reference

if TYPE_CHECKING:
    from torch import Tensor

_log = logging.getLogger(__name__)


@cache
def backend() -> str:
    """``native``, ``torch`` or ``triton``, decided and logged once.

    Raises:
        ConfigError: ``ENVSCHED_BACKEND`` names none of them.
        MissingExtraError: it asks for a native library, or for Triton and a GPU, that is not there.
    """
    wanted = os.environ.get("ENVSCHED_BACKEND", "auto")
    if wanted not in ("auto", "native", "torch", "triton"):
        raise ConfigError(f"ENVSCHED_BACKEND: expected auto, native, torch or triton; came {wanted!r}")
    if wanted == "triton" and not _runs_triton():
        raise MissingExtraError("ENVSCHED_BACKEND is triton, but Triton is not installed or there is no GPU; choose native or torch")
    if wanted in ("torch", "triton"):
        _log.info("graph operations run in %s, as ENVSCHED_BACKEND asks", wanted)
        return wanted
    try:
        level = native.library().level
    except native.Unavailable as error:
        if wanted == "native":
            raise MissingExtraError(f"ENVSCHED_BACKEND is native, but {error}") from None
        _log.info("graph operations run in torch: %s", error)
        return "torch"
    _log.info("graph operations run in the native library (%s)", level)
    return "native"


def _runs_triton() -> bool:
    if importlib.util.find_spec("triton") is None:
        return False
    import torch

    return torch.cuda.is_available() or os.environ.get("TRITON_INTERPRET") == "1"


def has_int8() -> bool:
    """Does the int8 sieve run here?"""
    return backend() == "native" and native.has_int8()


def require_built(wanted: str) -> None:
    """Say what ``wanted`` lacks.

    Raises:
        MissingExtraError: the native library is not there.
    """
    if backend() != "native":
        raise MissingExtraError(
            f"{wanted} needs the native library, and graph operations run in {backend()} here; build it with python -m kernels.build, "
            "or choose graph_mode static or incremental_exact"
        )


def require_native(wanted: str) -> None:
    """Say what ``wanted`` lacks.

    Raises:
        MissingExtraError: the native library is not there, or its int8 products are not.
    """
    if not has_int8():
        raise MissingExtraError(
            f"{wanted} needs the native library with int8 inner products (AVX-512 VNNI), and this machine has none; "
            "build it with python -m kernels.build, or choose graph_mode static or incremental_exact"
        )


def device() -> str:
    """``auto``: FAISS searches on a GPU where it can, sums are propagated on the CPU; ``cpu``: neither on a GPU; ``cuda``: both.

    Raises:
        ConfigError: ``ENVSCHED_DEVICE`` names none of them.
    """
    wanted = os.environ.get("ENVSCHED_DEVICE", "auto")
    if wanted not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"ENVSCHED_DEVICE: expected auto, cpu or cuda; came {wanted!r}")
    return wanted


@cache
def num_threads() -> int:
    """Threads of native work: ``ENVSCHED_THREADS``, else ``OMP_NUM_THREADS``, else the processors this process may use."""
    for name in ("ENVSCHED_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isdigit() and int(value) > 0:
            return int(value)
    return len(os.sched_getaffinity(0))


def within_lists(vectors: np.ndarray, offsets: np.ndarray, num_slots: int) -> tuple[np.ndarray, np.ndarray]:
    """The most similar other tasks of each task's environment, exact: rows int32 [N, K] (-1: none) and weights float32 [N, K].

    Args:
        vectors: float32 [N, D], unit or zero rows on the grid of ``Features``.
        offsets: rows of each environment, int64 [M + 1].
    """
    if backend() == "native" and 0 < num_slots <= native.MAX_WITHIN:
        return native.within(vectors, offsets, num_slots, num_threads())
    return reference.within_lists(vectors, offsets, num_slots)


def cross_lists(
    vectors: np.ndarray, offsets: np.ndarray, num_slots: int, targets: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The most similar tasks of other environments, exact: rows int32 [T, K] (-1: none) and weights float32 [T, K].

    Args:
        targets: rows int64 [T]; none: all.
    """
    targets = np.arange(len(vectors)) if targets is None else targets
    return cross_search(vectors, offsets, num_slots)(targets)


def cross_search(vectors: np.ndarray, offsets: np.ndarray, num_slots: int) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """``cross_lists`` with the vectors prepared once: a function of the targets."""
    if not has_int8() or not num_slots:
        return lambda targets: reference.cross_lists(vectors, offsets, num_slots, targets)
    sizes = np.diff(offsets)
    start, stop = np.repeat(offsets[:-1], sizes), np.repeat(offsets[1:], sizes)
    codes = native.Quantised(vectors, num_threads())

    def search(targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        row, weight = native.cross(codes, start, stop, targets, num_slots, num_threads())
        return row.astype(np.int32), weight.astype(np.float32)

    return search


def reverse_lists(row: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lists [N, K] by source: pointer int64 [N + 1], target int32 [E], weight float32 [E], each source's targets ascending."""
    return native.reverse(row, weight) if backend() == "native" else reference.reverse_lists(row, weight)


def gather(row: np.ndarray, weight: np.ndarray, stats: np.ndarray) -> np.ndarray:
    """One whole propagation over lists [N, K] (-1: none): stats [N, 2] (value, mass) -> float32 [N, 2]."""
    if backend() == "native":
        return native.gather(row, weight, stats, num_threads())
    if backend() == "triton":
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
        lists = (torch.from_numpy(np.ascontiguousarray(values, kind)) for values, kind in ((row, np.int32), (weight, np.float32)))
        on_device = (*(values.to(device) for values in lists), torch.from_numpy(stats).to(device))
        return tensor_ops(on_device[0]).gather(*on_device).cpu().numpy()
    return reference.gather(row, weight, stats).astype(np.float32)


def forecast(
    offsets: np.ndarray,
    within: tuple[np.ndarray, np.ndarray] | None,
    cross: tuple[np.ndarray, np.ndarray] | None,
    columns: dict[str, np.ndarray],
    settings: dict[str, Any],
) -> dict[str, np.ndarray]:
    """What ``envsched.predict.predictor`` computes, over lists of neighbours; ``kernels.forecast`` says what goes in and out."""
    return native_forecast.forecast(offsets, within, cross, columns, settings, num_threads())


def tensor_ops(tensor: "Tensor") -> ModuleType:
    """The module that runs ``gather``, ``score`` and ``stream`` on tensors like this one: Triton's kernels for tensors of a GPU,
    or where ``ENVSCHED_BACKEND`` asks for them; plain torch for all others, and for all where it asks for torch."""
    wanted = os.environ.get("ENVSCHED_BACKEND", "auto")
    in_triton = backend() == "triton" or (wanted in ("auto", "native") and tensor.is_cuda and _runs_triton())
    return _tensor_module("triton_ops" if in_triton else "torch_ops")


@cache
def _tensor_module(name: str) -> ModuleType:
    _log.info("operations on tensors run in kernels.%s", name)
    return importlib.import_module(f"kernels.{name}")
