"""Schedulers over recorded rollouts: how much variance they capture, and how well variance is predicted.

A replay walks through the policies of a recording, several steps each. What a scheduler picks is judged by the half of its
cell that nobody was shown. Letters: N tasks, M environments, P policies, B batch, G rollouts, R runs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from envsched.baselines.oracle import Oracle
from envsched.baselines.ranked import without_quotas
from envsched.config import SchedulerConfig
from envsched.features import Features, build_features
from envsched.files import canonical_json, digest
from envsched.graph import ObservedGraph
from envsched.history import History, statistics
from envsched.pool import Pool
from envsched.predict import Forecast, build_predictor
from envsched.simulate.court import package_digest, run_jobs
from envsched.simulate.intervals import Interval, bootstrap, interval
from envsched.simulate.line_up import prepare, split_name
from envsched.simulate.measures import spearman
from envsched.simulate.recorded import Recording, SplitPolicy, read_recordings
from envsched.simulate.runs import records_of

FULL_BATCH = 64  # the size that the default quotas belong to
LARGEST_BATCH = 16
REFERENCES = ("random", "oracle")
MIN_CELL = 4  # rollouts of a cell from which halves can be judged and shares given


@dataclass(frozen=True)
class ReplayJob:
    """One scheduler on one split of one recording."""

    scheduler: str
    file: str
    prompts: str | None
    recording: int
    seed: int
    quotas: bool
    whole: bool
    steps_per_policy: int | None
    config: SchedulerConfig

    def key(self) -> str:
        fields = {name: value for name, value in asdict(self).items() if name != "config"}
        return digest(canonical_json([fields, self.config.model_dump(mode="json")]), package_digest())


@lru_cache(maxsize=2)
def load(file: str, prompts: str | None) -> tuple[tuple[Recording, Features], ...]:
    """Recordings of a file with the features of their pools (text alone: no recording has topologies)."""
    return tuple((recording, build_features(recording.pool)) for recording in read_recordings(Path(file), prompts and Path(prompts)))


def scaled_config(config: SchedulerConfig, num_tasks: int, group_size: int, quotas: bool) -> SchedulerConfig:
    """B = min(16, N // 5); C1 and C3 times B / 64, rounded up, or no quotas at all."""
    size = min(LARGEST_BATCH, max(1, num_tasks // 5))
    caps = ("max_per_environment", "max_per_environment_window")
    scaled = {name: math.ceil(getattr(config, name) * size / FULL_BATCH) for name in caps}
    sized = config.model_copy(update={"batch_size": size, "group_size": group_size, **scaled})
    return sized if quotas else without_quotas(sized)


def run_replay(job: ReplayJob) -> dict[str, Any]:
    """Picks and predictions of one scheduler; a pure function of the job."""
    recording, features = load(job.file, job.prompts)[job.recording]
    policy = SplitPolicy(recording, job.seed, judged_whole(recording, job.whole))
    pool, num_policies = recording.pool, len(recording.policies)
    config = scaled_config(job.config, len(pool), policy.group_size, job.quotas)
    steps = job.steps_per_policy or default_steps(len(pool), config.batch_size)
    scheduler = prepare(job.scheduler, pool, config, job.seed, features, quotas_for_all=True)
    seen = Spectator(pool, SchedulerConfig(**(config.model_dump() | split_name(job.scheduler)[1])), features)
    value, count, hits = np.zeros(len(pool.environments)), np.zeros(len(pool.environments)), 0
    # top quartile of a policy's tasks; a variance of 0 is in none, however many tasks show it
    top = np.maximum(np.nanquantile(policy.judged, 0.75, axis=1), 1e-12)
    for step in range(steps * num_policies):
        p = step // steps
        if isinstance(scheduler, Oracle):
            scheduler.reveal(np.nan_to_num(policy.shown_variance[p]))
        batch = scheduler.select(step)
        rows = pool.rows_of(batch.tasks)
        if step:
            seen.look(step, scheduler.history, policy.judged[p])
        judged = policy.judged[p][rows]
        known = ~np.isnan(judged)
        environment_of = pool.environment_of[rows[known]]
        np.add.at(value, environment_of, judged[known])
        np.add.at(count, environment_of, 1)
        hits += int((judged[known] >= top[p]).sum())
        scheduler.observe(records_of(batch.tasks, step, policy.roll_out(p, rows, step)))
    return {"value": value.tolist(), "count": count.tolist(), "hits": hits, "prediction": seen.figures()}


def judged_whole(recording: Recording, asked: bool) -> bool:
    """Cells of fewer than 4 rollouts have no half to judge by: they are shown and judged whole, whatever was asked."""
    return asked or recording.cell_size < MIN_CELL


def default_steps(num_tasks: int, batch_size: int) -> int:
    """Steps per policy: half of the tasks could be picked once, but at least 3 and at most 40."""
    return min(40, max(3, math.ceil(num_tasks / (2 * batch_size))))


class Spectator:
    """Predicts beside a scheduler from its history, whatever the scheduler itself predicts: our estimator, and the environment mean."""

    def __init__(self, pool: Pool, config: SchedulerConfig, features: Features) -> None:
        self.pool, self.config = pool, config
        self._graph = ObservedGraph(features, pool.environment_of, config.num_within, config.num_cross)
        self._predictor = build_predictor(config, pool.environment_of, len(pool.environments))
        self._forecast: Forecast | None = None
        self._found: dict[str, list[float]] = {}

    def look(self, step: int, history: History, truth: np.ndarray) -> None:
        """Compare predictions for ``step`` with the judged variances [N]."""
        if self._forecast is None:
            self._forecast = Forecast(self._predictor, history, self._graph, self.config)
        predicted = self._forecast.at(step)[0].variance
        means, alone = environment_means(history, step, self.config.half_life, self.pool)
        observed = np.isin(np.arange(len(truth)), history.visits.before(step).row)
        for name, chosen in (("observed", observed), ("unobserved", ~observed)):
            chosen = chosen & ~np.isnan(truth) & ~alone
            if chosen.sum() >= 8 and np.ptp(truth[chosen]) > 0:
                self._found.setdefault(f"spearman_{name}", []).append(spearman(predicted[chosen], truth[chosen]))
                self._found.setdefault(f"environment_spearman_{name}", []).append(spearman(means[chosen], truth[chosen]))

    def figures(self) -> dict[str, float]:
        return {name: float(np.mean(values)) for name, values in self._found.items()}


def environment_means(history: History, step: int, half_life: float, pool: Pool) -> tuple[np.ndarray, np.ndarray]:
    """The yardstick: mean [N] of the own variances of the other observed tasks of the environment (of the pool, where there are
    none), and which tasks are alone in their environment [N]."""
    known = statistics(history, step, half_life)
    seen = (known.mass > 0).astype(float)
    variance = np.where(seen > 0, known.variance, 0.0)
    e = pool.environment_of
    total, count = np.bincount(e, variance, len(pool.environments))[e], np.bincount(e, seen, len(pool.environments))[e]
    pool_mean = variance.sum() / max(seen.sum(), 1)
    others = count - seen
    mean = np.where(others > 0, (total - variance) / np.maximum(others, 1), pool_mean)
    return mean, np.bincount(e)[e] < 2


def hold_replays(
    file: Path,
    prompts: Path | None,
    schedulers: Sequence[str],
    config: SchedulerConfig,
    runs: int,
    workers: int = 1,
    journal: Path | None = None,
    whole: bool = False,
    steps_per_policy: int | None = None,
) -> list[dict[str, Any]]:
    """One entry per recording and per table (with quotas, without): figures by scheduler with 95% intervals.

    Raises:
        RecordError: the file is unusable. ConfigError: an unknown scheduler.
    """
    names = list(dict.fromkeys([*schedulers, *REFERENCES]))
    recordings = read_recordings(file, prompts)
    jobs = [
        ReplayJob(name, str(file), prompts and str(prompts), i, seed, quotas, whole, steps_per_policy, config)
        for i in range(len(recordings))
        for quotas in (True, False)
        for name in names
        for seed in range(runs)
    ]
    results = iter(run_jobs(jobs, run_replay, workers, journal, "replays"))
    tables = []
    for recording in recordings:
        for quotas in (True, False):
            by_name = {name: [next(results) for _ in range(runs)] for name in names}
            tables.append({**_about(recording, config, quotas, whole), "schedulers": _figures(by_name, recording.cell_size)})
    return tables


def _about(recording: Recording, config: SchedulerConfig, quotas: bool, whole: bool) -> dict[str, Any]:
    whole = judged_whole(recording, whole)
    policy = SplitPolicy(recording, 0, whole)
    sized = scaled_config(config, len(recording.pool), policy.group_size, quotas)
    both = ~np.isnan(policy.shown_variance) & ~np.isnan(policy.judged)
    halves = [] if whole else zip(policy.shown_variance, policy.judged, both, strict=True)
    pairs = [spearman(shown[ok], judged[ok]) for shown, judged, ok in halves if ok.sum() > 2]
    return {
        "recording": recording.name,
        "quotas": quotas,
        "tasks": len(recording.pool),
        "environments": len(recording.pool.environments),
        "policies": len(recording.policies),
        "batch_size": sized.batch_size,
        "group_size": sized.group_size,
        "rollouts_per_cell": recording.cell_size,
        "judged_by": "the whole cell" if whole else "the other half of the cell",
        "ceiling_spearman": float(np.mean(pairs)) if pairs else None,  # one half's variance against the other's
    }


def _figures(by_name: Mapping[str, Sequence[Mapping[str, Any]]], cell_size: int) -> dict[str, dict[str, Interval]]:
    """Intervals by drawing environments anew, paired over schedulers; those of predictions over splits."""
    sums = {
        name: np.stack([np.sum([run["value"] for run in runs], axis=0), np.sum([run["count"] for run in runs], axis=0)], axis=1)
        for name, runs in by_name.items()
    }
    out: dict[str, dict[str, Interval]] = {}
    for name, runs in by_name.items():
        stacked = np.concatenate([sums[name], sums["random"], sums["oracle"]], axis=1)  # [M, 6]
        figures = {"mean_variance": bootstrap(stacked, lambda sums: _mean(sums, 0)), "gain": bootstrap(stacked, _gain)}
        if cell_size >= MIN_CELL:
            figures["captured_share"] = bootstrap(stacked, _share)
        figures["hit_rate"] = interval([run["hits"] / max(np.sum(run["count"]), 1) for run in runs])
        for figure in sorted({key for run in runs for key in run["prediction"]}):
            figures[figure] = interval([run["prediction"].get(figure) for run in runs])
        for rival in by_name:
            if rival != name:
                pair = np.concatenate([sums[name], sums[rival]], axis=1)
                figures[f"minus_{rival}"] = bootstrap(pair, _difference)
        out[name] = figures
    return out


def _mean(sums: np.ndarray, which: int) -> np.ndarray:
    """Mean value of the ``which``-th pair of columns (value, count) of sums [..., K]."""
    return _ratio(sums[..., 2 * which], sums[..., 2 * which + 1])


def _gain(sums: np.ndarray) -> np.ndarray:
    return _ratio(_mean(sums, 0) - _mean(sums, 1), _mean(sums, 1))


def _difference(sums: np.ndarray) -> np.ndarray:
    return _mean(sums, 0) - _mean(sums, 1)


def _share(sums: np.ndarray) -> np.ndarray:
    x, low, high = (_mean(sums, which) for which in range(3))
    return _ratio(x - low, high - low)


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole, NaN where the whole is not positive."""
    part, whole = np.asarray(part, dtype=float), np.asarray(whole, dtype=float)
    return np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
