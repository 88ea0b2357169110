"""In which order a batch is rolled out: one environment after the other, those with long episodes first.

Rollouts of one environment share the prompt's tool schemas, so side by side they hit the engine's prefix cache; and what takes
longest should not start last. The batch itself, its manifest and its records keep the scheduler's order.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean, linear_regression

from envsched.pool import Pool
from envsched.types import RolloutRecord


class LengthForecast:
    """Tokens that a rollout of a task will probably write: the task's last mean, else what its prompt's length says: the
    least-squares line of last means on characters over the tasks seen so far. (What an environment's other tasks wrote says
    next to nothing: tasks of one environment differ by how much they ask for.)
    """

    def __init__(self, pool: Pool) -> None:
        self._environment_of = {task.key: task.environment for task in pool.tasks}
        self._characters_of = {task.key: len(task.prompt) for task in pool.tasks}
        self._of_task: dict[str, float] = {}
        self._line = (0.0, 0.0)

    def observe(self, records: Iterable[RolloutRecord]) -> None:
        """Take in the token counts of rollouts; those without any, and those of tasks that the pool no longer has, tell nothing."""
        known = (record for record in records if record.tokens and record.task in self._environment_of)
        self._of_task |= {record.task: fmean(record.tokens) for record in known}
        self._line = _fit_line([self._characters_of[task] for task in self._of_task], list(self._of_task.values()))

    def tokens(self, task: str) -> float:
        """Expected tokens; 0 before any observation."""
        intercept, slope = self._line
        return self._of_task.get(task, intercept + slope * self._characters_of[task])

    def order(self, tasks: Sequence[str]) -> list[str]:
        """Environments by their longest task, longest first; in each its tasks likewise; ties in the order given."""
        longest: dict[str, float] = defaultdict(float)
        for task in tasks:
            environment = self._environment_of[task]
            longest[environment] = max(longest[environment], self.tokens(task))
        first = {environment: place for place, environment in reversed(list(enumerate(self._environment_of[task] for task in tasks)))}
        return sorted(tasks, key=lambda t: (-longest[self._environment_of[t]], first[self._environment_of[t]], -self.tokens(t)))


def _fit_line(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Intercept and slope by least squares; level where x has no spread, 0 without any pair."""
    if not x:
        return 0.0, 0.0
    slope = linear_regression(x, y).slope if min(x) < max(x) else 0.0
    return fmean(y) - slope * fmean(x), slope
