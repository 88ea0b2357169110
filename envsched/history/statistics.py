"""Decayed statistics as pure functions of the history (METHOD section 3).

Letters: N tasks, V visits, t the step now, s a past step, h a half-life, k later visits of the same task with evidence,
h_v a half-life in such visits, w = 2^(-(t - s) / h - k / h_v).
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from envsched.history.log import History, Visits

# Older weights count as 0: float64 ends at 2^-1074, and near it a quotient of two sums loses its digits.
MAX_HALF_LIVES = 900


@dataclass(frozen=True, slots=True)
class Statistics:
    """Decayed sums over the visits with evidence of each task."""

    mass: np.ndarray  # n = sum w * unit, float64 [N]
    weighted_variance: np.ndarray  # sum w * unit * v, float64 [N]
    groups: np.ndarray  # sum w, float64 [N]
    weighted_mean: np.ndarray  # sum w * unit * mean reward, float64 [N]

    @property
    def variance(self) -> np.ndarray:
        """Own variance sum w v / sum w, float64 [N]; 0 where there is no evidence."""
        return np.divide(self.weighted_variance, self.mass, out=np.zeros_like(self.mass), where=self.mass > 0)


def decay(step: int, since: np.ndarray, half_life: float) -> np.ndarray:
    """w = 2^(-(step - since) / half_life), float64 of the shape of ``since``; 0 beyond 900 half-lives."""
    age = (step - since) / half_life
    return np.where(age <= MAX_HALF_LIVES, np.exp2(-np.minimum(age, MAX_HALF_LIVES)), 0.0)


def statistics(
    history: History,
    step: int,
    half_life: float,
    unit: Literal["groups", "rollouts"] = "rollouts",
    visit_half_life: float = math.inf,
) -> Statistics:
    """What was known before ``step`` about each task's own variance.

    Args:
        half_life: in policy versions; a visit ages with the policy that made its rollouts.
        unit: what a visit adds to the mass: 1, or its number of valid rollouts.
        visit_half_life: in later visits of the same task; infinite: they take nothing from it.
    """
    return statistics_of(history.visits.before(step), step, half_life, unit, len(history.pool), visit_half_life)


def statistics_of(
    visits: Visits,
    step: int,
    half_life: float,
    unit: Literal["groups", "rollouts"],
    num_tasks: int,
    visit_half_life: float = math.inf,
) -> Statistics:
    """``statistics`` of visits that are already chosen."""
    known = ~np.isnan(visits.variance)
    row, variance, mean = visits.row[known], visits.variance[known], visits.mean[known]
    w = decay(step, visits.policy_version[known], half_life)
    if visit_half_life < math.inf:
        w *= decay(0, -later_visits(row), visit_half_life)
    n = w * visits.num_valid[known] if unit == "rollouts" else w
    return Statistics(
        mass=_sum_by(row, n, num_tasks),
        weighted_variance=_sum_by(row, n * variance, num_tasks),
        groups=_sum_by(row, w, num_tasks),
        weighted_mean=_sum_by(row, n * mean, num_tasks),
    )


def later_visits(row: np.ndarray) -> np.ndarray:
    """How many later entries of ``row`` [V] are the same, int64 [V]."""
    order = np.argsort(row, kind="stable")
    last = np.searchsorted(row[order], row, side="right") - 1
    place = np.empty(len(row), dtype=np.int64)
    place[order] = np.arange(len(row))
    return last - place


def exposures(history: History, step: int) -> np.ndarray:
    """Number of earlier steps in which each task has a record, int64 [N]."""
    return np.bincount(history.visits.before(step).row, minlength=len(history.pool)).astype(np.int64)


def decayed_exposures(history: History, step: int, half_life: float) -> np.ndarray:
    """The same with each earlier step s weighing 2^(-(step - s) / half_life), float64 [N].

    A visit counts from the step in which it was made: choosing is what is counted, and the policy's age has no part in it.
    """
    visits = history.visits.before(step)
    return _sum_by(visits.row, decay(step, visits.step, half_life), len(history.pool))


def _sum_by(row: np.ndarray, values: np.ndarray, num_tasks: int) -> np.ndarray:
    # bincount of no values at all gives integers
    return np.bincount(row, values, num_tasks).astype(np.float64, copy=False)
