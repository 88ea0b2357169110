"""The predictor over a graph that keeps its neighbours as lists: all of it in one native pass.

What it gives is what ``Predictor`` gives, bit for bit; the tests hold it to that. Letters: N tasks, M environments, K slots.
"""

from functools import cached_property
from typing import Protocol

import numpy as np

from envsched import ops
from envsched.history import Statistics
from envsched.predict.predictor import Prediction, Predictor, terms_of
from envsched.predict.priors import Prior, ResidualPrior

Lists = tuple[np.ndarray, np.ndarray]


class ListedGraph(Protocol):
    """What is read of ``envsched.graph.ObservedGraph``: sources int64 [N, K] (-1: none, at the end) and weights float64 [N, K]."""

    def lists(self, relation: str) -> Lists: ...


class ListedPredictor(Predictor):
    """``Predictor`` for graphs with lists, where the native library is."""

    @cached_property
    def offsets(self) -> np.ndarray:
        """Rows of each environment, int64 [M + 1]; tasks are laid out by environment."""
        return np.searchsorted(self.prior.environment_of, np.arange(self.prior.num_environments + 1))

    def predict(self, own: Statistics, long: Statistics, short: Statistics, graph: ListedGraph, cross_weight: float = 0.0) -> Prediction:
        """As ``Predictor.predict``."""
        prior = self.prior
        told = own if prior.tells_own else long
        c, v = prior.count(told), told.variance
        residual = isinstance(prior, ResidualPrior)
        columns = {
            "mass": own.mass,
            "variance": own.variance,
            "count": c,
            "value": c * v,
            "short_mass": short.mass,
            "short_value": short.weighted_variance,
            "environment_count": np.bincount(prior.environment_of, c, prior.num_environments),
            "environment_value": np.bincount(prior.environment_of, c * v, prior.num_environments),
        }
        settings = {
            "pool_count": float(c.sum()),
            "pool_value": float(c @ v),
            "shrinkage": prior.shrinkage,
            "own_shrinkage": self.own_shrinkage,
            "decline_weight": self.decline_weight,
            "prior_variance": prior.prior_variance,
            "max_variance": self.max_variance,
            "cross_weight": cross_weight,
            **({"residual_shrinkage": prior.residual_shrinkage, "optimism": prior.optimism, "lift": prior.lift(c, v)} if residual else {}),
            "rule": prior.rule,
        }
        within, cross = (graph.lists(name) if name in prior.relations else None for name in ("within", "cross"))
        made = ops.forecast(self.offsets, within, cross, columns, settings)
        parts = Prior(made["prior"], made["environment"], made["in_within"], made["within_mass"], made["in_cross"], made["cross_mass"])
        return Prediction(made["u"], terms_of(own.mass, own.variance, parts, made["guard"], self.headroom(own)))
