"""What a synthetic world is made of: environments, topics, topologies, and the latent traits of each task.

Letters: N tasks, M environments, D features. A task's latent trait is a sum of independent parts of unit total variance,

    trait_i = sqrt(a) E[e(i)] + sqrt(b) T[topic(i)] + sqrt(c) A[archetype(i)] + sqrt(1 - a - b - c) own_i

with a, b, c the strengths of environment, text and topology: how far each predicts; the learner lets own_i wander. The
vectors a scheduler sees (``within``: topic of the prompt, ``cross``: archetype of the topology) carry exactly this structure,
blurred by noise. Nothing here knows of any scheduler.
"""

import math
from dataclasses import dataclass

import numpy as np

NUM_TOPICS = 8  # topics of prompts inside an environment
NUM_ARCHETYPES = 40  # shapes of execution and reward, shared by all environments
WITHIN_DIMENSIONS = 24
CROSS_DIMENSIONS = 32
BLUR = 0.6  # norm of the noise on a task's vector; its topic or archetype has norm 1
TOOLS_PER_ENVIRONMENT = 413.41 / 36.53  # published tools and environments of a Random batch
MEAN_LOG_CHECKS, SD_LOG_CHECKS = 2.7, 0.45  # checks per task of public EnvScaler tasks: median 15


@dataclass(frozen=True)
class Traits:
    """Free numbers of a world; fitted by ``scripts/calibrate_simulator.py``, never by hand.

    ``environment``, ``text`` and ``topology`` are shares of a trait's variance. ``ease`` is the mean logit of a check,
    ``ease_spread`` its standard deviation over tasks (chosen, not fitted: real pass rates are U-shaped and many real groups show
    no variance, and this is the widest with which every target of the fit can be met); ``log_luck`` and ``luck_spread`` are
    mean and standard deviation of the log of the logit noise that all checks of one rollout share.
    """

    ease: float = 0.5
    ease_spread: float = 4.0
    log_luck: float = -1.0
    luck_spread: float = 0.9
    environment: float = 0.3
    text: float = 0.1
    topology: float = 0.1

    @property
    def own_scale(self) -> float:
        """Standard deviation of a trait's own part."""
        return math.sqrt(1 - self.environment - self.text - self.topology)

    def scaled(self, strength: float) -> "Traits":
        """The same world with structure ``strength`` times as strong; shares are capped at .95 in total."""
        shares = np.array([self.environment, self.text, self.topology]) * strength
        shares *= min(1.0, 0.95 / max(shares.sum(), 1e-12))
        environment, text, topology = map(float, shares)
        return Traits(self.ease, self.ease_spread, self.log_luck, self.luck_spread, environment, text, topology)


@dataclass(frozen=True)
class World:
    """N tasks of M environments with their latents; immutable.

    ``shared`` [2, N] and ``own`` [2, N] are the two traits' shared and own parts, ease first, log luck second, in trait units,
    ``checks`` [N, 3] the number of easy, plain and hard checks, ``awakening`` [M] the exposures an environment needs before
    any reward shows (0 for most), ``tools`` [M] tools per environment; ``within`` [N, D] and ``cross`` [N, D] unit rows.
    """

    environment_of: np.ndarray
    shared: np.ndarray
    own: np.ndarray
    checks: np.ndarray
    awakening: np.ndarray
    tools: np.ndarray
    within: np.ndarray
    cross: np.ndarray

    traits: Traits

    @property
    def num_environments(self) -> int:
        return len(self.tools)

    def __len__(self) -> int:
        return len(self.environment_of)


def make_world(seed: int, traits: Traits, num_environments: int = 51, tasks_per_environment: int = 50, dead: int = 2) -> World:
    """Draw world ``seed``: the same seed gives the same world, whatever runs on it.

    Args:
        seed: of the world's structure.
        traits: free numbers, see ``Traits``.
        num_environments: M.
        tasks_per_environment: N / M.
        dead: environments that give no reward until they were exposed 4 to 12 times.
    """
    rng = np.random.Generator(np.random.Philox(key=[seed, 1]))
    environment_of = np.repeat(np.arange(num_environments), tasks_per_environment)
    num_tasks = len(environment_of)
    topic = environment_of * NUM_TOPICS + rng.integers(NUM_TOPICS, size=num_tasks)
    archetype = rng.choice(NUM_ARCHETYPES, p=_zipf(NUM_ARCHETYPES), size=num_tasks)
    shared = np.stack([_shared(rng, traits, environment_of, topic, archetype) for _ in range(2)])
    num_checks = np.clip(np.exp(rng.normal(MEAN_LOG_CHECKS, SD_LOG_CHECKS, num_tasks)).round(), 2, 60).astype(np.int64)
    awakening = np.zeros(num_environments, dtype=np.int64)
    dead = min(dead, num_environments)
    awakening[rng.choice(num_environments, dead, replace=False)] = rng.integers(4, 13, size=dead)
    return World(
        environment_of=environment_of,
        shared=shared,
        own=traits.own_scale * rng.standard_normal(shared.shape),
        checks=rng.multinomial(num_checks, [1 / 3, 1 / 3, 1 / 3]),
        awakening=awakening,
        tools=rng.integers(1, round(2 * TOOLS_PER_ENVIRONMENT - 1) + 1, size=num_environments),
        within=_vectors(rng, topic, environment_of, WITHIN_DIMENSIONS),
        cross=_vectors(rng, archetype, np.zeros(num_tasks, dtype=np.int64), CROSS_DIMENSIONS),
        traits=traits,
    )


def _zipf(count: int) -> np.ndarray:
    weight = 1 / (np.arange(count) + 3.0)
    return weight / weight.sum()


def _shared(rng: np.random.Generator, traits: Traits, environment_of: np.ndarray, topic: np.ndarray, archetype: np.ndarray) -> np.ndarray:
    """What environment, topic and archetype say about one trait [N]."""
    return (
        np.sqrt(traits.environment) * rng.standard_normal(environment_of.max() + 1)[environment_of]
        + np.sqrt(traits.text) * rng.standard_normal(environment_of.max() * NUM_TOPICS + NUM_TOPICS)[topic]
        + np.sqrt(traits.topology) * rng.standard_normal(NUM_ARCHETYPES)[archetype]
    )


def _vectors(rng: np.random.Generator, kind_of: np.ndarray, parent_of: np.ndarray, dimensions: int) -> np.ndarray:
    """Unit rows [N, D], float32: a shared parent, a kind, and noise, all of nonnegative inner product on average."""
    parents = np.abs(rng.standard_normal((parent_of.max() + 1, dimensions)))
    kinds = rng.standard_normal((kind_of.max() + 1, dimensions))
    noise = rng.standard_normal((len(kind_of), dimensions))
    rows = _unit(parents)[parent_of] + _unit(kinds)[kind_of] + BLUR * _unit(noise)
    return _unit(rows).astype(np.float32)


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)
