"""SEC, self-evolving curriculum (arXiv 2505.14970): a bandit over categories; here a category is an environment.

Letters: N tasks, M environments, A advantage, Q value of an environment.
"""

import numpy as np

from envsched.baselines.ranked import Groups, RankedScheduler


class SEC(RankedScheduler):
    """Draw an environment by softmax(Q / tau), then one of its tasks uniformly; B times, each task at most once.

        Q(c) <- (1 - rate) Q(c) + rate * mean of |A| over the groups of c in this step,   A = (r - mean) / standard deviation

    rate = .5, tau = .5 (.2 to 1 in the paper). Its public code also decays the environments that were not drawn by
    (1 - rate); ``decay_absent`` does, and is off. A group without spread has A = 0.
    """

    title = "sec"
    rate, tau, decay_absent = 0.5, 0.5, False

    def start(self) -> None:
        self.value = np.zeros(len(self.pool.environments))

    def priority(self, step: int, rng: np.random.Generator) -> np.ndarray:
        """Draws in sequence, by Gumbel: task i's place is that of its environment's k-th draw, for the k-th of its tasks."""
        environment_of, counts = self.pool.environment_of, np.diff(self.pool.offsets)
        weight = np.exp((self.value - self.value.max()) / self.tau)
        # The draws of an environment are a Poisson process whose rate is its weight: its k-th draw comes after k exponentials.
        waits = rng.exponential(size=len(environment_of)) / weight[environment_of]
        arrival = np.cumsum(waits)
        arrival -= np.concatenate([[0.0], arrival])[self.pool.offsets[:-1]].repeat(counts)
        shuffled = np.lexsort((rng.random(len(environment_of)), environment_of))
        priority = np.empty(len(environment_of))
        priority[shuffled] = -arrival
        return priority

    def learn(self, groups: Groups) -> None:
        environment_of = self.pool.environment_of[groups.row]
        size = np.array([_mean_advantage(rewards) for rewards in groups.rewards])
        if self.decay_absent:
            absent = np.setdiff1d(np.arange(len(self.value)), environment_of)
            self.value[absent] *= 1 - self.rate
        for e in np.unique(environment_of):
            found = size[environment_of == e]
            found = found[~np.isnan(found)]
            if len(found):
                self.value[e] = (1 - self.rate) * self.value[e] + self.rate * found.mean()


def _mean_advantage(rewards: tuple[float, ...]) -> float:
    if not rewards:
        return float("nan")
    values = np.array(rewards)
    if np.ptp(values) <= 1e-9:
        return 0.0
    return float(np.mean(np.abs(values - values.mean())) / values.std())
