"""The variance that each task would show now: own history, graph prior, fusion, guard (METHOD sections 3, 5, 6 and 12).

Letters: N tasks, M environments, n own mass, v own variance, g graph prior, u prediction, lambda_s own shrinkage.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from envsched.config import SchedulerConfig
from envsched.history import Statistics
from envsched.predict.priors import Graph, PaperPrior, PooledPrior, Prior


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predicted variance with the parts it is made of, all float64 [N].

    ``terms``: own (variance of the own history, 0 without), own_mass, environment (mean of the environment), within and
    cross (what each relation says; the parent's estimate where it says nothing), within_mass, cross_mass, prior (the
    graph prior g), guard (factor of a recent decline, 1 = none).
    """

    variance: np.ndarray
    terms: Mapping[str, np.ndarray]


class Predictor:
    """u = (n v + lambda_s g) / (n + lambda_s), clipped to what the rewards allow, cut by a recent decline.

    Args:
        prior: gives g.
        unit: what a visit adds to the mass of ``statistics``.
        own_shrinkage: lambda_s.
        decline_weight: eta.
        max_variance: v_max, the largest variance that G rewards can have.
    """

    def __init__(
        self,
        prior: PaperPrior | PooledPrior,
        *,
        unit: Literal["groups", "rollouts"],
        own_shrinkage: float,
        decline_weight: float,
        max_variance: float,
    ) -> None:
        self.prior = prior
        self.unit: Literal["groups", "rollouts"] = unit
        self.own_shrinkage = own_shrinkage
        self.decline_weight = decline_weight
        self.max_variance = max_variance

    def predict(self, long: Statistics, short: Statistics, graph: Graph, cross_weight: float = 0.0) -> Prediction:
        """Predict all N tasks at once.

        Args:
            long, short: statistics in ``unit`` with the long and the short half-life.
            graph: both relations, over tasks observed before now.
            cross_weight: k_c, how far the cross relation is believed; the paper's prior believes it fully.
        """
        n, v, lambda_s = long.mass, long.variance, self.own_shrinkage
        prior = self.prior(long, graph, cross_weight)
        fused = (n * v + lambda_s * prior.value) / (n + lambda_s)
        guard = self._guard(long, short)
        return Prediction(np.clip(fused, 0, self.max_variance) * guard, terms_of(n, v, prior, guard))

    def _guard(self, long: Statistics, short: Statistics) -> np.ndarray:
        """1 - eta * clip((v_long - v_short) / v_long, 0, 1), v_short shrunk to v_long; 1 without own variance."""
        v_long, lambda_s = long.variance, self.own_shrinkage
        v_short = (short.weighted_variance + lambda_s * v_long) / (short.mass + lambda_s)
        decline = np.divide(v_long - v_short, v_long, out=np.zeros_like(v_long), where=v_long > 0)
        return 1 - self.decline_weight * np.clip(decline, 0, 1)


def build_predictor(
    config: SchedulerConfig, environment_of: np.ndarray, num_environments: int, kind: type[Predictor] = Predictor
) -> Predictor:
    """The predictor that ``config.estimator`` names, for tasks laid out by ``environment_of`` [N]; ``kind``: how it computes."""
    estimators = {"paper": (PaperPrior, "groups"), "envsched": (PooledPrior, "rollouts")}
    prior_of, unit = estimators[config.estimator]
    prior = prior_of(
        environment_of,
        num_environments,
        shrinkage=config.graph_shrinkage,
        prior_variance=config.reward_range**2 / 12 if config.prior_variance is None else config.prior_variance,
        relations=config.relations,
    )
    return kind(
        prior,
        unit=unit,
        own_shrinkage=config.own_shrinkage,
        decline_weight=config.decline_weight,
        max_variance=largest_variance(config),
    )


def largest_variance(config: SchedulerConfig) -> float:
    """v_max of G rewards in a range R: R^2/4 with ddof 0; half of them at each end, R^2 floor(G/2) ceil(G/2) / (G (G-1)), with ddof 1."""
    G, R = config.group_size, config.reward_range
    if config.ddof == 0:
        return R**2 / 4
    return R**2 * (G // 2) * (G - G // 2) / (G * (G - 1))


def terms_of(n: np.ndarray, v: np.ndarray, prior: Prior, guard: np.ndarray) -> dict[str, np.ndarray]:
    """What a prediction is made of, by the names of ``Prediction``."""
    return {
        "own": v,
        "own_mass": n,
        "environment": prior.environment,
        "within": prior.within,
        "within_mass": prior.within_mass,
        "cross": prior.cross,
        "cross_mass": prior.cross_mass,
        "prior": prior.value,
        "guard": guard,
    }
