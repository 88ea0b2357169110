"""Do neighbours carry evidence? The reward variance of a task against that of its neighbours, and of as many random tasks.

Usage: python -m benchmarks.neighbours rollouts.jsonl.gz [--prompts prompts.jsonl.gz] [--pool POOL] [--out neighbours.json]
       python -m benchmarks.neighbours --simulated LEARNER

Rollouts are JSON lines with rewards and either environment, task_id and policy (recorded benchmarks: only the text of a prompt tells
tasks apart) or task and step (a run's rollouts; give its --pool, and topologies join in). Letters: N tasks, P policies, K neighbours.

For each policy (or step) and each task i with a variance v_i over its own rollouts, the estimate is the mean of v over its K
most similar tasks in the relation, among tasks that the same policy tried. Compared with it is the mean over K random tasks of the
same relation. Reported are the mean over policies of Spearman's correlation between v_i and the estimate, and its difference to the
random one's, with 95% intervals from a bootstrap over tasks: a task is drawn with all its policies, as policies share tasks.
"""

import argparse
import gzip
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from envsched.config import FeatureConfig
from envsched.features import build_features
from envsched.files import write_json
from envsched.pool import Pool
from envsched.pool.opening import open_pool
from envsched.simulate.calibration import load_kind
from envsched.simulate.intervals import interval
from envsched.simulate.runs import Setting, make_learner
from envsched.types import Environment, Task

NEIGHBOURS = {"within": 6, "cross": 12}
WHERE = {"within an environment": "within", "across environments": "cross"}
MIN_TASKS = 20  # a policy that tried fewer tells nothing
DRAWS = 1000
WORLDS, WORLD_ENVIRONMENTS, GROUP_SIZE = 8, 17, 8  # of the simulator
RANDOM_SETS = 10  # of random tasks, averaged over in the correlation, not in the estimate


