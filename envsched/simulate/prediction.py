"""How well the variances of a recording are predicted, whoever chooses: a fifth of the tasks is hidden, the others are
rolled out at random, and predictions for the hidden (unobserved) and for the visited (observed) are compared with what came.

Nothing of a cell that judges was shown before, so whole cells are shown and judge. Letters: N tasks, M environments,
P policies, B batch, R runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from envsched.config import SchedulerConfig
from envsched.history import History, statistics
from envsched.pool import Pool
from envsched.simulate.intervals import Interval
from envsched.simulate.line_up import prepare, split_name
from envsched.simulate.measures import repeated_spearman
from envsched.simulate.protocol import Source, default_steps, job_key, scaled_config
from envsched.simulate.recorded import SplitPolicy
from envsched.simulate.replay import top_quartiles
from envsched.simulate.runs import records_of

FOLDS = 5
ESTIMATORS = ("envsched", "paper", "within_only", "cross_only", "no_graph")  # schedulers that predict in different ways
QUESTIONS = ("unobserved", "observed")
DRAWS = 1000
NUM_BINS = 10  # of the calibration curve, equally filled


@dataclass(frozen=True)
class PredictionJob:
    """One estimator on one recording, with one fold of one random partition of the tasks hidden."""

    estimator: str
    source: Source
    seed: int
    fold: int
    steps_per_policy: int | None
    config: SchedulerConfig

    def key(self) -> str:
        return job_key(self)


def prediction_jobs(
    source: Source, line_up: Sequence[str], config: SchedulerConfig, runs: int, steps_per_policy: int | None
) -> list[PredictionJob]:
    """Jobs by estimator, then run, then fold; schedulers of a line-up that predict nothing are left out."""
    return [
        PredictionJob(name, source, seed, fold, steps_per_policy, config)
        for name in estimators_of(line_up)
        for seed in range(runs)
        for fold in range(FOLDS)
    ]


def estimators_of(line_up: Sequence[str]) -> list[str]:
    """Those of a line-up that predict variances."""
    return [name for name in line_up if split_name(name)[0] in ESTIMATORS]


def fold_of(num_tasks: int, seed: int) -> np.ndarray:
    """In which fold each task is hidden, int [N]; folds differ by one task at most."""
    rng = np.random.Generator(np.random.Philox(key=[seed, 13]))
    return rng.permutation(num_tasks) % FOLDS


def run_prediction(job: PredictionJob) -> dict[str, Any]:
    """Predictions [P, N] and environment means [P, N] of both questions, null where a task is not asked about.

    Unobserved: the hidden tasks under policy p, after the others were rolled out under p. Observed: under policy p + 1, the
    tasks that were visited up to policy p.
    """
    recording, features = job.source.open()
    pool, num_tasks = recording.pool, len(recording.pool)
    policy = SplitPolicy(recording, job.seed, whole=True)
    config = scaled_config(job.config, num_tasks, policy.group_size, quotas=True)
    scheduler = prepare(job.estimator, pool, config, job.seed, features)
    steps = job.steps_per_policy or default_steps(num_tasks, config.batch_size)
    hidden = fold_of(num_tasks, job.seed) == job.fold
    visible = np.flatnonzero(~hidden)
    rng = np.random.Generator(np.random.Philox(key=[job.seed, 17]))
    visited, step = np.zeros(num_tasks, dtype=bool), 0
    found: dict[str, list[list[float | None]]] = {f"{kind}{name}": [] for kind in ("", "mean_") for name in QUESTIONS}

    def ask(question: str, tasks: np.ndarray) -> None:
        means = environment_means(scheduler.history, step, config.half_life, pool)[0]
        found[question].append(_where(tasks, scheduler.predict(step)))
        found[f"mean_{question}"].append(_where(tasks, means))

    for p in range(len(recording.policies)):
        ask("observed", visited)
        for _ in range(steps):
            rows = rng.choice(visible, min(config.batch_size, len(visible)), replace=False)
            keys = [pool.tasks[row].key for row in rows]
            scheduler.observe(records_of(keys, step, policy.roll_out(p, rows, step)))
            visited[rows] = True
            step += 1
        ask("unobserved", hidden)
    return found


def _where(tasks: np.ndarray, values: np.ndarray) -> list[float | None]:
    return [value if asked else None for asked, value in zip(tasks.tolist(), values.tolist(), strict=True)]


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


def assemble(folds: Sequence[Mapping[str, Any]], seed: int) -> dict[str, np.ndarray]:
    """One run's predictions and means [P, N] from its folds: each task once, hidden in its own fold and visible in the next."""
    out = {}
    for name in folds[0]:
        values = np.array([fold[name] for fold in folds], dtype=float)  # [FOLDS, P, N], NaN for null
        place = fold_of(values.shape[2], seed)
        if not name.endswith("unobserved"):
            place = (place + 1) % FOLDS
        out[name] = values[place, :, np.arange(values.shape[2])].T
    return out


