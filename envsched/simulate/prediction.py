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
from envsched.simulate.measures import spearman
from envsched.simulate.protocol import Source, default_steps, job_key, scaled_config
from envsched.simulate.recorded import SplitPolicy
from envsched.simulate.replay import top_quartiles
from envsched.simulate.runs import records_of

FOLDS = 5
ESTIMATORS = ("envsched", "paper", "within_only", "cross_only", "no_graph")  # schedulers that predict in different ways
QUESTIONS = ("unobserved", "observed")
DRAWS = 300
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
    rows_of = [np.flatnonzero(asked & (environment_of == e)) for e in np.unique(environment_of[asked])]
    rng = np.random.Generator(np.random.Philox(key=[0, 19]))
    drawn = (rng.integers(len(rows_of), size=len(rows_of)) for _ in range(DRAWS))
    whole = _scores(cells, np.flatnonzero(asked))
    draws = [_scores(cells, np.concatenate([rows_of[e] for e in sample])) for sample in drawn]
    out: dict[str, Interval] = {}
    for name, mean in whole.items():
        low, high = np.nanquantile([draw[name] for draw in draws], [0.025, 0.975]) if np.isfinite(mean) else (np.nan, np.nan)
        out[name] = {key: float(x) if np.isfinite(x) else None for key, x in (("mean", mean), ("low", low), ("high", high))}
    return out


def _scores(cells: Sequence[tuple[np.ndarray, ...]], rows: np.ndarray) -> dict[str, float]:
    """Means over cells (predictions, environment means, truth, in the top quartile: each [N]) of the figures over ``rows``."""
    found = []
    for predicted, means, truth, is_top in cells:
        known = rows[~np.isnan(predicted[rows])]
        if len(known) < 8 or np.ptp(truth[known]) == 0:
            continue
        ours, yardstick = spearman(predicted[known], truth[known]), spearman(means[known], truth[known])
        hits = top_hits(predicted[known], is_top[known])
        found.append((ours, yardstick, ours - yardstick, hits, is_top[known].mean()))
    names = ("spearman", "environment_spearman", "minus_environment", "hit_rate", "chance")
    means = np.mean(found, axis=0) if found else np.full(len(names), np.nan)
    return dict(zip(names, means.tolist(), strict=True))


def top_hits(predicted: np.ndarray, is_top: np.ndarray) -> float:
    """Share of the quarter predicted highest that is in the top; equal predictions at its edge share the places left."""
    quarter = max(1, len(predicted) // 4)
    edge = np.sort(predicted)[-quarter]
    above, level = predicted > edge, predicted == edge
    return float((is_top[above].sum() + (quarter - above.sum()) * is_top[level].mean()) / quarter)


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
