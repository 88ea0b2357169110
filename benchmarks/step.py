"""A whole step of a large pool (ingest 64 x 8, scatter, score, select) against one copy of its state and one propagation.

``--residuals 1``: under the residual prior, not the pooled one. ``--checks``: rewards are shares of so many checks; with one they are
0 or 1, and the pool's mean variance is .16, with five .032, as published.
"""

import json
import tempfile
import time
from argparse import Namespace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import scipy.sparse
import torch

from benchmarks.measure import Figures, by_clock, main, medians, merge
from benchmarks.worlds import cross_vectors, offsets_of, random_lists, solve_rates, within_vectors
from envsched import ops
from envsched.config import SchedulerConfig
from envsched.files import write_json
from envsched.maintained import LargePool, StaticLists
from envsched.predict import HistoryPropagation
from kernels import native

LARGEST_PEER = 2_000_000  # tasks up to which 18 N messages fit in memory
WARM, SMALL, SMALL_ENVIRONMENTS = 40, 25_000, 500
STEPS = 61  # a plateau of equal scores lasts some ten steps: fewer would show it alone, or nothing of it


class World:
    """A pool that has run for 40 steps, and its learner, whose rewards are shares of ``checks`` that pass."""

    def __init__(self, num_tasks: int, num_environments: int, num_features: int, prior: str = "auto", checks: int = 1) -> None:
        self.generator = np.random.default_rng(0)
        self.offsets = offsets_of(num_tasks, num_environments, self.generator)
        vectors = SimpleNamespace(
            within=within_vectors(self.offsets, num_features, self.generator), cross=cross_vectors(num_tasks, num_features, self.generator)
        )
        self.lists: StaticLists = random_lists(self.offsets, 6, 12, self.generator)
        self.pool = LargePool(vectors, self.offsets, self.lists.carriers(), SchedulerConfig(prior=prior))
        self.checks = checks
        self.solved = solve_rates(self.offsets, self.generator)
        self.step = 0
        self.selection = self.pool.select(0)
        self.rewards = self.rollouts()
        for _ in range(WARM):
            self.advance()
            self.rewards = self.rollouts()

    def rollouts(self) -> np.ndarray:
        return self.generator.binomial(self.checks, self.solved[self.selection.rows, None].repeat(8, 1)) / self.checks

    def advance(self) -> None:
        """What is timed: the rewards of the batch go in, the next batch comes out."""
        self.pool.observe(self.step, self.selection.rows, self.rewards)
        self.step += 1
        self.selection = self.pool.select(self.step)

    def measure_step(self, repeats: int) -> Figures:
        """Median seconds of a step and of a copy of the hot state, in turns, by both clocks, and what nine steps in ten take at most;
        the share of certified batches."""
        seconds: dict[str, dict[str, list[float]]] = {clock: {"step": [], "copy": []} for clock in ("wall", "cpu")}
        certified = 0
        state, copy = (np.ones(self.pool.evidence.nbytes, np.uint8) for _ in range(2))  # written: pages of zeros would be one page
        for _ in range(repeats):
            self.rewards = self.rollouts()
            for name, function in (("step", self.advance), ("copy", partial(np.copyto, copy, state))):
                wall, cpu = time.perf_counter(), time.thread_time()
                function()
                seconds["cpu"][name].append(time.thread_time() - cpu)
                seconds["wall"][name].append(time.perf_counter() - wall)
            certified += self.selection.certified
        medians_of = {clock: {name: float(np.median(values)) for name, values in by_name.items()} for clock, by_name in seconds.items()}
        for clock, by_name in seconds.items():
            medians_of[clock]["slow"] = float(np.quantile(by_name["step"], 0.9))
        return {"seconds": medians_of, "certified_share": certified / repeats}


def measure(arguments: Namespace) -> Figures:
    torch.set_num_threads(ops.num_threads())
    prior = "residual" if arguments.residuals else "pooled"
    world = World(arguments.tasks, arguments.environments, arguments.features, prior, arguments.checks)
    step = _step(world, arguments)
    return merge(
        step,
        {} if arguments.tasks > LARGEST_PEER else _propagations(world, 3 if arguments.tasks > 100_000 else arguments.repeats),
        _scatter(world, arguments),
        _stream(arguments),
    )


def _step(world: World, arguments: Namespace) -> Figures:
    measured = world.measure_step(max(arguments.repeats, STEPS))
    world.measured = measured["seconds"]
    figures = by_clock(
        world.measured,
        lambda s: {
            "step_ms": 1e3 * s["step"],
            "slow_step_ms": 1e3 * s["slow"],
            "copy_ms": 1e3 * s["copy"],
            "step_over_copy": s["step"] / s["copy"],
        },
    )
    return figures | {
        "certified_share": measured["certified_share"],
        "state_bytes_per_task": world.pool.evidence.nbytes / arguments.tasks,
        "manifest_ms": _manifest(world),
    }


