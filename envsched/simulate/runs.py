"""One run: a scheduler and a learner, step by step, and what is measured on the way.

Letters: N tasks, M environments, B batch, G rollouts, T steps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from envsched.baselines.oracle import Oracle
from envsched.features import Features
from envsched.pool import Pool
from envsched.simulate.calibration import Kind
from envsched.simulate.learner import Learner
from envsched.simulate.world import World, make_world
from envsched.types import Batch, Lane, RolloutRecord, Scheduler, Status

NUM_BINS = 20  # of the calibration curve, over scores in [0, 1]
NUM_BLOCKS = 40  # of the heat map, over steps


@dataclass(frozen=True)
class Setting:
    """What all schedulers of a court share: a world, a learner, a length."""

    learner: str = "slow"
    seed: int = 0
    steps: int = 200
    strength: float = 1.0  # of the world's structure
    num_environments: int = 51
    tasks_per_environment: int = 50
    persistence: float = 1.0  # factor on the correlation time of the tasks' own traits


@dataclass
class Trace:
    """What one run showed, by step [T] or over all."""

    variance: list[float] = field(default_factory=list)  # mean over the batch, as realised
    true_variance: list[float] = field(default_factory=list)  # mean over the batch, exact
    environments: list[int] = field(default_factory=list)
    tools: list[int] = field(default_factory=list)
    hits: list[int] = field(default_factory=list)  # exploitation picks in the pool's top quartile of true variance
    exploited: list[int] = field(default_factory=list)
    unseen_hits: list[int] = field(default_factory=list)  # the same, among picks of tasks never visited before
    unseen: list[int] = field(default_factory=list)
    groups: list[np.ndarray] = field(default_factory=list)  # variances of a step's groups
    means: list[np.ndarray] = field(default_factory=list)
    curve: np.ndarray = field(default_factory=lambda: np.zeros((3, NUM_BINS)))  # count, sum of scores, sum of v / v_max
    heat: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))  # picks [M, blocks]
    visited: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))  # tasks [N] that were ever rolled out


def environment_pool(num_environments: int, tasks_per_environment: int) -> Pool:
    """The pool that stands for every world of a size; a world differs in what its tasks do, not in their keys."""
    return _pool(num_environments, tasks_per_environment)


@lru_cache(maxsize=4)
def _pool(num_environments: int, tasks_per_environment: int) -> Pool:
    return Pool.synthetic(num_environments, tasks_per_environment)


def make_learner(setting: Setting, kind: Kind) -> tuple[World, Learner]:
    """The world of ``setting`` and a fresh policy in it."""
    traits = kind.traits.scaled(setting.strength)
    world = make_world(setting.seed, traits, setting.num_environments, setting.tasks_per_environment)
    tempo = replace(kind.tempo, drift_steps=setting.persistence * kind.tempo.drift_steps)
    return world, Learner(world, tempo, seed=setting.seed)


def world_features(world: World, pool: Pool) -> Features:
    return Features(within=world.within, cross=world.cross, pool_fingerprint=pool.fingerprint, encoder="synthetic world")


def run_schedule(
    scheduler: Scheduler, learner: Learner, pool: Pool, steps: int, group_size: int, on_step: Callable[[], None] = lambda: None
) -> Trace:
    """Select, roll out, observe, train, ``steps`` times.

    An ``Oracle`` is told the true variances before it selects; nobody else is told anything but rewards.
    """
    heat = np.zeros((learner.world.num_environments, min(NUM_BLOCKS, steps)), dtype=np.int64)
    trace = Trace(heat=heat, visited=np.zeros(len(pool), dtype=bool))
    for step in range(steps):
        _, truth = learner.moments()
        if isinstance(scheduler, Oracle):
            scheduler.reveal(truth)
        batch = scheduler.select(step)
        rows = pool.rows_of(batch.tasks)
        rewards = learner.roll_out(rows, group_size)
        _note(trace, batch, rows, rewards, truth, learner.world, step * heat.shape[1] // steps)
        trace.visited[rows] = True
        scheduler.observe(records_of(batch.tasks, step, rewards))
        learner.train(rows, rewards)
        on_step()
    return trace


def records_of(tasks: Sequence[str], step: int, rewards: np.ndarray) -> list[RolloutRecord]:
    """Records of a batch; a task drawn twice (a scheduler with replacement) is reported once, by its first group."""
    status = (Status.OK,) * rewards.shape[1]
    first = dict(zip(reversed(tasks), rewards[::-1], strict=True))
    return [RolloutRecord(task, step, tuple(group.tolist()), status, step) for task, group in first.items()]


def _note(trace: Trace, batch: Batch, rows: np.ndarray, rewards: np.ndarray, truth: np.ndarray, world: World, block: int) -> None:
    variance = rewards.var(axis=1, ddof=1)
    environment_of = world.environment_of[rows]
    exploited = np.array([pick.lane not in (Lane.COLD_START, Lane.COVERAGE) for pick in batch.picks])
    hit = truth[rows] >= np.quantile(truth, 0.75)
    trace.groups.append(variance)
    trace.means.append(rewards.mean(axis=1))
    trace.variance.append(float(variance.mean()))
    trace.true_variance.append(float(truth[rows].mean()))
    trace.environments.append(len(np.unique(environment_of)))
    trace.tools.append(int(world.tools[np.unique(environment_of)].sum()))
    trace.hits.append(int(hit[exploited].sum()))
    trace.exploited.append(int(exploited.sum()))
    unseen = exploited & ~trace.visited[rows]
    trace.unseen_hits.append(int(hit[unseen].sum()))
    trace.unseen.append(int(unseen.sum()))
    G = rewards.shape[1]
    score = np.array([pick.score for pick in batch.picks])
    place = np.clip((score * NUM_BINS).astype(int), 0, NUM_BINS - 1)
    largest = (G // 2) * (G - G // 2) / (G * (G - 1))
    np.add.at(trace.curve, (0, place), 1)
    np.add.at(trace.curve, (1, place), score)
    np.add.at(trace.curve, (2, place), variance / largest)
    np.add.at(trace.heat, (environment_of, block), 1)


def summary(trace: Trace) -> dict[str, Any]:
    """The figures of one run and the curves that are drawn; JSON-able."""
    groups = np.concatenate(trace.groups)
    last = slice(-20, None)
    return {
        "figures": {
            "mean_variance": float(groups.mean()),
            "median_variance": float(np.median(groups)),
            "median_reward": float(np.median(np.concatenate(trace.means))),
            "environments": float(np.mean(trace.environments)),
            "tools": float(np.mean(trace.tools)),
            "hit_rate": _ratio(trace.hits, trace.exploited),
            "final_hit_rate": _ratio(trace.hits[last], trace.exploited[last]),
            "unseen_hit_rate": _ratio(trace.unseen_hits, trace.unseen),
            "zero_signal": float(np.mean(groups <= 1e-18)),
            "distinct_tasks": float(trace.visited.sum()),
        },
        "steps": {
            "variance": trace.variance,
            "environments": trace.environments,
            "tools": trace.tools,
            "hits": trace.hits,
            "exploited": trace.exploited,
        },
        "curve": trace.curve.tolist(),
        "heat": trace.heat.tolist(),
    }


def _ratio(part: Sequence[int], whole: Sequence[int]) -> float | None:
    """None where nothing was counted."""
    return float(np.sum(part) / np.sum(whole)) if np.sum(whole) else None
