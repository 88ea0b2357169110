"""Prioritized Level Replay (arXiv 2010.03934), written from the paper: its public code is CC-BY-NC and was not read.

Letters: N tasks, B batch, b temperature of ranks, r weight of staleness.
"""

import numpy as np

from envsched.baselines.ranked import Groups, RankedScheduler


class PLR(RankedScheduler):
    """Replay seen tasks by P = (1 - r) rank^(-1/b) + r staleness (each part normalised), each at most once; b = .1, r = .1.

    A batch of B distinct tasks from that mixture: each pick comes from the ranks with chance 1 - r, else from the staleness, and
    inside a part without replacement. (Drawing all B without replacement from the mixed P would leave the ranks no say after
    a handful of picks: at b = .1 nearly all of their mass lies on the first.)

    The score that ranks is the learning potential of a task's last group: here the standard deviation of its rewards.
    Staleness is the number of steps since the last visit. ``unseen_share`` of the batch is drawn uniformly from tasks never
    seen while there are any (all of it at the start).
    """

    title = "plr"
    temperature, staleness_weight, unseen_share = 0.1, 0.1, 0.5

    def start(self) -> None:
        self.score = np.full(len(self.pool), np.nan)
        self.last = np.full(len(self.pool), -1)

    def priority(self, step: int, rng: np.random.Generator) -> np.ndarray:
        size, seen = self.config.batch_size, self.last >= 0
        num_unseen = min(int((~seen).sum()), max(round(self.unseen_share * size), size - int(seen.sum())))
        priority = np.full(len(seen), -3.0)  # unseen beyond their share: last
        priority[rng.permutation(np.flatnonzero(~seen))[:num_unseen]] = 1.0
        replayed = np.flatnonzero(seen)
        by_score, stale = self.parts(step)
        # Gumbel-top-k draws without replacement; a coin says for each place in the batch which part fills it
        score_order = replayed[np.argsort(-(np.log(by_score) + rng.gumbel(size=len(replayed))), kind="stable")]
        stale_order = replayed[np.argsort(-(np.log(stale) + rng.gumbel(size=len(replayed))), kind="stable")]
        from_stale = rng.random(len(replayed)) < self.staleness_weight
        order = np.where(from_stale, stale_order[np.cumsum(from_stale) - 1], score_order[np.cumsum(~from_stale) - 1])
        merged = list(dict.fromkeys([*order.tolist(), *score_order.tolist()]))  # each task at its first place
        priority[merged] = -np.linspace(0, 1, len(merged))
        return priority

    def parts(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities by rank and by staleness, each over the seen tasks in order of rows and summing to 1."""
        seen = np.flatnonzero(self.last >= 0)
        rank = np.empty(len(seen))
        rank[np.argsort(-self.score[seen], kind="stable")] = np.arange(1, len(seen) + 1)
        by_score = rank ** (-1 / self.temperature)
        stale = (step - self.last[seen]).astype(float)
        return by_score / by_score.sum(), stale / stale.sum()

    def learn(self, groups: Groups) -> None:
        self.score[groups.row] = np.sqrt(np.nan_to_num(groups.variance))
        self.last[groups.row] = groups.step
