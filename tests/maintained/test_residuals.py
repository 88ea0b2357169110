"""What maintained sums say under the residual prior, against a plain repetition of the rule over the whole history.

The rule: a task tells r = v - env(-task) for the first time when it has own evidence, and again once r has moved by more than
``TOLD_WITHIN`` of the largest variance; where a gift costs a pass over the pool, when it is visited and at no other time.
"""

import numpy as np
import pytest

from envsched.config import SchedulerConfig
from envsched.history import History
from envsched.maintained import BUILDERS, LargePool, build_lists
from envsched.maintained.evidence import TOLD_WITHIN
from envsched.pool import Pool
from envsched.predict import Forecast, build_predictor
from envsched.predict.predictor import largest_variance
from kernels import native
from tests.graph.worlds import make_world
from tests.maintained.test_live import best, code_products
from tests.maintained.test_pool import FixedGraph, large_pool, record

needs_int8 = pytest.mark.skipif(not native.is_built() or not native.has_int8(), reason="no native library with int8 products was built")
pytestmark = pytest.mark.skipif(not native.is_built(), reason="no native library was built (python -m kernels.build)")

SIZES = [1, 9, 14, 3, 20, 2, 11]
STEPS = 120


class Oracle:
    """The rule in float64, from lists of visits.

    ``weight``: of the tasks that were told to each task within and across, from those that were told.
    """

    def __init__(self, config, environment_of, weight, *, by_visits):
        self.config, self.environment_of, self.weight, self.by_visits = config, environment_of, weight, by_visits
        self.visits = [[] for _ in environment_of]
        self.told, self.known = np.zeros(len(environment_of)), np.zeros(len(environment_of), bool)
        self.fresh = set()

    def observe(self, version, rows, num_valid, variance):
        for row, n, v in zip(rows, num_valid, variance, strict=True):
            if n >= 2:
                self.visits[row].append((version, n, v))
                self.fresh.add(row)

    def remembered(self, j):
        visits = self.visits[j]
        w = [
            n * 2 ** ((p - visits[-1][0]) / self.config.own_half_life - (len(visits) - 1 - k) / self.config.visit_half_life)
            for k, (p, n, _) in enumerate(visits)
        ]
        return sum(a * v for a, (_, _, v) in zip(w, visits, strict=True)) / sum(w)

    def environments(self):
        """env(-i) of every task, and the spread of all that was seen."""
        lam, seen = self.config.graph_shrinkage, [j for j, visits in enumerate(self.visits) if visits]
        x = {j: self.remembered(j) for j in seen}
        means = []
        for i, e in enumerate(self.environment_of):
            others = [x[j] for j in seen if j != i]
            pool = np.mean(others) if others else self.config.reward_range**2 / 12
            inside = [x[j] for j in seen if j != i and self.environment_of[j] == e]
            means.append((sum(inside) + lam * pool) / (len(inside) + lam))
        return np.array(means), x, float(np.std(list(x.values()))) if x else 0.0

    def advance(self):
        """What every task is told now: g, environment, within mass, within, cross mass, cross; [N, 6]."""
        environment, x, spread = self.environments()
        for j in self.fresh if self.by_visits else x:
            r = x[j] - environment[j]
            if self.by_visits or not self.known[j] or abs(r - self.told[j]) > TOLD_WITHIN * largest_variance(self.config):
                self.told[j], self.known[j] = r, True
        self.fresh = set()
        residuals, columns = 0, []
        for weight in self.weight(self.known):
            mass = weight.sum(axis=1)
            R = weight @ self.told / (mass + self.config.residual_shrinkage)
            residuals = residuals + R
            columns += [mass, environment + R]
        g = (1 + self.config.optimism) * np.maximum(0, environment + residuals) + self.config.optimism_spread * spread
        return np.stack([g, environment, *columns], axis=1)


def play(pool, oracle, steps, seed=0):
    """Random visits, some of them without evidence. The largest difference of the six terms, relative to 1 + theirs, and by how much
    what was told is out of date at most."""
    generator, num_tasks = np.random.default_rng(seed), len(pool.evidence.slot_of)
    rows, apart, stale = np.arange(num_tasks), 0.0, 0.0
    for step in range(steps):
        expected = oracle.advance()
        pool.predict(step)
        apart = max(apart, float((np.abs(pool.evaluate(rows)[:, 1:7] - expected) / (1 + np.abs(expected))).max()))
        environment, x, _ = oracle.environments()
        stale = max([stale, *(abs(x[j] - environment[j] - oracle.told[j]) for j in x)])
        chosen = generator.choice(num_tasks, size=5, replace=False)
        rewards = generator.integers(0, 5, size=(5, 8)) / 4 * (generator.random((5, 1)) < 0.8)
        rewards[0, 1 + 7 * (step % 3 > 0) :] = np.nan
        version = max(0, step - step % 3)
        pool.observe(step, chosen, rewards, version)
        num_valid = (~np.isnan(rewards)).sum(axis=1)
        variance = [np.var(row[~np.isnan(row)], ddof=1) if n >= 2 else np.nan for row, n in zip(rewards, num_valid, strict=True)]
        oracle.observe(version, chosen, num_valid, variance)
    return apart, stale


