"""Building neighbours: the exact native builds against a matrix product of the same size and against FAISS."""

import itertools
from argparse import Namespace

import numpy as np
import torch

from benchmarks.measure import Figures, by_clock, main, medians, merge
from benchmarks.worlds import cross_vectors, offsets_of, within_vectors
from envsched import ops
from envsched.graph.index import load_faiss, nearest
from kernels import native

WITHIN_FEATURES, CROSS_FEATURES, NUM_WITHIN, NUM_CROSS = 384, 128, 6, 12


def measure(arguments: Namespace) -> Figures:
    torch.set_num_threads(ops.num_threads())
    load_faiss()
    generator = np.random.default_rng(0)
    offsets = offsets_of(arguments.tasks, arguments.environments, generator)
    within = _within(offsets, within_vectors(offsets, WITHIN_FEATURES, generator), arguments.repeats)
    return merge(within, _cross(offsets, cross_vectors(arguments.tasks, CROSS_FEATURES, generator), arguments))


def _within(offsets: np.ndarray, vectors: np.ndarray, repeats: int) -> Figures:
    sizes = np.diff(offsets).astype(np.float64)
    flops = 2 * WITHIN_FEATURES * float(sizes @ sizes)
    left, right = torch.rand(2048, WITHIN_FEATURES), torch.rand(WITHIN_FEATURES, 2048)
    product_flops = 2 * WITHIN_FEATURES * 2048 * 2048
    lists: dict[str, np.ndarray] = {}

    def ours() -> None:
        lists["ours"] = native.within(vectors, offsets, NUM_WITHIN, ops.num_threads())[0]

    def by_faiss() -> None:
        for start, stop in itertools.pairwise(offsets.tolist()):
            nearest(vectors[start:stop], vectors[start:stop], min(NUM_WITHIN + 1, stop - start))

    def product() -> None:
        for _ in range(10):
            left @ right

    measured = medians({"ours": ours, "faiss": by_faiss, "product": product}, repeats)
    identical = _within_identical(offsets, vectors, lists["ours"])
    return by_clock(
        measured,
        lambda s: {
            "within_seconds": s["ours"],
            "within_over_gemm": s["ours"] / (flops / (10 * product_flops / s["product"])),
            "faiss_over_within": s["faiss"] / s["ours"],
        },
    ) | {"within_neighbours_identical": identical}


def _within_identical(offsets: np.ndarray, vectors: np.ndarray, row: np.ndarray) -> bool:
    """Lists of 200 environments against float64."""
    same = True
    for e in np.random.default_rng(1).choice(len(offsets) - 1, min(200, len(offsets) - 1), replace=False):
        start, stop = offsets[e], offsets[e + 1]
        mine = vectors[start:stop].astype(np.float64)
        similarity = mine @ mine.T
        np.fill_diagonal(similarity, -1)
        kept = min(NUM_WITHIN, stop - start - 1)
        expected = np.argsort(-similarity, axis=1, kind="stable")[:, :kept] + start
        positive = np.take_along_axis(similarity, expected - start, axis=1) > 0
        same &= bool(np.array_equal(row[start:stop, :kept][positive], expected[positive]))
    return same


def _cross(offsets: np.ndarray, vectors: np.ndarray, arguments: Namespace) -> Figures:
    generator = np.random.default_rng(2)
    targets = np.sort(generator.choice(len(vectors), min(arguments.queries, len(vectors)), replace=False))
    sizes = np.diff(offsets)
    start, stop = np.repeat(offsets[:-1], sizes), np.repeat(offsets[1:], sizes)
    codes = native.Quantised(vectors, ops.num_threads())
    found: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def ours() -> None:
        found["ours"] = native.cross(codes, start, stop, targets, NUM_CROSS, ops.num_threads())

    def by_faiss() -> None:
        found["faiss"] = nearest(vectors[targets], vectors, min(2 * NUM_CROSS, len(vectors)))

    measured = medians({"ours": ours, "faiss": by_faiss}, max(3, arguments.repeats // 2) if len(vectors) > 300_000 else arguments.repeats)
    quantise = medians({"quantise": lambda: native.Quantised(vectors, ops.num_threads())}, 3)["wall"]["quantise"]
    figures = by_clock(
        measured,
        lambda s: {
            "cross_seconds_per_query": s["ours"] / len(targets),
            "faiss_over_cross": s["faiss"] / s["ours"],
        },
    )
    full = quantise + measured["wall"]["ours"] / len(targets) * len(vectors)
    return figures | {
        "cross_queries": len(targets),
        "quantise_seconds": quantise,
        "cross_build_seconds_extrapolated": full,
        "cross_neighbours_identical": _cross_identical(vectors, targets, start, stop, found["ours"][0], found["faiss"][1]),
    }


def _cross_identical(vectors, targets, start, stop, ours: np.ndarray, fetched: np.ndarray) -> bool:
    """Sets of neighbours against FAISS's over-fetch, scored exactly; queries that its float32 order leaves open count by score."""
    same = True
    for target, mine, theirs in zip(targets, ours, fetched, strict=True):
        theirs = theirs[(theirs < start[target]) | (theirs >= stop[target])]
        score = vectors[theirs].astype(np.float64) @ vectors[target].astype(np.float64)
        best = theirs[np.lexsort((theirs, -score))][:NUM_CROSS]
        if set(best.tolist()) != set(mine.tolist()):
            other = vectors[mine].astype(np.float64) @ vectors[target].astype(np.float64)
            same &= bool(other.min() >= np.sort(score)[::-1][:NUM_CROSS].min())
    return same


if __name__ == "__main__":
    main("benchmarks.graph", measure, tasks=25_000, environments=500, queries=4096)
