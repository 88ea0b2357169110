"""Filling the exploitation lane: lazy greedy over a shortlist with a certificate against the greedy over all tasks."""

from argparse import Namespace
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.measure import Figures, by_clock, main, medians
from benchmarks.worlds import cross_vectors, offsets_of, random_lists
from envsched import ops
from envsched.config import SchedulerConfig
from envsched.maintained import LargePool
from kernels import state

PICKS, PENALTY, SHORTLIST = 32, 0.08, 512


def measure(arguments: Namespace) -> Figures:
    generator = np.random.default_rng(0)
    offsets = offsets_of(arguments.tasks, arguments.environments, generator)
    vectors = cross_vectors(arguments.tasks, 128, generator)
    config = SchedulerConfig(batch_size=PICKS, coverage_share=0.0, similarity_penalty=PENALTY)
    pool = LargePool(SimpleNamespace(within=vectors, cross=vectors), offsets, random_lists(offsets, 1, 1, generator).carriers(), config)
    bounds = {
        "realistic": generator.beta(2, 8, arguments.tasks) / 4,
        "tied": np.where(generator.random(arguments.tasks) < 0.2, generator.beta(2, 8, arguments.tasks) / 4, 0.02),
        "hot": generator.beta(2, 8, arguments.tasks) / 8 + np.repeat(generator.beta(1, 12, len(offsets) - 1) / 4, np.diff(offsets)),
    }
    figures: Figures = {}
    for name, bound in bounds.items():
        figures[name] = _shape(pool, offsets, vectors, bound, arguments)
    return figures | figures["realistic"]


def _shape(pool: LargePool, offsets: np.ndarray, vectors: np.ndarray, bound: np.ndarray, arguments: Namespace) -> Figures:
    environment_of = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    made: dict[str, Any] = {}
    # The score pass hands its shortlist over; taking it from scores that lie ready is no part of filling a batch.
    order = np.argsort(-bound, kind="stable")
    sizes = np.minimum(SHORTLIST * 2 ** np.arange(12), len(bound))
    sizes = sizes[: np.argmax(sizes) + 1]
    ceilings = np.append(bound[order], -1.0)[sizes]
    rows = order[: sizes[-1]]
    best = bound[rows]

    def lazy() -> None:
        made["lazy"], made["products"], made["shortlist"] = state.greedy(
            pool.evidence.state, pool.rules.native, rows, best, sizes, ceilings
        )

    def naive() -> None:
        closeness, count, picks = np.zeros(len(bound), np.float32), np.zeros(len(offsets) - 1, int), []
        open_ = np.ones(len(bound), bool)
        for _ in range(PICKS):
            row = int(np.argmax(np.where(open_, bound - PENALTY * closeness, -np.inf)))
            picks.append(row)
            open_[row] = False
            count[environment_of[row]] += 1
            if count[environment_of[row]] == 4:
                open_[offsets[environment_of[row]] : offsets[environment_of[row] + 1]] = False
            np.maximum(closeness, np.clip(vectors @ vectors[row], 0, 1), out=closeness)
        made["naive"] = np.array(picks)

    lazy_seconds = medians({"lazy": lazy}, max(arguments.repeats, 15))
    naive_seconds = medians({"naive": naive}, 3 if arguments.tasks > 100_000 else arguments.repeats)
    measured = {clock: lazy_seconds[clock] | naive_seconds[clock] for clock in ("wall", "cpu")}
    figures = by_clock(
        measured,
        lambda s: {"select_ms": 1e3 * s["lazy"], "naive_ms": 1e3 * s["naive"], "naive_over_select": s["naive"] / s["lazy"]},
    )
    return figures | {
        "select_equals_naive": bool(np.array_equal(made["lazy"], made["naive"])),
        "shortlist": made["shortlist"],
        "inner_products": made["products"],
        "threads": ops.num_threads(),
    }


if __name__ == "__main__":
    main("benchmarks.select", measure, tasks=25_000, environments=500)
