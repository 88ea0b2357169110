"""A synthetic policy: graded rewards from checks, learning that depends on what was trained, transfer, forgetting, drift.

Letters: N tasks, M environments, B trained groups, G rollouts, Q quadrature nodes, t step. With sigma the logistic function,
check c of rollout g of task i passes with probability sigma(z_i + offset_c + luck_i xi_g), xi_g ~ N(0, 1) shared by all checks
of the rollout; the reward is the share of passed checks. The logit z_i is

    z_i(t) = ease_i(t) + learned_i(t) + skill(t) . cross_i + (craft_e(i)(t) . within_i + shock_e(i)(t))

and a trained group of variance v teaches s = v / (v + 0.01): learned_i gains ``rate`` s, craft and skill gain a share of it
along the task's vectors. A group without variance teaches nothing. The own parts of ease and luck wander without a trend.
The learner knows no scheduler and no prediction.
"""

import math
from dataclasses import dataclass

import numpy as np

from envsched.simulate.world import World

CHECK_OFFSETS = np.array([2.5, 0.0, -2.5])  # easy, plain, hard
HALF_TEACHING_VARIANCE = 0.01
SHOCK_PROBABILITY = 0.02  # per step: one environment loses ``SHOCK_SIZE`` logits, which training and time repair
SHOCK_SIZE = 1.0
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclass(frozen=True)
class Tempo:
    """How fast a learner moves. ``rate``: logits that one fully informative group adds to its own task; ``craft`` and
    ``skill``: shares of it that go along the environment's and the topology's vectors; ``forgetting``: share of what was
    learned that is lost per step; ``drift_steps``: correlation time of the own parts of a task's traits."""

    rate: float = 0.1
    craft: float = 0.05
    skill: float = 0.00125
    forgetting: float = 0.002
    drift_steps: float = 200.0


class Learner:
    """The policy under training in one world.

    Args:
        world: its tasks.
        tempo: how fast it moves.
        seed: of rewards, drift and shocks; independent of the world's.
    """

    def __init__(self, world: World, tempo: Tempo, seed: int) -> None:
        self.world, self.tempo = world, tempo
        self._seed = seed
        self._step = 0
        self._wandering = world.own.copy()
        self._learned = np.zeros(len(world))
        self._craft = np.zeros((world.num_environments, world.within.shape[1]))
        self._skill = np.zeros(world.cross.shape[1])
        self._shock = np.zeros(world.num_environments)
        self._exposures = np.zeros(world.num_environments, dtype=np.int64)

    def _rng(self, purpose: int) -> np.random.Generator:
        """A stream per (seed, step, purpose), so that what is drawn does not depend on what was asked before."""
        return np.random.Generator(np.random.Philox(key=[self._seed, 8 * self._step + purpose]))

    @property
    def logits(self) -> np.ndarray:
        """z [N] of an average check."""
        world, traits = self.world, self.world.traits
        ease = traits.ease + traits.ease_spread * (world.shared[0] + self._wandering[0])
        craft = np.einsum("nd,nd->n", world.within, self._craft[world.environment_of]) + self._shock[world.environment_of]
        return ease + self._learned + world.cross @ self._skill + craft

    @property
    def luck(self) -> np.ndarray:
        """Standard deviation [N] of the logit noise of a rollout."""
        traits = self.world.traits
        return np.exp(traits.log_luck + traits.luck_spread * (self.world.shared[1] + self._wandering[1]))

    @property
    def asleep(self) -> np.ndarray:
        """Tasks [N] whose environment shows no reward yet."""
        return (self._exposures < self.world.awakening)[self.world.environment_of]

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Exact mean [N] and variance [N] of one rollout's reward, by Gauss-Hermite quadrature over the luck."""
        world = self.world
        logit = self.logits[:, None, None] + CHECK_OFFSETS[:, None] + self.luck[:, None, None] * _NODES
        passing = _sigma(logit)  # [N, 3, Q]
        total = world.checks.sum(axis=1)[:, None]
        mean = np.einsum("nc,ncq->nq", world.checks, passing) / total
        noise = np.einsum("nc,ncq->nq", world.checks, passing * (1 - passing)) / total**2
        expected = mean @ _WEIGHTS
        variance = (mean - expected[:, None]) ** 2 @ _WEIGHTS + noise @ _WEIGHTS
        awake = ~self.asleep
        return expected * awake, variance * awake

    def roll_out(self, rows: np.ndarray, group_size: int) -> np.ndarray:
        """Rewards [B, G] of tasks ``rows`` [B] under the present policy."""
        rng, world = self._rng(1), self.world
        luck = rng.standard_normal((len(rows), group_size, 1)) * self.luck[rows, None, None]
        logit = self.logits[rows, None, None] + luck + CHECK_OFFSETS
        passed = rng.binomial(world.checks[rows, None, :], _sigma(logit))
        return passed.sum(axis=2) / world.checks[rows].sum(axis=1)[:, None] * ~self.asleep[rows, None]

    def train(self, rows: np.ndarray, rewards: np.ndarray) -> None:
        """One policy update on groups ``rows`` [B] with ``rewards`` [B, G]; the step ends here."""
        world, tempo = self.world, self.tempo
        variance = rewards.var(axis=1, ddof=1)
        taught = tempo.rate * variance / (variance + HALF_TEACHING_VARIANCE)
        for kept in (self._learned, self._craft, self._skill, self._shock):
            kept *= 1 - tempo.forgetting
        np.add.at(self._learned, rows, taught)
        np.add.at(self._craft, world.environment_of[rows], tempo.craft * taught[:, None] * world.within[rows])
        self._skill += tempo.skill * taught @ world.cross[rows]
        np.add.at(self._exposures, world.environment_of[rows], 1)
        self._step += 1
        self._wander()

    def _wander(self) -> None:
        rng, keep = self._rng(2), math.exp(-1 / self.tempo.drift_steps)
        fresh = self.world.traits.own_scale * rng.standard_normal(self._wandering.shape)
        self._wandering = keep * self._wandering + math.sqrt(1 - keep**2) * fresh
        if rng.random() < SHOCK_PROBABILITY:
            self._shock[rng.integers(len(self._shock))] -= SHOCK_SIZE


def _sigma(logit: np.ndarray) -> np.ndarray:
    return 0.5 + 0.5 * np.tanh(0.5 * logit)  # the usual form overflows for large negative logits
