"""The ceiling: the true variance is known. Only a simulator or a replay can reveal it.

Letters: N tasks, M environments, B batch.
"""

import numpy as np

from envsched.baselines.ranked import Groups, RankedScheduler
from envsched.config import SchedulerConfig
from envsched.pool import Pool
from envsched.select import mix_of


class Oracle(RankedScheduler):
    """Top B by true variance under the quotas of the config. ``reveal`` it before each ``select``."""

    title = "oracle"

    def __init__(self, pool: Pool, config: SchedulerConfig = SchedulerConfig(), seed: int = 0, name: str | None = None) -> None:
        super().__init__(pool, config, seed, name)
        self.truth = np.zeros(len(pool))

    def reveal(self, variance: np.ndarray) -> None:
        """The true variance [N] of one rollout under the present policy."""
        self.truth = np.asarray(variance, dtype=float)

    def priority(self, step: int, rng: np.random.Generator) -> np.ndarray:
        return self.truth


class CoverageOracle(Oracle):
    """The ceiling of the half-and-half rule: our coverage lane (``mix_of``: smaller where few batches sweep the pool) goes to the
    environments with the fewest exposures decayed with ``half_life``, each to its task of highest true variance; the rest by true
    variance."""

    title = "oracle_coverage"

    def start(self) -> None:
        self.exposures = np.zeros(len(self.pool.environments))
        self.as_of = 0

    def priority(self, step: int, rng: np.random.Generator) -> np.ndarray:
        num = round(mix_of(self.config, len(self.pool)).coverage_share * self.config.batch_size)
        best = [
            start + int(np.argmax(self.truth[start:end]))
            for start, end in zip(self.pool.offsets, self.pool.offsets[1:], strict=False)
            if end > start
        ]
        exposures = self.exposures[self.pool.environment_of[best]]
        first = np.lexsort((rng.random(len(best)), exposures))[:num]
        priority = self.truth.copy()
        priority[np.array(best)[first]] += 1e6
        return priority

    def learn(self, groups: Groups) -> None:
        self.exposures *= 0.5 ** ((groups.step + 1 - self.as_of) / self.config.half_life)
        self.as_of = groups.step + 1
        np.add.at(self.exposures, self.pool.environment_of[groups.row], 0.5 ** (1 / self.config.half_life))
