"""Live lists and classes against brute force over the whole history."""

import numpy as np
import pytest

from envsched.config import SchedulerConfig
from envsched.features import Features
from envsched.maintained import BUILDERS, LargePool
from kernels import native
from tests.graph.worlds import make_world

needs_int8 = pytest.mark.skipif(not native.is_built() or not native.has_int8(), reason="no native library with int8 products was built")
needs_native = pytest.mark.skipif(not native.is_built(), reason="no native library was built (python -m kernels.build)")

STEPS = 300  # two rebases lie on the way


def large_pool(mode, sizes, seed=0, features=None, **settings):
    world, environment_of = make_world(sizes, seed, num_archetypes=settings.pop("num_archetypes", None))
    features = features or world
    config = SchedulerConfig(batch_size=8, graph_mode=mode, **settings)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return LargePool(features, offsets, BUILDERS[mode](features, offsets, config), config), environment_of


class Told:
    """What was shown so far: last visit and own variance of each task, as the maintained state counts them."""

    def __init__(self, num_tasks, half_life):
        self.last = np.full(num_tasks, -np.inf)
        self.sums, self.half_life = np.zeros((2, num_tasks)), half_life
        self.groups = np.zeros(num_tasks)

    def add(self, step, rows, variance):
        self.sums[:, rows] += np.stack([variance, np.ones(len(rows))]) * 2 ** (step / self.half_life)
        self.last[rows] = step

    def variance(self):
        return np.divide(*self.sums, out=np.zeros(len(self.last)), where=self.sums[1] > 0)

    def weight(self, step):
        return 2 ** ((self.last - step) / self.half_life)


