"""VCRL (arXiv 2509.19803): keep groups of high variance, refill from a bank of tasks that had it.

Letters: N tasks, B batch, G rollouts.
"""

import numpy as np

from envsched.baselines.ranked import Groups, RankedScheduler


class VCRL(RankedScheduler):
    """A candidate batch is rolled out, groups whose normalised variance is below ``kappa`` are dropped, and as many tasks
    come from the bank instead.

    Dropped groups were rolled out, so they are charged: at B groups per step in total, the bank's share of a step is
    the number dropped in the step before, and every group counts in the court's means. The bank holds each kept task
    with priority p <- momentum p + (1 - momentum) variance; a task leaves it when its variance falls below ``kappa``.
    kappa rises from .3 to .8 after 20 steps as published. Its formula k (G - k) / (G (G - 1)) is binary; for fractional
    rewards this is the sample variance over its maximum.
    """

    title = "vcrl"
    kappa_early, kappa_late, early_steps, momentum = 0.3, 0.8, 20, 0.9

    def start(self) -> None:
        self.bank = np.full(len(self.pool), -np.inf)
        self.num_dropped = 0

    def priority(self, step: int, rng: np.random.Generator) -> np.ndarray:
        banked = np.isfinite(self.bank)
        num = min(self.num_dropped, int(banked.sum()))
        best = np.argsort(-self.bank, kind="stable")[:num]
        priority = np.where(banked, 0.0, rng.random(len(self.bank)))  # a banked task comes from the bank or not at all...
        if int((~banked).sum()) < self.config.batch_size - num:
            priority = rng.random(len(self.bank))  # ...unless too few others are left
        priority[best] = 1.0 + self.bank[best]
        return priority

    def learn(self, groups: Groups) -> None:
        kappa = self.kappa_early if groups.step < self.early_steps else self.kappa_late
        self.num_dropped = 0
        for row, variance, rewards in zip(groups.row, groups.variance, groups.rewards, strict=True):
            share = normalised_variance(variance, len(rewards), self.config.reward_range, self.config.ddof)
            if not share >= kappa:  # NaN is no evidence: dropped
                self.num_dropped += 1
                self.bank[row] = -np.inf
            elif np.isfinite(self.bank[row]):
                self.bank[row] = self.momentum * self.bank[row] + (1 - self.momentum) * share
            else:
                self.bank[row] = share


def normalised_variance(variance: float, num_valid: int, reward_range: float, ddof: int) -> float:
    """Variance over the largest that ``num_valid`` rewards can have: half of them at each end of the range."""
    n = num_valid
    if n < 2:
        return float("nan")
    largest = reward_range**2 * (n // 2) * (n - n // 2) / (n * (n - ddof))
    return variance / largest
