"""What neighbours and environment say about a task (METHOD section 5; section 12, items 1 and 2).

Letters: N tasks, M environments, E edges; n own mass, v own variance, c what a task counts for others (min(1, decayed groups), or
1 once it was seen), s similarity, lambda the graph shrinkage, W_R = sum_j s_ij c_j v_j and m_R = sum_j s_ij c_j over relation R.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import torch

from envsched import ops
from envsched.history import Statistics
from envsched.predict.propagation import HistoryPropagation

# A remaining mass below this is what a subtraction leaves of nothing.
_NO_MASS = 1e-9


class Relation(Protocol):
    """Edges from observed sources to their neighbours."""

    @property
    def edge_index(self) -> torch.Tensor: ...  # int64 [2, E], source above target

    @property
    def edge_weight(self) -> torch.Tensor: ...  # similarity in (0, 1], [E]


class Graph(Protocol):
    """What a prior reads of ``envsched.graph.ObservedGraph``: any two relations over N tasks will do."""

    @property
    def within(self) -> Relation: ...

    @property
    def cross(self) -> Relation: ...


@dataclass(frozen=True, slots=True)
class Prior:
    """The graph prior g and its parts, all float64 [N]; a relation that says nothing shows its parent's estimate."""

    value: np.ndarray
    environment: np.ndarray
    within: np.ndarray
    within_mass: np.ndarray
    cross: np.ndarray
    cross_mass: np.ndarray


