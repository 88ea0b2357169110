"""``select`` and ``observe`` of the real ``EnvScheduler`` on a running history: all that a training step asks of it."""

import time
from argparse import Namespace
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from benchmarks.measure import Figures, main
from benchmarks.worlds import cross_vectors, offsets_of, solve_rates, within_vectors
from envsched.features import Features
from envsched.pool import Pool
from envsched.scheduler import EnvScheduler
from envsched.types import Batch, Environment, RolloutRecord, Status, Task

WARM = 40  # steps before any is timed
Value = TypeVar("Value")


class Run:
    """A scheduler and the learner that it schedules, step by step."""

    def __init__(self, num_tasks: int, num_environments: int, num_features: int) -> None:
        self.generator = np.random.default_rng(0)
        offsets = offsets_of(num_tasks, num_environments, self.generator)
        keys = np.repeat(np.arange(num_environments), np.diff(offsets)).tolist()
        self.pool = Pool(
            [Environment(key=f"e{e:07d}") for e in range(num_environments)],
            [Task(key=f"t{row:08d}", environment=f"e{e:07d}") for row, e in enumerate(keys)],
        )
        features = Features(
            within_vectors(offsets, num_features, self.generator),
            cross_vectors(num_tasks, num_features, self.generator),
            self.pool.fingerprint,
        )
        self.solved = solve_rates(offsets, self.generator)
        self.scheduler = EnvScheduler(self.pool, features=features)
        self.step = 0

    def advance(self) -> dict[str, float]:
        """One step; milliseconds of each verb, by the processor time of this thread and by the wall clock."""
        batch, select = _timed(lambda: self.scheduler.select(self.step))
        records = self.rollouts(batch)
        _, observe = _timed(lambda: self.scheduler.observe(records))
        self.step += 1
        return {f"{verb}_{clock}": ms for verb, by_clock in (("select", select), ("observe", observe)) for clock, ms in by_clock.items()}

    @property
    def num_observed(self) -> int:
        return len(np.unique(self.scheduler.history.visits.row))

    def rollouts(self, batch: Batch) -> list[RolloutRecord]:
        rows = [self.pool.row_of(task) for task in batch.tasks]
        passed = self.generator.binomial(1, self.solved[rows, None].repeat(8, 1)).astype(float).tolist()
        return [
            RolloutRecord(task, self.step, tuple(rewards), (Status.OK,) * 8, self.step)
            for task, rewards in zip(batch.tasks, passed, strict=True)
        ]


def _timed(verb: Callable[[], Value]) -> tuple[Value, dict[str, float]]:
    wall, cpu = time.perf_counter(), time.thread_time()
    value = verb()
    return value, {"cpu": 1e3 * (time.thread_time() - cpu), "wall": 1e3 * (time.perf_counter() - wall)}


def measure(arguments: Namespace) -> Figures:
    run = Run(arguments.tasks, arguments.environments, arguments.features)
    for _ in range(WARM):
        run.advance()
    steps = [run.advance() for _ in range(max(arguments.repeats, 15))]
    median = {name: float(np.median([step[name] for step in steps])) for name in steps[0]}

    def figures(clock: str) -> Figures:
        select, observe = median[f"select_{clock}"], median[f"observe_{clock}"]
        return {"select_ms": select, "observe_ms": observe, "select_and_observe_ms": select + observe}

    return figures("wall") | {"cpu": figures("cpu"), "graph_mode": run.scheduler.graph_header["mode"], "observed_tasks": run.num_observed}


if __name__ == "__main__":
    main("benchmarks.scheduler", measure, tasks=100_000, environments=2_000, features=128)
