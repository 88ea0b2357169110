"""The variance that each task would show now: own history, graph prior, fusion, guard (METHOD sections 3, 5, 6 and 12).

Letters: N tasks, M environments, n own mass, v own variance, g graph prior, u prediction, lambda_s own shrinkage.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from envsched.config import SchedulerConfig
from envsched.history import Statistics
from envsched.predict.priors import Graph, PaperPrior, PooledPrior, Prior, ResidualPrior


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predicted variance with the parts it is made of, all float64 [N].

    ``terms``: own (variance of the own history, 0 without), own_mass, environment (mean of the environment), within and
    cross (what each relation says; the parent's estimate where it says nothing), within_mass, cross_mass, prior (the
    graph prior g), guard (factor of a recent decline, 1 = none), headroom (no part of
    the prediction: what a high mean reward leaves of a task's rank, 1 = all).
    """

    variance: np.ndarray
    terms: Mapping[str, np.ndarray]


class Predictor:
    """u = (n v + lambda_s g) / (n + lambda_s), clipped to what the rewards allow, cut by a recent decline.

    n and v remember for longer than what neighbours and environment are told; but later visits push earlier ones out, since
    training moves a task when it is visited far more than the steps between.

    Args:
        prior: gives g.
        unit: what a visit adds to the mass of ``statistics``.
        half_life, visit_half_life: of own evidence, in policy versions and in later visits of the task.
        own_shrinkage: lambda_s.
        decline_weight: eta.
        mastery_weight: mu.
        reward_low, reward_range: of the pool.
        max_variance: v_max, the largest variance that G rewards can have.
    """

    def __init__(
        self,
        prior: PaperPrior | PooledPrior | ResidualPrior,
        *,
        unit: Literal["groups", "rollouts"],
        half_life: float,
        visit_half_life: float,
        own_shrinkage: float,
        decline_weight: float,
        mastery_weight: float,
        reward_low: float,
        reward_range: float,
        max_variance: float,
    ) -> None:
        self.prior = prior
        self.unit: Literal["groups", "rollouts"] = unit
        self.half_life = half_life
        self.visit_half_life = visit_half_life
        self.own_shrinkage = own_shrinkage
        self.decline_weight = decline_weight
        self.mastery_weight = mastery_weight
        self.reward_low = reward_low
        self.reward_range = reward_range
        self.max_variance = max_variance

    def predict(self, own: Statistics, long: Statistics, short: Statistics, graph: Graph, cross_weight: float = 0.0) -> Prediction:
        """Predict all N tasks at once.

        Args:
            own: statistics in ``unit`` with the half-lives of own evidence.
            long, short: the same with the half-life of what others are told, and with the one that notices a decline.
            graph: both relations, over tasks observed before now.
            cross_weight: k_c, how far the cross relation is believed; the paper's prior believes it fully.
        """
        n, v, lambda_s = own.mass, own.variance, self.own_shrinkage
        prior = self.prior(own if self.prior.tells_own else long, graph, cross_weight)
        fused = (n * v + lambda_s * prior.value) / (n + lambda_s)
        guard, headroom = self._guard(own, short), self.headroom(own)
        return Prediction(np.clip(fused, 0, self.max_variance) * guard, terms_of(n, v, prior, guard, headroom))

    def headroom(self, own: Statistics) -> np.ndarray:
        """exp(-mu max(0, m - 1/2)), m the own mean reward on [0, 1] shrunk to one half; 1 without own evidence, float64 [N].

        Training lifts what it visits: of two tasks of one variance the one of lower success stays informative for longer.
        """
        n, lambda_s = own.mass, self.own_shrinkage
        m = ((own.weighted_mean - self.reward_low * n) / self.reward_range + 0.5 * lambda_s) / (n + lambda_s)
        return np.exp(-self.mastery_weight * np.maximum(0, m - 0.5))

    def _guard(self, own: Statistics, short: Statistics) -> np.ndarray:
        """1 - eta * clip((v_long - v_short) / v_long, 0, 1), v_short shrunk to v_long, the own one; 1 without own variance."""
        v_long, lambda_s = own.variance, self.own_shrinkage
        v_short = (short.weighted_variance + lambda_s * v_long) / (short.mass + lambda_s)
        decline = np.divide(v_long - v_short, v_long, out=np.zeros_like(v_long), where=v_long > 0)
        return 1 - self.decline_weight * np.clip(decline, 0, 1)


def build_predictor(
    config: SchedulerConfig, environment_of: np.ndarray, num_environments: int, kind: type[Predictor] = Predictor
) -> Predictor:
    """The predictor that ``config.estimator`` names, for tasks laid out by ``environment_of`` [N]; ``kind``: how it computes."""
    config = config.settled()
    estimators = {"paper": (PaperPrior, "groups"), "envsched": (PooledPrior, "rollouts")}
    prior_of, unit = estimators[config.estimator]
    if config.prior == "residual":
        prior_of = partial(
            ResidualPrior,
            residual_shrinkage=config.residual_shrinkage,
            optimism=config.optimism,
            optimism_spread=config.optimism_spread,
        )
    prior = prior_of(
        environment_of,
        num_environments,
        shrinkage=config.graph_shrinkage,
        prior_variance=config.reward_range**2 / 12 if config.prior_variance is None else config.prior_variance,
        relations=config.relations,
    )
    memory = memory_of(config)
    return kind(
        prior,
        unit=unit,
        half_life=memory.half_life,
        visit_half_life=memory.visit_half_life,
        own_shrinkage=config.own_shrinkage,
        decline_weight=config.decline_weight,
        mastery_weight=memory.mastery_weight,
        reward_low=config.reward_low,
        reward_range=config.reward_range,
        max_variance=largest_variance(config),
    )


@dataclass(frozen=True, slots=True)
class Memory:
    """How own evidence is kept: half-lives in policy versions and in later visits, and how far a high mean costs rank."""

    half_life: float
    visit_half_life: float
    mastery_weight: float


def memory_of(config: SchedulerConfig) -> Memory:
    """As configured; the paper's rule has one half-life for everything and does not look at means."""
    if config.estimator == "paper":
        return Memory(config.half_life, math.inf, 0.0)
    return Memory(config.own_half_life, config.visit_half_life, config.mastery_weight)


def largest_variance(config: SchedulerConfig) -> float:
    """v_max of G rewards in a range R: R^2/4 with ddof 0; half of them at each end, R^2 floor(G/2) ceil(G/2) / (G (G-1)), with ddof 1."""
    G, R = config.group_size, config.reward_range
    if config.ddof == 0:
        return R**2 / 4
    return R**2 * (G // 2) * (G - G // 2) / (G * (G - 1))


def terms_of(n: np.ndarray, v: np.ndarray, prior: Prior, guard: np.ndarray, headroom: np.ndarray) -> dict[str, np.ndarray]:
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
        "headroom": headroom,
    }
