"""Quotas of a batch (METHOD 8), what the history says about them, and how they are relaxed.

Letters: N tasks, M environments, B batch, V visits, t step now, C1 cap per environment and step, C3 cap per environment
and window, C_task cap of steps in a row for one task.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from envsched.types import Relaxation

RELAXATION_ORDER = ("max_consecutive", "max_per_environment_window", "max_per_environment", "filters")


@dataclass(frozen=True, slots=True)
class Quotas:
    """Hard limits on one batch; ``filters`` 0 shuts masked tasks out, 1 lets them in."""

    max_consecutive: int  # C_task
    max_per_environment_window: int  # C3
    max_per_environment: int  # C1
    filters: int = 0


@dataclass(frozen=True, slots=True)
class Recent:
    """What the steps before t count for. A task with a record at step s was selected at s."""

    window: np.ndarray  # int64 [M], picks of an environment in the window, t left out
    carried: np.ndarray  # int64 [M], those of them that still count at t + 1
    streak: np.ndarray  # int64 [N], steps in a row, up to t - 1, in which a task was selected
    window_steps: int  # steps of the window, t included


def recent_picks(
    rows: np.ndarray, steps: np.ndarray, step: int, environment_of: np.ndarray, num_environments: int, window_steps: int
) -> Recent:
    """Read windows and streaks off the visits.

    Args:
        rows, steps: task and step of each visit, int64 [V], in any order; each pair once.
        step: t; visits at t or later are not looked at.
        environment_of: int64 [N].
        window_steps: steps of the environment window, t included.
    """

    def counted(first: int) -> np.ndarray:
        inside = (steps >= first) & (steps < step)
        return np.bincount(environment_of[rows[inside]], minlength=num_environments)

    streak = np.zeros(len(environment_of), dtype=np.int64)
    running = np.ones(len(environment_of), dtype=bool)
    for past in range(step - 1, -1, -1):
        selected = np.zeros_like(running)
        selected[rows[steps == past]] = True
        running &= selected
        if not running.any():
            break
        streak += running
    return Recent(counted(step - window_steps + 1), counted(step - window_steps + 2), streak, window_steps)


def open_tasks(quotas: Quotas, recent: Recent, masked: np.ndarray) -> np.ndarray:
    """Tasks that C_task and the filters let in, bool [N]."""
    rested = recent.streak < quotas.max_consecutive
    return rested if quotas.filters else rested & ~masked


def slots(quotas: Quotas, recent: Recent) -> np.ndarray:
    """Picks that C1 and C3 leave to each environment, int64 [M]; negative where the window is overdrawn."""
    return np.minimum(quotas.max_per_environment, quotas.max_per_environment_window - recent.window)


def capacity(quotas: Quotas, recent: Recent, masked: np.ndarray, environment_of: np.ndarray) -> int:
    """How many picks the quotas allow together at this step."""
    left = slots(quotas, recent)
    tasks = np.bincount(environment_of[open_tasks(quotas, recent, masked)], minlength=len(left))
    return int(np.minimum(left, tasks).clip(0).sum())


def relax(quotas: Quotas, recent: Recent, masked: np.ndarray, environment_of: np.ndarray, needed: int) -> tuple[Quotas, list[Relaxation]]:
    """The nearest quotas under which ``needed`` picks exist, and what was raised and why.

    Quotas fall in the order C_task, C3, C1, filters until enough picks exist; then each is drawn back as far as it can be,
    the last in that order first. So a quota that does not help is not touched, and no limit is higher than it must be.

    Args:
        needed: B <= N picks.
    """

    def fits(candidate: Quotas) -> bool:
        return capacity(candidate, recent, masked, environment_of) >= needed

    if fits(quotas):
        return quotas, []
    widest = _without_limits(quotas, recent, environment_of)
    relaxed = quotas
    for name in RELAXATION_ORDER:
        if fits(relaxed):
            break
        relaxed = replace(relaxed, **{name: getattr(widest, name)})
    for name in reversed(RELAXATION_ORDER):
        relaxed = replace(relaxed, **{name: _lowest(relaxed, name, getattr(quotas, name), fits)})
    possible = capacity(quotas, recent, masked, environment_of)
    return relaxed, [
        Relaxation(name, f"the quotas leave {possible} of {needed} picks; {_raised(name, getattr(quotas, name), getattr(relaxed, name))}")
        for name in RELAXATION_ORDER
        if getattr(relaxed, name) > getattr(quotas, name)
    ]


def _without_limits(quotas: Quotas, recent: Recent, environment_of: np.ndarray) -> Quotas:
    largest = int(np.bincount(environment_of).max())
    return Quotas(
        max_consecutive=max(quotas.max_consecutive, int(recent.streak.max()) + 1),
        max_per_environment_window=max(quotas.max_per_environment_window, int(recent.window.max()) + largest),
        max_per_environment=max(quotas.max_per_environment, largest),
        filters=1,
    )


def _lowest(quotas: Quotas, name: str, configured: int, fits: Callable[[Quotas], bool]) -> int:
    choices = range(configured, getattr(quotas, name) + 1)
    return choices[bisect_left(choices, True, key=lambda limit: fits(replace(quotas, **{name: limit})))]


def _raised(name: str, configured: int, limit: int) -> str:
    return "masked tasks are let in" if name == "filters" else f"raised from {configured} to {limit}"
