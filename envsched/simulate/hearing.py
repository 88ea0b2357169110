"""All replays of a file: jobs for every recording, table and prediction, run together, and what they found.

Letters: R runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from envsched.config import SchedulerConfig
from envsched.simulate.court import run_jobs
from envsched.simulate.gains import gains
from envsched.simulate.measures import spearman
from envsched.simulate.prediction import FOLDS, PredictionJob, assemble, estimators_of, prediction_figures, prediction_jobs, run_prediction
from envsched.simulate.protocol import MIN_CELL, Source, default_steps, judged_whole, scaled_config
from envsched.simulate.recorded import Recording, SplitPolicy
from envsched.simulate.replay import ReplayJob, replay_jobs, run_replay

REFERENCES = ("random", "oracle")
PREDICTION_RUNS = 4  # at most: each predicts every task once


@dataclass(frozen=True)
class Hearing:
    """What is asked of a file of rollouts.

    ``runs``: random splits of the cells; ``whole``: show whole cells and judge first picks by them; ``steps_per_policy``: none
    for a number by the size of the pool.
    """

    source: Source
    line_up: tuple[str, ...]
    config: SchedulerConfig
    runs: int
    whole: bool = False
    steps_per_policy: int | None = None

    @property
    def names(self) -> list[str]:
        """The line-up and its references."""
        return list(dict.fromkeys([*self.line_up, *REFERENCES]))

    @property
    def prediction_runs(self) -> int:
        return min(self.runs, PREDICTION_RUNS)

    def jobs(self, recording: int) -> list[ReplayJob | PredictionJob]:
        """Of one recording: the table with quotas, the one without, the predictions."""
        source, schedulers = replace(self.source, recording=recording), self.names
        tables = [
            replay_jobs(source, schedulers, self.config, self.runs, quotas, self.whole, self.steps_per_policy) for quotas in (True, False)
        ]
        return [*tables[0], *tables[1], *prediction_jobs(source, self.line_up, self.config, self.prediction_runs, self.steps_per_policy)]


def run_job(job: ReplayJob | PredictionJob) -> dict[str, Any]:
    """A pure function of the job."""
    return run_replay(job) if isinstance(job, ReplayJob) else run_prediction(job)


def hold_replays(hearing: Hearing, workers: int = 1, journal: Path | None = None) -> list[dict[str, Any]]:
    """One entry per recording and table: ``about``, ``figures`` by scheduler, and ``runs`` by scheduler for pictures; the entry
    with quotas also has ``prediction`` by estimator.

    Raises:
        RecordError: the file is unusable. ConfigError: an unknown scheduler.
    """
    recordings = [recording for recording, _ in hearing.source.recordings()]
    jobs = [hearing.jobs(i) for i in range(len(recordings))]
    results = run_jobs([job for part in jobs for job in part], run_job, workers, journal, "replays")
    tables = []
    for recording, part in zip(recordings, jobs, strict=True):
        found, results = results[: len(part)], results[len(part) :]
        tables += _tables(hearing, recording, found)
    return tables


def _tables(hearing: Hearing, recording: Recording, found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    size = len(hearing.names) * hearing.runs
    whole = judged_whole(recording, hearing.whole)
    tables = []
    for place, quotas in enumerate((True, False)):
        part = found[place * size : (place + 1) * size]
        runs = {name: part[i * hearing.runs : (i + 1) * hearing.runs] for i, name in enumerate(hearing.names)}
        figures = gains(runs, with_share=not whole)
        tables.append({"about": _about(hearing, recording, quotas), "figures": figures, "runs": runs})
    tables[0]["prediction"] = _prediction(hearing, recording, found[2 * size :])
    return tables


def _prediction(hearing: Hearing, recording: Recording, found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    truth = SplitPolicy(recording, 0, whole=True).judged
    out, folds = {}, iter(found)
    for name in estimators_of(hearing.line_up):
        runs = [assemble([next(folds) for _ in range(FOLDS)], seed) for seed in range(hearing.prediction_runs)]
        out[name] = prediction_figures(runs, truth, recording.pool.environment_of)
    return out


def _about(hearing: Hearing, recording: Recording, quotas: bool) -> dict[str, Any]:
    whole = judged_whole(recording, hearing.whole)
    policy = SplitPolicy(recording, 0, whole)
    sized = scaled_config(hearing.config, len(recording.pool), policy.group_size, quotas)
    return {
        "recording": recording.name,
        "quotas": quotas,
        "tasks": len(recording.pool),
        "environments": len(recording.pool.environments),
        "policies": list(recording.policies),
        "batch_size": sized.batch_size,
        "group_size": sized.group_size,
        "steps_per_policy": hearing.steps_per_policy or default_steps(len(recording.pool), sized.batch_size),
        "rollouts_per_cell": recording.cell_size,
        "judged_by": "first picks, by the whole cell" if whole else "the other half of the cell",
        **noise_ceiling(recording, hearing.runs),
    }


def noise_ceiling(recording: Recording, runs: int) -> dict[str, float | None]:
    """What the noise of the cells allows: ``reliability``, the Spearman correlation r of one half's variances with the other
    half's (mean over policies and splits), and ``ceiling``, what knowing the true variances would reach against whole cells:
    sqrt(2 r / (1 + r)) by the formulas of Spearman and Brown. None where cells have no halves.
    """
    if recording.cell_size < MIN_CELL:
        return {"reliability": None, "ceiling": None}
    found = []
    for seed in range(runs):
        policy = SplitPolicy(recording, seed)
        known = ~np.isnan(policy.shown_variance) & ~np.isnan(policy.judged)
        found += [
            spearman(shown[ok], judged[ok])
            for shown, judged, ok in zip(policy.shown_variance, policy.judged, known, strict=True)
            if ok.sum() > 2 and np.ptp(judged[ok]) > 0
        ]
    r = float(np.mean(found)) if found else 0.0
    return {"reliability": r, "ceiling": float(np.sqrt(2 * r / (1 + r))) if r > 0 else 0.0}
