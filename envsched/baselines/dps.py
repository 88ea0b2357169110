"""Dynamics-Predictive Sampling (arXiv 2603.10887): a hidden Markov belief of three states per task.

Letters: N tasks, states 0 unsolved, 1 partly solved, 2 solved; e one-hot of the state seen, pi belief, P transition matrix.
"""

import numpy as np

from envsched.baselines.ranked import Groups, RankedScheduler

SAME = 0.1  # a group is unsolved (solved) where every reward lies within this share of the range from the bottom (top)


class DPS(RankedScheduler):
    """Top B by the believed probability of being partly solved.

    Per task a Dirichlet ``alpha`` [3, 3] (column = from), a belief pi and the belief before it. Each step, with forgetting
    lam and P = alpha / column sums,

        observed:   xi = (e x prev) o P / sum,  alpha <- lam alpha + (1 - lam) alpha0 + xi,  prev <- e,   pi <- P e
        otherwise:                              alpha <- lam alpha + (1 - lam) alpha0,       prev <- pi,  pi <- P pi

    with P taken from the new alpha. lam = 1 and alpha0 = 1 as published. Where its public code compares float rewards for
    equality and breaks ties by dataset order, this one uses thresholds (``SAME``), so that fractional rewards have states at
    all, and ties in a seeded random order. A step without any record changes nothing.
    """

    title = "dps"
    lam = 1.0

    def start(self) -> None:
        n = len(self.pool)
        self.alpha = np.ones((n, 3, 3))
        self.belief = np.full((n, 3), 1 / 3)
        self.before = np.full((n, 3), 1 / 3)

    def priority(self, step: int, rng: np.random.Generator) -> np.ndarray:
        return self.belief[:, 1]

    def learn(self, groups: Groups) -> None:
        valid = [i for i, rewards in enumerate(groups.rewards) if rewards]
        row = groups.row[valid]
        seen = np.eye(3)[[self._state(groups.rewards[i]) for i in valid]].reshape(-1, 3)
        joint = seen[:, :, None] * self.before[row, None, :] * _transition(self.alpha[row])
        self.alpha = self.lam * self.alpha + (1 - self.lam)
        self.alpha[row] += joint / joint.sum(axis=(1, 2), keepdims=True)
        self.before, here = self.belief.copy(), self.belief.copy()
        self.before[row] = here[row] = seen
        self.belief = np.einsum("nij,nj->ni", _transition(self.alpha), here)

    def _state(self, rewards: tuple[float, ...]) -> int:
        scaled = self.scaled(np.array(rewards))
        if scaled.max() <= SAME:
            return 0
        return 2 if scaled.min() >= 1 - SAME else 1


def _transition(alpha: np.ndarray) -> np.ndarray:
    return alpha / alpha.sum(axis=1, keepdims=True)