OTHER = {"optimism": 0.0, "optimism_spread": 1.5, "residual_shrinkage": 0.5, "graph_shrinkage": 2.0}


@pytest.mark.parametrize("settings", [{}, OTHER], ids=["default", "other"])
@pytest.mark.parametrize("mode", ["static", "class", pytest.param("kernel", marks=needs_int8), pytest.param("live", marks=needs_int8)])
def test_the_terms_are_those_of_the_rule(mode, settings):
    config = SchedulerConfig(batch_size=5, graph_mode=mode, prior="residual", num_within=4, num_cross=5, **settings).settled(sums=True)
    features, environment_of = make_world(SIZES, num_archetypes=12)
    offsets, by_visits = np.concatenate([[0], np.cumsum(SIZES)]), mode == "kernel"
    pool = LargePool(features, offsets, BUILDERS[mode](features, offsets, config), config)
    oracle = Oracle(config, environment_of, weights_of(mode, pool, environment_of), by_visits=by_visits)
    apart, stale = play(pool, oracle, STEPS)
    assert apart < 1e-6
    reach = TOLD_WITHIN * largest_variance(config)
    assert stale > reach if by_visits else 0 < stale <= reach


def weights_of(mode, pool, environment_of):
    """What every task hears within and across, [N, N] each, as a function of which tasks were told."""
    features, cross = pool.features, pool.evidence.carriers[1]
    same, me = environment_of[:, None] == environment_of, np.eye(len(environment_of), dtype=bool)
    likeness = np.where(same & ~me, np.clip(features.within.astype(float) @ features.within.T.astype(float), 0, 1), 0)
    near = best(likeness, 4)
    if mode == "static":
        listed = weights_by_task(cross.reversed)
    elif mode == "class":
        listed = heard_by_class(features, same)
    else:
        codes = cross.codes if mode == "kernel" else cross._codes
        above = np.clip((code_products(codes, len(same)) - cross.floor) / (1 - cross.floor), 0, None)
        listed = np.where(same, 0, np.round(above**2, 9))  # equal topologies tie
    if mode == "live":
        return lambda told: (best(likeness * told, 4), best(listed * told, 5))
    return lambda told: (near * told, listed * told)


def weights_by_task(reversed_lists):
    """Weights [N, N] of lists by source."""
    pointer, target, weight = reversed_lists
    weights = np.zeros((len(pointer) - 1, len(pointer) - 1))
    np.add.at(weights, (target, np.repeat(np.arange(len(pointer) - 1), np.diff(pointer))), weight)
    return weights


def heard_by_class(features, same):
    """Tasks of the own class and of the five most similar ones, but of the own environment."""
    distinct, first, class_of = np.unique(features.cross, axis=0, return_index=True, return_inverse=True)
    likeness = np.clip(distinct.astype(float) @ distinct.T.astype(float), 0, 1)
    order = np.argsort(first)
    heard, others = np.zeros_like(likeness), np.where(np.eye(len(distinct), dtype=bool), 0, likeness)
    heard[np.ix_(order, order)] = best(others[np.ix_(order, order)], 5)
    np.fill_diagonal(heard, np.diag(likeness))
    return heard[class_of][:, class_of] * ~same


def test_lists_of_everybody_stay_near_the_prior_that_forgets_nothing():
    """On one history with lists of all other tasks: g differs from ``ResidualPrior`` by no more than telling within v_max / 128
    allows, and by much less on average."""
    config = SchedulerConfig(batch_size=8, prior="residual", num_within=6, num_cross=56).settled(sums=True)
    source, generator = Pool.synthetic(9, 7), np.random.default_rng(0)
    large, environment_of = large_pool([7] * 9, config, num_archetypes=20)
    history = History(source, config)
    lists = FixedGraph(build_lists(large.features, large.evidence.offsets, 6, 56))
    forecast = Forecast(build_predictor(config, environment_of, 9), history, lists, config)
    allowed = (1 + config.optimism) * 2 * TOLD_WITHIN * largest_variance(config)
    apart = []
    for step in range(200):
        if step % 10 == 0:
            large.predict(step)
            apart.append(np.abs(large.evaluate(np.arange(63))[:, 1] - forecast.at(step)[0].terms["prior"]))
        rows = generator.choice(63, size=8, replace=False)
        rewards = generator.integers(0, 5, size=(8, 8)) / 4
        history.extend(record(source, row, step, step, values) for row, values in zip(rows, rewards, strict=True))
        large.observe(step, rows, rewards)
    assert 0 < np.max(apart) <= allowed
    assert np.mean(apart) < allowed / 10
