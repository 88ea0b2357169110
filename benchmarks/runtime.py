"""Speed of the runtime on the bundled pool: ``python -m benchmarks.runtime [--json FILE]``.

The rollouts are 512 over the pool's tasks, each with 20 calls of its reference actions, over two workers, all in flight at once.

``call_overhead_ms``: median of a call through the runtime minus the median of the same calls made directly, one at a time.
``calls_per_second``: 512 x 20 over the wall clock of the calls alone, from the first sent to the last observation.
``calls_per_second_with_start_and_score``: the same 512 x 20 over the wall clock of everything: 512 processes made behind all walls,
environments constructed, calls, all checks run, processes let go. ``_cold``: with workers that have compiled nothing yet.
``over_direct``: that wall clock over that of the same rollouts run directly in one process.
``cpu_ms_per_rollout``: processor time of everything, trainer, workers and episodes together, over 512: what a machine that others use
changes less than wall clocks. ``calls_per_second_of_two_free_cores``: 512 x 20 over half of that time.
"""

import argparse
import itertools
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from envsched.files import write_json
from envsched.pool import Pool
from envsched.runtime import EnvironmentRuntime
from envsched.runtime.worker.compiling import compile_in_fork
from envsched.runtime.worker.instance import Blueprint, Instance
from envsched.types import Task

NUM_ROLLOUTS, NUM_CALLS, NUM_LATENCIES = 512, 20, 4000
Call = tuple[str, dict[str, Any]]


def measure() -> dict[str, Any]:
    """All figures; about ten seconds."""
    pool = Pool.bundled()
    solutions = json.loads((Path(__file__).parent.parent / "envsched/pool/bundled/solutions.json").read_text())
    plan = [(task, _calls(solutions[task.key])) for task in itertools.islice(itertools.cycle(pool.tasks), NUM_ROLLOUTS)]
    blueprints = {task.key: _blueprint(pool, task) for task in pool.tasks}
    direct_seconds = _timed(lambda: _run_directly(blueprints, plan))
    cold_cpu, _ = _processor_seconds(pool, lambda runtime: _run_through(runtime, plan))
    both_cpu, passes = _processor_seconds(pool, lambda runtime: [_run_through(runtime, plan) for _ in range(2)])
    (cold_seconds, _), (whole_seconds, call_seconds) = passes
    with EnvironmentRuntime(pool, num_workers=2) as runtime:
        through, direct = _latencies(runtime, blueprints, plan[: NUM_LATENCIES // NUM_CALLS])
        walls = list(runtime.protections.standing)
    return {
        "call_overhead_ms": (statistics.median(through) - statistics.median(direct)) * 1e3,
        "call_ms_median": statistics.median(through) * 1e3,
        "call_ms_p99": statistics.quantiles(through, n=100)[98] * 1e3,
        "calls_per_second": NUM_ROLLOUTS * NUM_CALLS / call_seconds,
        "calls_per_second_with_start_and_score": NUM_ROLLOUTS * NUM_CALLS / whole_seconds,
        "calls_per_second_with_start_and_score_cold": NUM_ROLLOUTS * NUM_CALLS / cold_seconds,
        "over_direct": whole_seconds / direct_seconds,
        "cpu_ms_per_rollout": (both_cpu - cold_cpu) / NUM_ROLLOUTS * 1e3,
        "calls_per_second_of_two_free_cores": 2 * NUM_ROLLOUTS * NUM_CALLS / (both_cpu - cold_cpu),
        "rollouts": NUM_ROLLOUTS,
        "calls_per_rollout": NUM_CALLS,
        "protections": walls,
        "machine": f"{os.cpu_count()} x {platform.machine()}",
        "load": os.getloadavg()[0],
    }


def _calls(actions: list[dict[str, Any]]) -> list[Call]:
    """A task's reference actions over and over, up to the number of calls."""
    steps = [(action["name"], action["arguments"]) for action in actions]
    return list(itertools.islice(itertools.cycle(steps), NUM_CALLS))


def _blueprint(pool: Pool, task: Task) -> Blueprint:
    environment = pool.environment(task.environment)
    code, *checks = compile_in_fork([environment.source, *(check.source for check in task.checks)], memory_mb=512)
    return Blueprint(code, environment.class_name, json.dumps(task.initial_state), checks, reads_initial_state=True)


def _run_directly(blueprints: dict[str, Blueprint], plan: list[tuple[Task, list[Call]]]) -> None:
    for task, calls in plan:
        instance = Instance(blueprints[task.key], 16_000)
        for tool, arguments in calls:
            instance.call(tool, arguments)
        instance.score(None, empty=False)


def _processor_seconds(pool: Pool, work: Callable[[EnvironmentRuntime], Any]) -> tuple[float, Any]:
    """Of this process and all that a runtime starts, with what ``work`` gives; the difference of two has no start of workers in it."""
    before = os.times()
    with EnvironmentRuntime(pool, num_workers=2) as runtime:
        result = work(runtime)
    after = os.times()
    return sum(after[:4]) - sum(before[:4]), result


def _run_through(runtime: EnvironmentRuntime, plan: list[tuple[Task, list[Call]]]) -> tuple[float, float]:
    """Seconds of everything, and of the calls alone."""
    began = time.perf_counter()
    episodes = runtime.start_many([task.key for task, _ in plan], seeds=list(range(len(plan))))
    called = time.perf_counter()
    for turn in range(NUM_CALLS):
        observations = runtime.call_many([(episode, *calls[turn]) for episode, (_, calls) in zip(episodes, plan, strict=True)])
        assert all(observation.ok for observation in observations)
    scored = time.perf_counter()
    runtime.score_many(episodes)
    for episode in episodes:
        episode.close()
    return time.perf_counter() - began, scored - called


def _latencies(
    runtime: EnvironmentRuntime, blueprints: dict[str, Blueprint], plan: list[tuple[Task, list[Call]]]
) -> tuple[list[float], list[float]]:
    """Seconds of single calls, through the runtime and directly."""
    through, direct = [], []
    for task, calls in plan:
        instance = Instance(blueprints[task.key], 16_000)
        with runtime.start(task.key, seed=0) as episode:
            for tool, arguments in calls:
                through.append(_timed(lambda tool=tool, arguments=arguments, episode=episode: episode.call(tool, arguments)))
                direct.append(_timed(lambda tool=tool, arguments=arguments, instance=instance: instance.call(tool, arguments)))
    return through, direct


def _timed(action: Any) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures there too")
    arguments = parser.parse_args()
    figures = measure()
    for name, figure in figures.items():
        print(f"{name:44} {figure:.4g}" if isinstance(figure, float) else f"{name:44} {figure}")
    if arguments.json:
        write_json(arguments.json, figures)


if __name__ == "__main__":
    main()
