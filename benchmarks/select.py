"""Filling the exploitation lane: lazy greedy over a shortlist with a certificate against the greedy over all tasks."""

from argparse import Namespace
from types import SimpleNamespace

import numpy as np

from benchmarks.measure import Figures, by_clock, main, medians
from benchmarks.worlds import cross_vectors, offsets_of, random_lists
from envsched import ops
from envsched.config import SchedulerConfig
from envsched.maintained import LargePool
from kernels import native

PICKS, PENALTY, SHORTLIST = 32, 0.08, 1024


def measure(arguments: Namespace) -> Figures:
    generator = np.random.default_rng(0)
    offsets = offsets_of(arguments.tasks, arguments.environments, generator)
    vectors = cross_vectors(arguments.tasks, 128, generator)
    carriers = random_lists(offsets, 1, 1, generator).carriers()
    pool = LargePool(SimpleNamespace(within=vectors, cross=vectors), offsets, carriers, SchedulerConfig(coverage_share=0.0))
    pool.observe(0, generator.choice(arguments.tasks, 64, replace=False), generator.random((64, 8)))
    pool.predict(1)
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
    window, quotas = np.zeros(len(offsets) - 1, np.int32), np.array([2, 11, 4, 3])
    nobody = np.empty(0, np.int64)
    made: dict[str, object] = {}

    def lazy() -> None:
        size, wanted, picks = SHORTLIST, PICKS, []
        with native.Filling(pool.evidence.state, quotas, window, window, nobody, nobody, PICKS, vectors, vectors) as filling:
            while wanted:
                rows, ceiling = shortlists[size]
                chosen, _, _, dots = filling.exploit(rows, bound[rows], bound[rows], PENALTY, ceiling, wanted, False)
                picks.append(chosen)
                wanted, size = wanted - len(chosen), size * 4
        made["lazy"], made["size"], made["dots"] = np.concatenate(picks), size // 4, dots

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

    # The score pass hands its shortlist over; taking it from scores that lie ready is no part of filling a batch.
    order, shortlists, size = np.argsort(-bound, kind="stable"), {}, SHORTLIST
    while size // 4 < len(bound):
        shortlists[size] = (order[:size], float(bound[order[size]]) if size < len(bound) else -1.0)
        size *= 4
    lazy_seconds = medians({"lazy": lazy}, max(arguments.repeats, 15))
    naive_seconds = medians({"naive": naive}, 3 if arguments.tasks > 100_000 else arguments.repeats)
    measured = {clock: lazy_seconds[clock] | naive_seconds[clock] for clock in ("wall", "cpu")}
    figures = by_clock(
        measured,
        lambda s: {"select_ms": 1e3 * s["lazy"], "naive_ms": 1e3 * s["naive"], "naive_over_select": s["naive"] / s["lazy"]},
    )
    return figures | {
        "select_equals_naive": bool(np.array_equal(made["lazy"], made["naive"])),
        "shortlist": made["size"],
        "inner_products": made["dots"],
        "threads": ops.num_threads(),
    }


if __name__ == "__main__":
    main("benchmarks.select", measure, tasks=25_000, environments=500)
