"""AdaRFT (arXiv 2504.05520): follow a target difficulty.

Letters: N tasks, B batch, T target difficulty.
"""

import numpy as np

from envsched.baselines.ranked import Groups, RankedScheduler
from envsched.config import SchedulerConfig
from envsched.pool import Pool


class AdaRFT(RankedScheduler):
    """The B tasks whose static difficulty in [0, 100] is nearest to T; T starts at 0.

        T <- clip(T + 50 tanh(2 (mean reward of the step - .5)), 0, 100)

    Args:
        difficulty: float [N]; the paper's comes from a reference policy's failures (the simulator gives it exactly that). Without it, the
            pool's own statistics: the mean percentile of a task's number of checks and length of prompt.
    """

    title = "adarft"
    step_size, sensitivity, goal = 50.0, 2.0, 0.5

    def __init__(
        self,
        pool: Pool,
        config: SchedulerConfig = SchedulerConfig(),
        seed: int = 0,
        name: str | None = None,
        difficulty: np.ndarray | None = None,
    ) -> None:
        super().__init__(pool, config, seed, name)
        self.difficulty = static_difficulty(pool) if difficulty is None else np.asarray(difficulty, dtype=float)

    def start(self) -> None:
        self.target = 0.0

    def priority(self, step: int, rng: np.random.Generator) -> np.ndarray:
        return -np.abs(self.difficulty - self.target)

    def learn(self, groups: Groups) -> None:
        means = self.scaled(groups.mean[~np.isnan(groups.mean)])
        if len(means):
            self.target = float(np.clip(self.target + self.step_size * np.tanh(self.sensitivity * (means.mean() - self.goal)), 0, 100))


def static_difficulty(pool: Pool) -> np.ndarray:
    """Mean percentile [N], 0 to 100, of checks and prompt length."""
    sizes = np.array([[len(task.checks), len(task.prompt)] for task in pool.tasks], dtype=float)
    below = [(np.searchsorted(np.sort(column), column) / max(len(column) - 1, 1)) for column in sizes.T]
    return 100 * np.mean(below, axis=0)