def play(pool, num_tasks, steps, seed=1, repeats=0.5):
    """Random batches, half of their tasks from a few that come again and again."""
    generator, told = np.random.default_rng(seed), Told(num_tasks, pool.config.half_life)
    for step in range(steps):
        few = generator.choice(max(1, num_tasks // 10), size=4) if repeats else np.empty(0, int)
        rows = np.unique(np.concatenate([few, generator.choice(num_tasks, size=min(num_tasks, 5), replace=False)]))
        rewards = generator.integers(0, 5, size=(len(rows), 8)) / 4
        pool.observe(step, rows, rewards)
        told.add(step, rows, rewards.var(axis=1, ddof=1))
    return told


def sums_of(pool):
    return pool.evidence.sums.astype(float) * pool.evidence.state.inverse_scale


def best(weight, num_slots):
    """The largest of each row, ties by column: weights with all others at 0."""
    order = np.lexsort((np.broadcast_to(np.arange(weight.shape[1]), weight.shape), -weight), axis=1)[:, :num_slots]
    kept = np.zeros_like(weight)
    np.put_along_axis(kept, order, np.take_along_axis(weight, order, axis=1), axis=1)
    return kept


def most(k, c, num_slots):
    """k c of the sources with the largest k^2 c."""
    return np.where(best(k**2 * c, num_slots) > 0, k * c, 0)


def code_products(codes, num_tasks):
    rows = ((codes.codes.astype(float) - 128) * codes.scale[:, None])[:num_tasks]
    return rows @ rows.T


@needs_int8
@pytest.mark.parametrize("sizes", [[9] * 11, [1, 40, 3, 2, 1, 60], [4, 3]], ids=str)
@pytest.mark.parametrize("slots", [(6, 12), (2, 16), (1, 1)], ids=str)
def test_live_lists_hold_the_largest_evidence_of_now(sizes, slots):
    """The K largest products of squared likeness and decayed weight, found anew among all visited tasks at the end."""
    num_tasks = sum(sizes)
    pool, environment_of = large_pool("live", sizes, num_within=slots[0], num_cross=slots[1])
    told = play(pool, num_tasks, STEPS)
    pool.predict(STEPS)
    c, v = told.weight(STEPS), told.variance()
    cross = pool.evidence.carriers[1]
    same = environment_of[:, None] == environment_of
    likeness = np.clip(pool.features.within.astype(float) @ pool.features.within.T.astype(float), 0, 1)
    near = most(np.where(same & ~np.eye(num_tasks, dtype=bool), likeness, 0), c, slots[0])
    k = np.clip((code_products(cross._codes, num_tasks) - cross.floor) / (1 - cross.floor), 0, None) ** 2
    far = most(np.where(same, 0, k), c, slots[1])
    sums = sums_of(pool)
    for column, expected in enumerate((near @ v, near.sum(axis=1), far @ v, far.sum(axis=1))):
        np.testing.assert_allclose(sums[:, column], expected, rtol=2e-5, atol=1e-12)


@needs_int8
def test_dead_evidence_leaves_the_lists():
    """Twelve tasks that resemble a target most are seen once; 200 steps later its list holds what was seen since."""
    sizes = [1] * 60
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(60, 8)) + 0.5
    rows[:13] = rows[0] + 0.01 * generator.normal(size=(13, 8))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    masses = {}
    for mode in ("live", "static"):
        pool, _ = large_pool(mode, sizes, features=Features(rows, rows))
        pool.observe(0, np.arange(1, 13), np.tile([0.0, 1.0], (12, 4)))
        for step in range(1, 201):
            pool.observe(step, np.arange(13, 60)[(np.arange(5) * 9 + step) % 47], np.tile([0.0, 1.0], (5, 4)))
        pool.predict(201)
        masses[mode] = sums_of(pool)[0, 3]
    assert masses["static"] < 1e-5
    assert masses["live"] > 0.1


@needs_int8
def test_equal_tasks_tie_by_row():
    """All topologies equal, all seen at once: the slots go to the lowest rows, whatever order they came in."""
    sizes = [10] * 6
    pool, _ = large_pool("live", sizes, num_archetypes=1)
    pool.observe(0, np.arange(59, 9, -1), np.random.default_rng(0).integers(0, 5, size=(50, 8)) / 4)
    pool.predict(1)
    cross = pool.evidence.carriers[1]
    rows = np.sort(cross._row[cross._lists.slot[:10, :12]], axis=1)
    assert np.array_equal(rows, np.tile(np.arange(10, 22), (10, 1)))


@needs_native
@pytest.mark.parametrize(("sizes", "archetypes"), [([9] * 11, 25), ([1, 40, 3, 2, 1, 60], 4), ([30], 3), ([4, 3], 2)], ids=str)
@pytest.mark.parametrize("estimator", ["envsched", "paper"])
def test_classes_hear_their_own_and_the_nearest(sizes, archetypes, estimator):
    num_tasks = sum(sizes)
    pool, environment_of = large_pool("class", sizes, num_archetypes=archetypes, num_cross=3, estimator=estimator)
    told = play(pool, num_tasks, STEPS, repeats=0)
    pool.predict(STEPS)
    distinct, class_of = np.unique(pool.features.cross, axis=0, return_inverse=True)
    likeness = np.clip(distinct.astype(float) @ distinct.T.astype(float), 0, 1)
    first = np.array([np.flatnonzero(class_of == u)[0] for u in range(len(distinct))])
    by_first = np.argsort(first)
    heard = np.zeros_like(likeness)
    others = np.where(np.eye(len(distinct), dtype=bool), 0, likeness)[np.ix_(by_first, by_first)]
    heard[np.ix_(by_first, by_first)] = best(others, 3)
    np.fill_diagonal(heard, np.diag(likeness))
    weight = heard[class_of][:, class_of] * (environment_of[:, None] != environment_of)
    decayed = told.sums * 2.0 ** (-STEPS / 8)
    c = decayed[1] if estimator == "paper" else np.minimum(1, decayed[1])
    sums = sums_of(pool)
    np.testing.assert_allclose(sums[:, 3], weight @ c, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(sums[:, 2], weight @ (c * told.variance()), rtol=1e-5, atol=1e-9)


@needs_native
def test_the_class_prior_adds_the_own_class_to_a_mode():
    sizes = [9] * 11
    alone, environment_of = large_pool("static", sizes, num_archetypes=25)
    joined, _ = large_pool("static", sizes, num_archetypes=25, class_prior=True)
    told = play(alone, 99, 30, repeats=0)
    play(joined, 99, 30, repeats=0)
    alone.predict(30)
    joined.predict(30)
    vectors = joined.features.cross
    equal = (vectors[:, None] == vectors).all(axis=2) & (environment_of[:, None] != environment_of)
    c = np.minimum(1, told.sums[1] * 2.0 ** (-30 / 8))
    np.testing.assert_allclose(sums_of(joined)[:, 3], sums_of(alone)[:, 3] + equal @ c, rtol=1e-5, atol=1e-9)
