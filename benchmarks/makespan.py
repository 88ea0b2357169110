"""How much sooner a batch ends when rollouts that will be long start first: recorded token counts on an engine with W slots.

Usage: python -m benchmarks.makespan RUN/rollouts [--pool bundled] [--slots 8,16,32] [--from-step 5] [--json makespan.json]

The step_N.jsonl of a training run hold the tokens of every rollout. Each step is scheduled again, one token a unit of time, in five
orders of tasks, the G rollouts of a task side by side: at random (mean of 20), as picked, by environment with the longest first as
training does it (LengthForecast on the steps before), by that forecast alone, and by the tasks' true means, which nobody knows
beforehand. Reported: the mean over steps of makespan divided by what no order can undercut, and the gain over random, with 95%
intervals over steps. Letters: G rollouts of a task, W slots.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from envsched.files import write_json
from envsched.history import read_records
from envsched.pool.opening import open_pool
from envsched.simulate.intervals import Interval, interval
from envsched.simulate.makespan import makespan, shortest_makespan
from envsched.train.ordering import LengthForecast
from envsched.types import RolloutRecord

ORDERS = ("random", "as picked", "by environment, longest first", "longest predicted first", "longest first")
SHUFFLES = 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rollouts", type=Path, help="folder of step_N.jsonl")
    parser.add_argument("--pool", default="bundled", help="the pool that they belong to")
    parser.add_argument("--slots", default="8,16,32", help="rollouts that an engine writes at once")
    parser.add_argument("--from-step", type=int, default=5, help="first step that counts: before it the forecast has seen little")
    parser.add_argument("--json", type=Path, help="write the figures as JSON as well")
    options = parser.parse_args()
    files = sorted(options.rollouts.glob("step_*.jsonl"), key=lambda path: int(path.stem.split("_")[1]))
    steps = [read_records(path)[0] for path in files]
    forecast = LengthForecast(open_pool(options.pool))
    slots = [int(count) for count in options.slots.split(",")]
    found = list(measure(steps, forecast, slots, options.from_step))
    rows = summarise(found, slots)
    print("\n".join(table(rows)))
    if options.json is not None:
        write_json(options.json, {"steps": len(found), "rows": rows})
    return 0


def measure(
    steps: Sequence[Sequence[RolloutRecord]], forecast: LengthForecast, slots: Sequence[int], first: int
) -> Iterator[dict[int, dict[str, float]]]:
    """By step from ``first`` on, W -> order -> makespan over what no order can undercut."""
    rng = np.random.Generator(np.random.Philox(key=[0, 23]))
    for place, records in enumerate(steps):
        tokens = {record.task: record.tokens for record in records if record.tokens}
        if place >= first:
            yield {count: _ratios(tokens, forecast, count, rng) for count in slots}
        forecast.observe(records)


def _ratios(tokens: dict[str, tuple[int, ...]], forecast: LengthForecast, slots: int, rng: np.random.Generator) -> dict[str, float]:
    def ratio(order: Iterable[str]) -> float:
        return makespan([length for task in order for length in tokens[task]], slots) / best

    picked = list(tokens)
    best = shortest_makespan([length for task in picked for length in tokens[task]], slots)
    return {
        "random": float(np.mean([ratio(rng.permutation(picked)) for _ in range(SHUFFLES)])),
        "as picked": ratio(picked),
        "by environment, longest first": ratio(forecast.order(picked)),
        "longest predicted first": ratio(sorted(picked, key=forecast.tokens, reverse=True)),
        "longest first": ratio(sorted(picked, key=lambda task: np.mean(tokens[task]), reverse=True)),
    }


def summarise(found: Sequence[dict[int, dict[str, float]]], slots: Sequence[int]) -> list[dict[str, object]]:
    """A row for each W and order: ``ratio`` and ``gain`` over random (a share of random's makespan), with intervals."""
    rows: list[dict[str, object]] = []
    for count in slots:
        for order in ORDERS:
            ratio = interval([step[count][order] for step in found])
            gain = interval([1 - step[count][order] / step[count]["random"] for step in found])
            rows.append({"slots": count, "order": order, "ratio": ratio, "gain": gain})
    return rows


def table(rows: Sequence[dict]) -> list[str]:
    """The rows as a Markdown table."""
    lines = ["| slots | order | makespan over the least possible | sooner than random |", "|---|---|---|---|"]
    return lines + [f"| {row['slots']} | {row['order']} | {_cell(row['ratio'], '.3f')} | {_cell(row['gain'], '.1%')} |" for row in rows]


def _cell(found: Interval, style: str) -> str:
    return f"{found['mean']:{style}} [{found['low']:{style}}, {found['high']:{style}}]"


if __name__ == "__main__":
    sys.exit(main())
