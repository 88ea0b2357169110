"""SFL / LILO (arXiv 2408.15099, 2502.12272): sampling for learnability.

Letters: N tasks, B batch, K buffer size, p mean reward of a task's last group.
"""

import numpy as np

from envsched.baselines.ranked import Groups, RankedScheduler


class SFL(RankedScheduler):
    """Half of each batch from a buffer of the K most learnable tasks, p (1 - p), half uniform.

    As published, learnability comes from extra rollouts of sampled tasks, made every ``refresh`` steps. Here they are charged:
    a refresh step spends its whole batch on tasks drawn uniformly, which only fill the buffer's scores, and the groups of the uniform half
    score their tasks as well. The buffer changes at a refresh alone.
    """

    title = "sfl"
    buffer_size, buffer_share, refresh = 256, 0.5, 10

    def start(self) -> None:
        self.learnability = np.full(len(self.pool), np.nan)
        self.buffer = np.empty(0, dtype=np.int64)

    def priority(self, step: int, rng: np.random.Generator) -> np.ndarray:
        priority = rng.random(len(self.learnability))
        if step % self.refresh and len(self.buffer):
            num = min(round(self.buffer_share * self.config.batch_size), len(self.buffer))
            priority[rng.choice(self.buffer, num, replace=False)] += 1
        return priority

    def learn(self, groups: Groups) -> None:
        p = self.scaled(groups.mean)
        known = ~np.isnan(p)
        self.learnability[groups.row[known]] = (p * (1 - p))[known]
        if groups.step % self.refresh == 0:
            scored = np.flatnonzero(~np.isnan(self.learnability))
            self.buffer = scored[np.argsort(-self.learnability[scored], kind="stable")][: self.buffer_size]
