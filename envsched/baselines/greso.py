"""GRESO (arXiv 2506.02177): pass over the tasks in epochs, skip those whose groups keep showing nothing.

Letters: N tasks, B batch, z length of a trailing run.
"""

import numpy as np

from envsched.baselines.ranked import Groups, RankedScheduler


class GRESO(RankedScheduler):
    """Tasks in shuffled order, epoch after epoch; a task whose last z groups were all easy (mean >= .98) or all hard
    (mean <= .11) is skipped with probability 1 - max(p^z, .01), p that of its kind.

    After a step, p of a kind falls by .01 where its share of the groups exceeds the target (a twelfth easy, a sixth
    hard) and rises by .01 where not, within [.05, .95]. A skipped task waits for the next epoch. Its public code tests for zero
    variance by float equality; the thresholds on means here are its paper's intent for fractional rewards.
    """

    title = "greso"
    easy_from, hard_to, floor, change, low, high = 0.98, 0.11, 0.01, 0.01, 0.05, 0.95
    target = (1 / 12, 1 / 6)  # easy, hard

    def start(self) -> None:
        n = len(self.pool)
        self.run = np.zeros((n, 2), dtype=np.int64)  # trailing easy, hard groups
        self.probability = np.array([0.5, 0.5])
        self.passes = np.zeros(n, dtype=np.int64)  # epochs in which a task was taken or skipped

    def priority(self, step: int, rng: np.random.Generator) -> np.ndarray:
        kept, _ = self._walk(step)
        priority = np.full(len(self.passes), -np.inf)
        priority[kept] = -np.arange(len(kept))
        return priority

    def learn(self, groups: Groups) -> None:
        kept, skipped = self._walk(groups.step)
        last = max((place for place, row in enumerate(kept) if row in set(groups.row.tolist())), default=-1)
        for row, num_kept_before in skipped:
            self.passes[row] += num_kept_before <= last
        self.passes[groups.row] += 1
        mean = self.scaled(groups.mean)
        kinds = np.stack([mean >= self.easy_from, mean <= self.hard_to], axis=1)
        self.run[groups.row] = np.where(kinds, self.run[groups.row] + 1, 0)
        too_many = kinds.mean(axis=0) > self.target
        self.probability = np.clip(self.probability + np.where(too_many, -self.change, self.change), self.low, self.high)

    def _walk(self, step: int) -> tuple[list[int], list[tuple[int, int]]]:
        """Rows in the order of the epoch that pass the test, up to 2 B (quotas may refuse some), and those that were skipped,
        each with the number kept before it. A pure function of the state and (seed, step): ``learn`` walks it again."""
        rng = np.random.Generator(np.random.Philox(key=[self.seed, step]))
        wanted = min(2 * self.config.batch_size, len(self.passes))
        kept: list[int] = []
        skipped: list[tuple[int, int]] = []
        passes, waiting = self.passes.copy(), np.ones(len(self.passes), dtype=bool)
        while len(kept) < wanted:
            epoch = passes[waiting].min()
            front = [row for row in self._shuffle(int(epoch)) if waiting[row] and passes[row] == epoch]
            for row in front:
                if rng.random() < self._chance(row):
                    kept.append(int(row))
                    waiting[row] = False
                else:
                    skipped.append((int(row), len(kept)))
                    passes[row] += 1
                if len(kept) == wanted:
                    break
        return kept, skipped

    def _chance(self, row: int) -> float:
        """Probability of not being skipped."""
        easy, hard = self.run[row]
        if not easy and not hard:
            return 1.0
        return max(float(self.probability[0] ** easy if easy else self.probability[1] ** hard), self.floor)

    def _shuffle(self, epoch: int) -> np.ndarray:
        return np.random.Generator(np.random.Philox(key=[self.seed, (1 << 40) + epoch])).permutation(len(self.passes))