def prediction_figures(runs: Sequence[Mapping[str, np.ndarray]], truth: np.ndarray, environment_of: np.ndarray) -> dict[str, Any]:
    """Figures of one estimator from assembled runs [R] and the variances of whole cells [P, N].

    For either question: ``spearman``, ``environment_spearman`` (of the yardstick), ``minus_environment``, ``hit_rate`` (share of
    the quarter predicted highest that is in the policy's top quartile) and its ``chance``; means over runs and policies with
    intervals from environments drawn anew. Tasks alone in their environment are left out: leave-one-out says nothing there.
    ``calibration``: mean prediction and mean variance by bins of the prediction, and the ``slope`` of variance on prediction.
    """
    alone = (np.bincount(environment_of) < 2)[environment_of]
    top = top_quartiles(truth)
    figures: dict[str, Any] = {}
    for question in QUESTIONS:
        cells = [
            (run[question][p], run[f"mean_{question}"][p], truth[p], truth[p] >= top[p])
            for run in runs
            for p in range(len(truth))
            if np.ptp(truth[p]) > 0
        ]
        figures[question] = _intervals(cells, environment_of, ~alone)
        figures[question]["calibration"] = calibration_curve(
            np.concatenate([cell[0] for cell in cells]), np.concatenate([cell[2] for cell in cells])
        )
    return figures


def _intervals(cells: Sequence[tuple[np.ndarray, ...]], environment_of: np.ndarray, asked: np.ndarray) -> dict[str, Interval]:
    """Means over cells of the figures over the tasks ``asked`` [N], and their quantiles over draws of environments."""
    environments = np.unique(environment_of[asked])
    rng = np.random.Generator(np.random.Philox(key=[0, 19]))
    drawn = rng.multinomial(len(environments), np.full(len(environments), 1 / len(environments)), size=DRAWS)
    times = np.zeros((1 + DRAWS, environment_of.max() + 1), dtype=np.int64)
    times[0, environments], times[1:, environments] = 1, drawn
    scores = _scores(cells, times[:, environment_of] * asked)
    out: dict[str, Interval] = {}
    for name, values in scores.items():
        known = values[1:][np.isfinite(values[1:])]
        low, high = np.quantile(known, [0.025, 0.975]) if np.isfinite(values[0]) and len(known) else (np.nan, np.nan)
        out[name] = {key: float(x) if np.isfinite(x) else None for key, x in (("mean", values[0]), ("low", low), ("high", high))}
    return out


def _scores(cells: Sequence[tuple[np.ndarray, ...]], times: np.ndarray) -> dict[str, np.ndarray]:
    """Figures [D] as means over cells (predictions, environment means, truth, in the top quartile: each [N]), with task i taken
    ``times[d, i]`` times; a cell counts where 8 tasks are asked about and their truth differs."""
    found = []
    for predicted, means, truth, is_top in cells:
        known = ~np.isnan(predicted)
        weight = times[:, known]
        if not weight.any():
            continue
        ours, yardstick = (repeated_spearman(values[known], truth[known], weight) for values in (predicted, means))
        hits, chance = top_hits(predicted[known], is_top[known], weight), (weight @ is_top[known]) / np.maximum(weight.sum(axis=1), 1)
        differs = ~np.isnan(repeated_spearman(truth[known], truth[known], weight)) & (weight.sum(axis=1) >= 8)
        ours, yardstick = np.nan_to_num(ours), np.nan_to_num(yardstick)  # a constant prediction orders nothing
        found.append(np.where(differs, [ours, yardstick, ours - yardstick, hits, chance], np.nan))
    names = ("spearman", "environment_spearman", "minus_environment", "hit_rate", "chance")
    if not found:
        return {name: np.full(len(times), np.nan) for name in names}
    stacked = np.array(found)  # [cells, figures, D]
    count = np.isfinite(stacked).sum(axis=0)
    mean = np.divide(np.nansum(stacked, axis=0), count, out=np.full(count.shape, np.nan), where=count > 0)
    return dict(zip(names, mean, strict=True))


def top_hits(predicted: np.ndarray, is_top: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Share [D] of the quarter predicted highest that is in the top, with task i taken ``times[d, i]`` times; equal predictions
    at its edge share the places left."""
    order = np.argsort(-predicted, kind="stable")
    _, first = np.unique(-predicted[order], return_index=True)
    size = np.add.reduceat(times[:, order], first, axis=1)
    top = np.add.reduceat((times * is_top)[:, order], first, axis=1)
    quarter = np.maximum(1, times.sum(axis=1, keepdims=True) // 4)
    taken = np.clip(quarter - (np.cumsum(size, axis=1) - size), 0, size)
    return (taken * top / np.maximum(size, 1)).sum(axis=1) / quarter[:, 0]


def calibration_curve(predicted: np.ndarray, truth: np.ndarray) -> dict[str, Any]:
    """``predicted`` and ``realised`` means by bins of the prediction, and the least-squares ``slope`` (1 is calibrated)."""
    known = ~np.isnan(predicted)
    predicted, truth = predicted[known], truth[known]
    if len(predicted) < NUM_BINS:
        return {"predicted": [], "realised": [], "slope": None}
    bins = np.array_split(np.argsort(predicted, kind="stable"), NUM_BINS)
    spread = predicted.var()
    slope = float(np.cov(predicted, truth, ddof=0)[0, 1] / spread) if spread > 0 else None
    means = {name: [float(values[rows].mean()) for rows in bins] for name, values in (("predicted", predicted), ("realised", truth))}
    return {**means, "slope": slope}
