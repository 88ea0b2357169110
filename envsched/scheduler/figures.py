"""What a step reports: plain floats under namespaced keys.

Letters: V visits of one step, v variance of a visit.
"""

import numpy as np

from envsched.history import Visits
from envsched.types import Batch

METRICS = {
    "reward/mean": "mean over the tasks of the last observed step of their mean reward",
    "variance/within_task_mean": "mean within-task reward variance of that step",
    "variance/zero_share": "share of its groups whose rewards are all equal",
    "batch/observed_environments": "environments with a record in that step",
    "batch/observed_tasks": "tasks with a record in that step",
    "batch/no_evidence_share": "share of its groups with fewer than two valid rollouts",
    "batch/environments": "environments in the last selected batch",
    "batch/coverage_share": "share of that batch that the cold start or the coverage lane picked",
    "batch/relaxations": "quotas that could not be kept in that batch",
    "calibration/pairs": "past pairs of predicted and realised variance",
    "calibration/spearman": "rank correlation of predicted and realised variance over recent pairs",
    "calibration/top_quartile_hit_rate": "share of the top quarter by prediction that came out in the top quartile",
    "calibration/top_quartile_chance": "the same for a random quarter",
    "calibration/zero_variance_share": "share of recent pairs without variance",
    "calibration/blend": "how far the isotonic map has taken over, 0 to 1",
    "calibration/cross_weight": "measured weight of the cross relation (k_c; 1 where the prior does not weigh it)",
    "seconds/select": "wall time of the last select",
    "seconds/observe": "wall time of the last observe",
}
"""Every key that ``metrics()`` may hold. A figure without a value yet (no record, no pair, a constant) is absent."""


def step_figures(visits: Visits, environment_of: np.ndarray) -> dict[str, float]:
    """Figures of the visits [V] of one step."""
    if not len(visits):
        return {}
    figures = {
        "batch/observed_tasks": float(len(visits)),
        "batch/observed_environments": float(len(np.unique(environment_of[visits.row]))),
        "batch/no_evidence_share": float(np.isnan(visits.variance).mean()),
    }
    means, v = visits.mean[~np.isnan(visits.mean)], visits.variance[~np.isnan(visits.variance)]
    if len(means):
        figures["reward/mean"] = float(means.mean())
    if len(v):
        figures["variance/within_task_mean"] = float(v.mean())
        figures["variance/zero_share"] = float((v == 0).mean())
    return figures


def batch_figures(batch: Batch) -> dict[str, float]:
    """Figures of a selected batch."""
    lanes = [pick.lane.value in ("cold_start", "coverage") for pick in batch.picks]
    return {
        "batch/environments": float(len({pick.environment for pick in batch.picks})),
        "batch/coverage_share": sum(lanes) / len(lanes),
        "batch/relaxations": float(len(batch.relaxed)),
    }