def _manifest(world: World) -> float:
    """Milliseconds to write the batch as JSON, fsync included: outside the step."""
    picks = [{"row": int(row), "lane": lane.value} for row, lane in zip(world.selection.rows, world.selection.lanes, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        return (
            1e3 * medians({"write": lambda: write_json(Path(folder) / "manifest.json", json.loads(json.dumps(picks)))}, 7)["wall"]["write"]
        )


def _propagations(world: World, repeats: int) -> Figures:
    """One forward of the PyG layer and one scipy product over the same 18 neighbours, two channels."""
    num_tasks = len(world.solved)
    row = np.concatenate([world.lists.within_row, world.lists.cross_row], axis=1)
    weight = np.concatenate([world.lists.within_weight, world.lists.cross_weight], axis=1)
    target, slot = np.nonzero(row >= 0)
    source = row[target, slot]
    edge_index = torch.from_numpy(np.stack([source, target]).astype(np.int64))
    edge_weight = torch.from_numpy(weight[target, slot])
    x, mass = torch.rand(num_tasks), torch.rand(num_tasks)
    layer = HistoryPropagation()
    matrix = scipy.sparse.csr_matrix((weight[target, slot], (target, source)), shape=(num_tasks, num_tasks))
    stats = np.stack([x.numpy() * mass.numpy(), mass.numpy()], axis=1)

    def pyg() -> None:
        with torch.no_grad():
            layer(x, mass, edge_index, edge_weight)

    measured = medians({"pyg": pyg, "scipy": lambda: matrix @ stats, "gather": lambda: ops.gather(row, weight, stats)}, repeats)
    for clock in measured:
        measured[clock] |= world.measured[clock]
    return by_clock(
        measured,
        lambda s: {
            "pyg_ms": 1e3 * s["pyg"],
            "scipy_ms": 1e3 * s["scipy"],
            "native_propagation_ms": 1e3 * s["gather"],
            "speedup_over_pyg": s["pyg"] / s["step"],
            "speedup_over_scipy": s["scipy"] / s["step"],
        },
    )


def _scatter(world: World, arguments: Namespace) -> Figures:
    """64 updates through both reversed relations, here and in a pool of 25,000; each repeat takes other sources."""
    small = World(SMALL, SMALL_ENVIRONMENTS, arguments.features)

    def scatter(one: World):
        num_tasks = len(one.solved)

        def run() -> None:
            source = (
                one.generator.choice(num_tasks, 64, replace=False) if num_tasks < 100_000 else one.generator.integers(num_tasks, size=64)
            )
            mass = one.generator.random(64)
            for carrier in one.pool.evidence.carriers:
                native.scatter(sums[id(one)], peaks[id(one)], carrier.reversed, carrier.relation, source, mass, mass)

        return run

    sums = {id(one): one.pool.evidence.sums.copy() for one in (world, small)}
    peaks = {id(one): one.pool.evidence.peak.copy() for one in (world, small)}
    measured = medians({"large": scatter(world), "small": scatter(small)}, 101)
    return by_clock(measured, lambda s: {"scatter_us": 1e6 * s["large"], "scatter_growth": s["large"] / s["small"]})


def _stream(arguments: Namespace) -> Figures:
    """The stream of graph_mode kernel: 64 observations to all tasks, 128 features, against one copy of the codes."""
    generator = np.random.default_rng(3)
    num_tasks = min(arguments.tasks, arguments.stream)
    codes = native.Quantised(cross_vectors(num_tasks, 128, generator), ops.num_threads())
    source, change = generator.choice(num_tasks, 64, replace=False), generator.random(64)
    sums, copy = np.zeros((num_tasks, 4), np.float32), np.empty_like(codes.codes)
    peak = np.zeros(num_tasks // native.BLOCK_ROWS + 1, np.float32)

    def stream() -> None:
        native.stream(codes, *codes.codes_of(source), change, change, source, source + 1, 0.5, sums, peak, ops.num_threads())

    measured = medians({"stream": stream, "copy": lambda: np.copyto(copy, codes.codes)}, arguments.repeats)
    return by_clock(measured, lambda s: {"kernel_update_ms": 1e3 * s["stream"], "kernel_update_over_copy": s["stream"] / s["copy"]}) | {
        "kernel_bytes_per_task": codes.nbytes / num_tasks + 4 * 4 + 4
    }


if __name__ == "__main__":
    main("benchmarks.step", measure, tasks=25_000, environments=500, features=128, stream=1_000_000, residuals=0, checks=1)
