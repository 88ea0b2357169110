"""How a step of a large pool grows with its size: step, copy of the state and scatter, from 2,500 tasks to --tasks."""

from argparse import Namespace

from benchmarks.measure import Figures, main, medians
from benchmarks.step import STEPS, World
from kernels import native

SIZES = (2_500, 25_000, 250_000, 1_000_000, 4_000_000, 10_000_000)
TASKS_EACH = 50  # of an environment


def measure(arguments: Namespace) -> Figures:
    rows = [_row(size, arguments) for size in SIZES if size <= arguments.tasks]
    print(f"  {'tasks':>10} {'environments':>12} {'step ms':>8} {'copy ms':>8} {'ratio':>6} {'scatter us':>10} {'certified':>9}")
    for row in rows:
        print(
            f"  {row['tasks']:10} {row['environments']:12} {row['step_ms']:8.3f} {row['copy_ms']:8.3f} {row['step_over_copy']:6.2f} "
            f"{row['scatter_us']:10.1f} {row['certified_share']:9.2f}"
        )
    return {"growth": {str(row["tasks"]): row for row in rows}}


def _row(num_tasks: int, arguments: Namespace) -> Figures:
    world = World(num_tasks, max(51, num_tasks // TASKS_EACH), arguments.features)
    measured = world.measure_step(max(arguments.repeats, STEPS))
    sums, peak = world.pool.evidence.sums.copy(), world.pool.evidence.peak.copy()

    def scatter() -> None:
        source, mass = world.generator.integers(num_tasks, size=64), world.generator.random(64)
        for carrier in world.pool.evidence.carriers:
            native.scatter(sums, peak, carrier.reversed, carrier.relation, source, mass, mass)

    seconds = medians({"scatter": scatter}, 101)
    figures = {
        clock: {"step_ms": 1e3 * s["step"], "copy_ms": 1e3 * s["copy"], "step_over_copy": s["step"] / s["copy"]}
        for clock, s in measured["seconds"].items()
    }
    return figures["wall"] | {
        "tasks": num_tasks,
        "environments": len(world.offsets) - 1,
        "scatter_us": 1e6 * seconds["wall"]["scatter"],
        "certified_share": measured["certified_share"],
        "state_bytes_per_task": world.pool.evidence.nbytes / num_tasks,
        "cpu": figures["cpu"] | {"scatter_us": 1e6 * seconds["cpu"]["scatter"]},
    }


if __name__ == "__main__":
    main("benchmarks.growth", measure, tasks=1_000_000, environments=0, features=8)
