"""The randomness of one step: numbers that follow from (seed, step) and from nothing else."""

import numpy as np


class Draws:
    """A stream of numbers made from raw Philox words, so that no release of numpy changes a batch.

    Args:
        seed: of the run, 0 <= seed < 2**64.
        step: of the batch, >= 0.
    """

    def __init__(self, seed: int, step: int) -> None:
        self._words = np.random.Philox(key=np.array([seed, step], dtype=np.uint64))

    def order(self, count: int) -> np.ndarray:
        """A permutation of 0..count-1, int64 [count]."""
        return np.argsort(self._words.random_raw(count), kind="stable") if count else np.empty(0, dtype=np.int64)

    def uniform(self, count: int) -> np.ndarray:
        """Numbers in [0, 1), float64 [count], of 53 bits each."""
        return (self._words.random_raw(count) >> np.uint64(11)) * 2.0**-53 if count else np.empty(0)
