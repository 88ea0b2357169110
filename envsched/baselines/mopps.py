"""MoPPS (arXiv 2507.04632, KDD'26): Thompson sampling toward success rate one half.

Letters: N tasks, G rollouts, s mean reward of a group, a and b Beta parameters.
"""

import numpy as np

from envsched.baselines.ranked import Groups, RankedScheduler


class MoPPS(RankedScheduler):
    """Draw a success rate per task from Beta(a, b); take the B nearest to ``target``.

        a <- lam a + (1 - lam) + s G,   b <- lam b + (1 - lam) + (1 - s) G,   prior (1, 1), lam = 1

    G is the number of valid rollouts. Its public code has an operator-precedence slip at G = 1; this one has none.
    """

    title = "mopps"
    lam, target = 1.0, 0.5

    def start(self) -> None:
        self.a, self.b = np.ones(len(self.pool)), np.ones(len(self.pool))

    def priority(self, step: int, rng: np.random.Generator) -> np.ndarray:
        return -np.abs(rng.beta(self.a, self.b) - self.target)

    def learn(self, groups: Groups) -> None:
        for row, rewards in zip(groups.row, groups.rewards, strict=True):
            if rewards:
                solved = float(self.scaled(np.array(rewards)).sum())
                self.a[row] = self.lam * self.a[row] + (1 - self.lam) + solved
                self.b[row] = self.lam * self.b[row] + (1 - self.lam) + len(rewards) - solved
