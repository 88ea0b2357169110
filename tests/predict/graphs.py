"""A brute-force dual-relation graph: the truth that predictions are tested on, by sorting every candidate.

It has the same face as ``envsched.graph.ObservedGraph`` and takes similarities as a plain matrix.
"""

from dataclasses import dataclass

import numpy as np
import torch


@dataclass
class Edges:
    edge_index: torch.Tensor
    edge_weight: torch.Tensor


class BruteForceGraph:
    def __init__(self, similarity: np.ndarray, environment_of: np.ndarray, num_within: int, num_cross: int) -> None:
        self.similarity = similarity
        self.environment_of = environment_of
        self.counts = {True: num_within, False: num_cross}
        self.reset()

    def reset(self) -> None:
        self.observed: set[int] = set()
        self.within = self._edges(same=True)
        self.cross = self._edges(same=False)

    def observe(self, rows: np.ndarray) -> None:
        assert not self.observed & set(map(int, rows)), "observed twice"
        self.observed |= set(map(int, rows))
        self.within = self._edges(same=True)
        self.cross = self._edges(same=False)

    def neighbours(self, i: int, same: bool) -> list[tuple[int, float]]:
        """(source, weight) of target i, best first."""
        candidates = [j for j in self.observed if j != i and (self.environment_of[i] == self.environment_of[j]) == same]
        best = sorted(candidates, key=lambda j: (-self.similarity[i, j], j))[: self.counts[same]]
        weighted = [(j, min(1.0, max(0.0, float(self.similarity[i, j])))) for j in best]
        return [(j, weight) for j, weight in weighted if weight > 0]

    def _edges(self, same: bool) -> Edges:
        triples = [(j, i, weight) for i in range(len(self.environment_of)) for j, weight in self.neighbours(i, same)]
        index = torch.tensor([[j for j, _, _ in triples], [i for _, i, _ in triples]], dtype=torch.int64)
        return Edges(index, torch.tensor([weight for *_, weight in triples], dtype=torch.float64))
