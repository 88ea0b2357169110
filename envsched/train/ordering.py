"""In which order a batch is rolled out: one environment after the other, those with long episodes first.

Rollouts of one environment share the prompt's tool schemas, so side by side they hit the engine's prefix cache; and what takes
longest should not start last. The batch itself, its manifest and its records keep the scheduler's order.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean

from envsched.pool import Pool
from envsched.types import RolloutRecord


class LengthForecast:
    """Tokens that a rollout of a task will probably write: the task's last mean, else its environment's, else all tasks'."""

    def __init__(self, pool: Pool) -> None:
        self._environment_of = {task.key: task.environment for task in pool.tasks}
        self._of_task: dict[str, float] = {}
        self._of_environment: dict[str, list[float]] = defaultdict(list)

    def observe(self, records: Iterable[RolloutRecord]) -> None:
        """Take in the token counts of rollouts; those without any tell nothing."""
        for record in records:
            if record.tokens:
                self._of_task[record.task] = fmean(record.tokens)
                self._of_environment[self._environment_of[record.task]].append(self._of_task[record.task])

    def tokens(self, task: str) -> float:
        """Expected tokens; 0 before any observation."""
        if task in self._of_task:
            return self._of_task[task]
        seen = self._of_environment.get(self._environment_of[task]) or list(self._of_task.values())
        return fmean(seen) if seen else 0.0

    def order(self, tasks: Sequence[str]) -> list[str]:
        """Environments by their longest task, longest first; in each its tasks likewise; ties in the order given."""
        longest: dict[str, float] = defaultdict(float)
        for task in tasks:
            environment = self._environment_of[task]
            longest[environment] = max(longest[environment], self.tokens(task))
        first = {environment: place for place, environment in reversed(list(enumerate(self._environment_of[task] for task in tasks)))}
        return sorted(tasks, key=lambda t: (-longest[self._environment_of[t]], first[self._environment_of[t]], -self.tokens(t)))