class _GraphPrior:
    """Layout of the pool, and sums over its environments and its two relations.

    Args:
        environment_of: environment row of each task, int64 [N].
        num_environments: M.
        shrinkage: lambda, the pseudo-evidence of a parent.
        prior_variance: the pool's mean before any evidence.
        relations: which of within and cross carry evidence.
    """

    def __init__(
        self,
        environment_of: np.ndarray,
        num_environments: int,
        *,
        shrinkage: float,
        prior_variance: float,
        relations: Collection[str] = ("within", "cross"),
    ) -> None:
        self.environment_of = environment_of
        self.num_environments = num_environments
        self.shrinkage = shrinkage
        self.prior_variance = prior_variance
        self.relations = frozenset(relations)
        self.propagation = HistoryPropagation(shrinkage)

    def _by_environment(self, values: np.ndarray) -> np.ndarray:
        """Sum of values [N] over the environment of each task, [N]."""
        return np.bincount(self.environment_of, values, self.num_environments)[self.environment_of]

    def _of_others(self, c: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Mean of the other tasks of the environment, shrunk by lambda to that of all other tasks, [N]."""
        others = c.sum() - c
        pool = _quotient((c @ v) - c * v, others, self.prior_variance, above=_NO_MASS)
        neighbours = self._by_environment(c) - c
        return (self._by_environment(c * v) - c * v + self.shrinkage * pool) / (neighbours + self.shrinkage)

    def _evidence(self, name: str, relation: Relation, v: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """sum_j s_ij mass_j v_j and sum_j s_ij mass_j, each [N]; nothing from a relation that is switched off."""
        if name not in self.relations:
            return np.zeros_like(v), np.zeros_like(v)
        given = torch.from_numpy(v), torch.from_numpy(mass), relation.edge_index, relation.edge_weight.to(torch.float64)
        device = "cuda" if ops.device() == "cuda" else "cpu"
        weighted, total = self.propagation.evidence(*(tensor.to(device) for tensor in given)).cpu()
        return weighted.numpy(), total.numpy()


class PaperPrior(_GraphPrior):
    """p_w shrunk to the environment's mean, p_c to the pool's, joined by mass; a task's own evidence is in its parents."""

    rule: ClassVar[str] = "paper"  # its name in kernels/forecast.py
    tells_own: ClassVar[bool] = False  # others are told what ``half_life`` remembers
    weighs_cross: ClassVar[bool] = False  # the cross relation is believed as far as its mass goes

    @staticmethod
    def count(long: Statistics) -> np.ndarray:
        """What each task counts for its neighbours: n, [N]."""
        return long.mass

    def __call__(self, long: Statistics, graph: Graph, cross_weight: float = 0.0) -> Prior:
        n, v, lam = self.count(long), long.variance, self.shrinkage
        pool = (n @ v) / n.sum() if n.sum() > 0 else self.prior_variance
        environment = (self._by_environment(n * v) + lam * pool) / (self._by_environment(n) + lam)

        W_w, m_w = self._evidence("within", graph.within, v, n)
        W_c, m_c = self._evidence("cross", graph.cross, v, n)
        p_w = (W_w + lam * environment) / (m_w + lam)
        p_c = (W_c + lam * pool) / (m_c + lam)
        g = _quotient(m_w * p_w + m_c * p_c, m_w + m_c, environment)
        return Prior(g, environment, p_w, m_w, p_c, m_c)


class PooledPrior(_GraphPrior):
    """Task-averaged means without the task itself, and one shrinkage for both relations:
    g_i = (lambda env(-i) + W_w + k_c W_c) / (lambda + m_w + k_c m_c).
    """

    rule: ClassVar[str] = "pooled"
    tells_own: ClassVar[bool] = False
    weighs_cross: ClassVar[bool] = True  # k_c is measured on past visits

    @staticmethod
    def count(long: Statistics) -> np.ndarray:
        """What each task counts for its neighbours: c, [N]."""
        return np.minimum(1, long.groups)

    def __call__(self, long: Statistics, graph: Graph, cross_weight: float = 0.0) -> Prior:
        c, v, lam, k_c = self.count(long), long.variance, self.shrinkage, cross_weight
        environment = self._of_others(c, v)

        W_w, m_w = self._evidence("within", graph.within, v, c)
        W_c, m_c = self._evidence("cross", graph.cross, v, c)
        g = (lam * environment + W_w + k_c * W_c) / (lam + m_w + k_c * m_c)
        return Prior(g, environment, _quotient(W_w, m_w, environment), m_w, _quotient(W_c, m_c, environment), m_c)


class ResidualPrior(_GraphPrior):
    """What neighbours show beyond their own environments, told by every task that was ever seen:

        r_j = v_j - env(-j),    R_i = sum_j s_ij c_j r_j / (sum_j s_ij c_j + lambda_r) for each relation,
        g_i = (1 + beta) max(0, env(-i) + R_w + R_c) + kappa sd,

    c_j 1 for a task with own evidence, v_j what it remembers of itself, sd the spread of v over those tasks. An environment and
    a topology move a task both, so that what neighbours add is a difference. A mean over all that was ever seen is not one over
    what was just chosen; the optimism that such a mean had by chance, and that sends the lanes to new tasks, is here by beta and kappa.

    Args:
        residual_shrinkage: lambda_r.
        optimism: beta.
        optimism_spread: kappa.
    """

    rule: ClassVar[str] = "residual"
    tells_own: ClassVar[bool] = True  # others are told what a task remembers of itself
    weighs_cross: ClassVar[bool] = False

    def __init__(self, *layout: Any, residual_shrinkage: float, optimism: float, optimism_spread: float, **given: Any) -> None:
        super().__init__(*layout, **given)
        self.residual_shrinkage = residual_shrinkage
        self.optimism = optimism
        self.optimism_spread = optimism_spread

    @staticmethod
    def count(own: Statistics) -> np.ndarray:
        """What each task counts for its neighbours: 1 once it has own evidence, [N]."""
        return (own.mass > 0).astype(np.float64)

    def __call__(self, own: Statistics, graph: Graph, cross_weight: float = 0.0) -> Prior:
        c, v = self.count(own), own.variance
        environment = self._of_others(c, v)
        beyond = v - environment
        W_w, m_w = self._evidence("within", graph.within, beyond, c)
        W_c, m_c = self._evidence("cross", graph.cross, beyond, c)
        R_w, R_c = W_w / (m_w + self.residual_shrinkage), W_c / (m_c + self.residual_shrinkage)
        g = (1 + self.optimism) * np.maximum(0, environment + R_w + R_c) + self.lift(c, v)
        return Prior(g, environment, environment + R_w, m_w, environment + R_c, m_c)

    def lift(self, c: np.ndarray, v: np.ndarray) -> float:
        """kappa sd."""
        mass = c.sum()
        return self.optimism_spread * math.sqrt(c @ (v - (c @ v) / mass) ** 2 / mass) if mass > 0 else 0.0


def _quotient(total: np.ndarray, mass: np.ndarray, otherwise: np.ndarray | float, above: float = 0.0) -> np.ndarray:
    """total / mass where there is mass, else ``otherwise``; all [N]."""
    known = mass > above
    return np.where(known, total / np.where(known, mass, 1), otherwise)
