"""Schedulers over recorded rollouts: how much variance they capture.

A replay walks through the policies of a recording, several steps each. What a scheduler picks is judged by the half of its
cell that nobody was shown; where whole cells are shown, by the whole cell, but only at the first pick under a policy, which
nothing of the cell could have guided. Letters: N tasks, M environments, P policies, B batch, G rollouts, T steps, R runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from envsched.baselines.oracle import Oracle
from envsched.config import SchedulerConfig
from envsched.predict import largest_variance
from envsched.simulate.line_up import prepare
from envsched.simulate.protocol import Source, default_steps, job_key, judged_whole, scaled_config
from envsched.simulate.recorded import SplitPolicy
from envsched.simulate.runs import NUM_BINS, NUM_BLOCKS, records_of
from envsched.types import Batch, Lane

RANDOM_LANES = (Lane.COLD_START, Lane.COVERAGE)


@dataclass(frozen=True)
class ReplayJob:
    """One scheduler on one split of one recording."""

    scheduler: str
    source: Source
    seed: int
    quotas: bool
    whole: bool
    steps_per_policy: int | None
    config: SchedulerConfig

    def key(self) -> str:
        return job_key(self)


@dataclass
class Account:
    """What the picks of a run were worth, by environment [M], by step [T], by score [bins] and by block of steps."""

    value: np.ndarray  # sum of judged variances [M]
    count: np.ndarray  # judged picks [M]
    heat: np.ndarray  # picks [M, blocks]
    hits: int = 0  # judged picks in the top quartile of the policy's tasks
    curve: np.ndarray = field(default_factory=lambda: np.zeros((3, NUM_BINS)))  # count, sum of scores, sum of v / v_max
    steps: dict[str, list[float]] = field(default_factory=lambda: {"variance": [], "environments": [], "hits": [], "exploited": []})

    def note(self, batch: Batch, environment_of: np.ndarray, judged: np.ndarray, top: float, v_max: float, block: int) -> None:
        """Take in a batch with the environments [B] and judged variances [B] of its picks, NaN where nothing judges."""
        known = ~np.isnan(judged)
        hit = known & (np.nan_to_num(judged) >= top)
        np.add.at(self.value, environment_of[known], judged[known])
        np.add.at(self.count, environment_of[known], 1)
        np.add.at(self.heat, (environment_of, block), 1)
        self.hits += int(hit.sum())
        exploited = known & np.array([pick.lane not in RANDOM_LANES for pick in batch.picks])
        score = np.array([pick.score for pick in batch.picks])[known]
        place = np.clip((score * NUM_BINS).astype(int), 0, NUM_BINS - 1)
        for row, values in enumerate((np.ones(len(place)), score, judged[known] / v_max)):
            np.add.at(self.curve[row], place, values)
        self.steps["variance"].append(float(judged[known].mean()) if known.any() else float("nan"))
        self.steps["environments"].append(len(np.unique(environment_of)))
        self.steps["hits"].append(int((hit & exploited).sum()))
        self.steps["exploited"].append(int(exploited.sum()))

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        arrays = {name: getattr(self, name).tolist() for name in ("value", "count", "heat", "curve")}
        return {**arrays, "hits": self.hits, "steps": self.steps}


def run_replay(job: ReplayJob) -> dict[str, Any]:
    """The account of one scheduler; a pure function of the job."""
    recording, features = job.source.open()
    whole = judged_whole(recording, job.whole)
    policy = SplitPolicy(recording, job.seed, whole)
    pool, num_policies = recording.pool, len(recording.policies)
    config = scaled_config(job.config, len(pool), policy.group_size, job.quotas)
    steps = job.steps_per_policy or default_steps(len(pool), config.batch_size)
    scheduler = prepare(job.scheduler, pool, config, job.seed, features, quotas_for_all=True)
    num_environments, num_blocks = len(pool.environments), min(NUM_BLOCKS, steps * num_policies)
    account = Account(np.zeros(num_environments), np.zeros(num_environments), np.zeros((num_environments, num_blocks)))
    top, v_max = top_quartiles(policy.judged), largest_variance(config)
    for step in range(steps * num_policies):
        p, judged = step // steps, policy.judged[step // steps]
        if step % steps == 0:
            shown = np.zeros(len(pool), dtype=bool)  # tasks whose cell under this policy was seen
        if isinstance(scheduler, Oracle):
            scheduler.reveal(np.nan_to_num(policy.shown_variance[p]))
        batch = scheduler.select(step)
        rows = pool.rows_of(batch.tasks)
        worth = np.where(whole & shown[rows], np.nan, judged[rows])
        account.note(batch, pool.environment_of[rows], worth, top[p], v_max, step * num_blocks // (steps * num_policies))
        shown[rows] = True
        scheduler.observe(records_of(batch.tasks, step, policy.roll_out(p, rows, step)))
    return account.to_dict()


def top_quartiles(judged: np.ndarray) -> np.ndarray:
    """From which variance on a task is in the top quartile, for each policy of judged [P, N]; a variance of 0 is in none,
    however many tasks show it."""
    return np.maximum(np.nanquantile(judged, 0.75, axis=1), 1e-12)


def replay_jobs(
    source: Source,
    schedulers: Sequence[str],
    config: SchedulerConfig,
    runs: int,
    quotas: bool,
    whole: bool,
    steps_per_policy: int | None,
) -> list[ReplayJob]:
    """Jobs of one table: by scheduler, then run."""
    return [ReplayJob(name, source, seed, quotas, whole, steps_per_policy, config) for name in schedulers for seed in range(runs)]