@dataclass(frozen=True)
class Cells:
    """What is measured on: the pool and, for each policy, rows [n] and variances [n] of the tasks it tried."""

    pool: Pool
    policies: dict[str, tuple[np.ndarray, np.ndarray]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rollouts", type=Path, nargs="?")
    parser.add_argument(
        "--simulated", metavar="LEARNER", help="ask the simulator's learner (slow, ...; those of envsched.simulate) in place of rollouts"
    )
    parser.add_argument("--prompts", type=Path, help="JSON lines of task_id and prompt, where the rollouts hold none")
    parser.add_argument("--pool", help="the pool that a run's rollouts belong to")
    parser.add_argument("--encoder", default="auto", help="text encoder, as in features.encoder")
    parser.add_argument("--out", type=Path, help="write the table as JSON as well")
    options = parser.parse_args()
    if (options.rollouts is None) == (options.simulated is None):
        parser.error("give a file of rollouts or --simulated LEARNER, one of the two")
    if options.simulated is not None:
        rows = measure_simulated(options.simulated)
    else:
        cells = read_cells(options.rollouts, options.prompts, options.pool)
        rows = measure(cells, options.encoder, has_topologies=options.pool is not None)
    print("\n".join(table(rows)))
    if options.out is not None:
        asked = {"simulated": options.simulated} if options.rollouts is None else {"rollouts": options.rollouts.name}
        write_json(options.out, {**asked, "encoder": options.encoder, "rows": rows})
    return 0


def read_cells(path: Path, prompts: Path | None, pool: str | None) -> Cells:
    """Group rollouts by policy and task; a cell needs two rewards."""
    rewards: dict[tuple[str, str], list[float]] = {}
    tasks: dict[str, Task] = {}
    texts = {line["task_id"]: line["prompt"] for line in _lines(prompts)} if prompts else {}
    for line in _lines(path):
        key, policy = (line["task"], f"step {line['step']}") if pool else (line["task_id"], line["policy"])
        rewards.setdefault((policy, key), []).extend(float(reward) for reward in line["rewards"] if reward is not None)
        if not pool:
            prompt = texts.get(key) or line.get("prompt") or ""
            tasks[key] = Task(key, line["environment"], prompt)
    known = open_pool(pool) if pool else Pool([Environment(e) for e in {task.environment for task in tasks.values()}], tasks.values())
    found: dict[str, list[tuple[int, float]]] = {}
    for (policy, key), values in sorted(rewards.items()):
        if len(values) >= 2:
            found.setdefault(policy, []).append((known.row_of(key), float(np.var(values, ddof=1))))
    arrays = {policy: (np.array([r for r, _ in pairs]), np.array([v for _, v in pairs])) for policy, pairs in found.items()}
    return Cells(known, {policy: pair for policy, pair in arrays.items() if len(pair[0]) >= MIN_TASKS and np.ptp(pair[1]) > 0})


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as stream:
        yield from (json.loads(line) for line in stream if line.strip())


def measure(cells: Cells, encoder: str, has_topologies: bool) -> list[dict[str, Any]]:
    """One row for each relation: correlations, difference and intervals."""
    text_only = FeatureConfig(encoder=encoder, tool_weight=0, state_weight=0, verifier_weight=0)
    text = build_features(cells.pool, text_only)
    rows = [_row(f"text, {where}", relation, text.within, cells) for where, relation in WHERE.items()]
    if has_topologies:
        rows.append(_row("topology, across environments", "cross", text.cross, cells))
        everything = build_features(cells.pool, FeatureConfig(encoder=encoder))
        rows.append(_row("text, tools, state and checks, within", "within", everything.within, cells))
    return rows


def measure_simulated(learner: str) -> list[dict[str, Any]]:
    """The same on groups of the simulator's learner before any training; intervals are over independent worlds."""
    found: dict[str, list[tuple[float, float, float, float, int]]] = {"within": [], "cross": []}
    for seed in range(WORLDS):
        world, policy = make_learner(Setting(learner=learner, seed=seed, num_environments=WORLD_ENVIRONMENTS), load_kind(learner))
        rows = np.arange(len(world))
        variances = policy.roll_out(rows, GROUP_SIZE).var(axis=1, ddof=1)
        for relation, vectors in (("within", world.within), ("cross", world.cross)):
            rng = np.random.Generator(np.random.Philox(key=[seed, NEIGHBOURS[relation]]))
            part = _estimates(vectors, world.environment_of, rows, variances, relation, NEIGHBOURS[relation], rng)
            errors = np.abs(part[1] - part[2]).mean() / np.abs(part[1][:, None] - part[3]).mean()
            found[relation].append((*_correlations([part], np.ones(len(world), dtype=np.int64)), float(errors), len(part[0])))
    names = {"within": "topic of the prompt, within an environment", "cross": "archetype of the topology, across environments"}
    return [_over_worlds(names[relation], NEIGHBOURS[relation], np.array(values)) for relation, values in found.items()]


def _over_worlds(name: str, k: int, values: np.ndarray) -> dict[str, Any]:
    figures = {title: interval(values[:, column]) for column, title in enumerate(("neighbours", "random", "difference"))}
    shared = {"relation": name, "k": k, "policies": len(values), "cells": int(values[:, 4].sum())}
    return {**shared, **figures, "absolute_error_ratio": float(values[:, 3].mean())}


def _row(name: str, relation: str, vectors: np.ndarray, cells: Cells) -> dict[str, Any]:
    """Correlate each task's variance with its neighbours' and with random tasks'."""
    k = NEIGHBOURS[relation]
    rng = np.random.Generator(np.random.Philox(key=[0, k]))
    parts = [_estimates(vectors, cells.pool.environment_of, *pair, relation, k, rng) for pair in cells.policies.values()]
    parts = [part for part in parts if len(part[0]) >= MIN_TASKS]
    near, far, gap = _interval(parts, len(cells.pool), rng)
    differences = [(np.abs(part[1] - part[2]).mean(), np.abs(part[1][:, None] - part[3]).mean()) for part in parts]
    return {
        "relation": name,
        "k": k,
        "policies": len(parts),
        "cells": sum(len(part[0]) for part in parts),
        "neighbours": near,
        "random": far,
        "difference": gap,
        "absolute_error_ratio": float(np.mean([near_error / far_error for near_error, far_error in differences])),
    }


def _estimates(vectors, environment_of, rows, variances, relation: str, k: int, rng):
    """Rows [n], v [n], mean over neighbours [n], means over random sets [n, S] of the tasks that have k others in the relation."""
    is_same = environment_of[rows][:, None] == environment_of[rows][None]
    allowed = is_same if relation == "within" else ~is_same
    np.fill_diagonal(allowed, False)
    kept = np.flatnonzero(allowed.sum(axis=1) >= k)
    similarity = np.where(allowed[kept], vectors[rows[kept]].astype(np.float64) @ vectors[rows].T.astype(np.float64), -np.inf)
    nearest = np.argsort(-similarity, axis=1, kind="stable")[:, :k]
    shuffled = (np.where(allowed[kept], rng.random(similarity.shape), np.inf) for _ in range(RANDOM_SETS))
    drawn = np.stack([np.argsort(order, axis=1)[:, :k] for order in shuffled], axis=1)
    return rows[kept], variances[kept], variances[nearest].mean(axis=1), variances[drawn].mean(axis=2)


def _interval(parts, num_tasks: int, rng) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Mean correlations over policies of neighbours, of random tasks, and their difference, with bootstrap intervals over tasks."""
    counts = np.ones(num_tasks, dtype=np.int64)
    whole = _correlations(parts, counts)
    samples = (rng.integers(num_tasks, size=num_tasks) for _ in range(DRAWS))
    draws = np.array([_correlations(parts, np.bincount(sample, minlength=num_tasks)) for sample in samples])
    low, high = np.nanquantile(draws, [0.025, 0.975], axis=0)
    near, far, gap = ({"mean": float(whole[i]), "low": float(low[i]), "high": float(high[i])} for i in range(3))
    return near, far, gap


def _correlations(parts, counts: np.ndarray) -> tuple[float, float, float]:
    """With task i taken ``counts[i]`` times."""
    near, far = [], []
    for rows, variances, neighbours, random in parts:
        take = np.repeat(np.arange(len(rows)), counts[rows])
        if len(take) < MIN_TASKS:
            continue
        target = rankdata(variances[take])
        near.append(_correlation(target, rankdata(neighbours[take])))
        far.append(np.mean([_correlation(target, rankdata(column)) for column in random[take].T[:3]]))
    return (float(np.mean(near)), float(np.mean(far)), float(np.mean(near) - np.mean(far))) if near else (np.nan, np.nan, np.nan)


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a - a.mean(), b - b.mean()
    norm = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / norm) if norm > 0 else 0.0


def table(rows: list[dict[str, Any]]) -> list[str]:
    """The rows as a Markdown table."""
    titles = ("neighbours by", "k", "policies", "cells", "neighbours", "random", "difference", "error ratio")
    lines = [titles, ["---"] * len(titles)]
    for row in rows:
        figures = [f"{row[n]['mean']:.3f} [{row[n]['low']:.3f}, {row[n]['high']:.3f}]" for n in ("neighbours", "random", "difference")]
        lines.append([row["relation"], row["k"], row["policies"], row["cells"], *figures, f"{row['absolute_error_ratio']:.3f}"])
    return [f"| {' | '.join(map(str, line))} |" for line in lines]


if __name__ == "__main__":
    sys.exit(main())
