"""``incremental_exact`` is ``exact``: the same lists, predictions and batches over 200 steps."""

import numpy as np
import pytest

from envsched.config import SchedulerConfig
from envsched.features import Features
from envsched.pool import Pool
from envsched.scheduler import EnvScheduler
from envsched.types import Environment, RolloutRecord, Status, Task
from tests.graph.worlds import assert_same_graph, make_world

STEPS = 200


def schedulers(num_environments, num_archetypes):
    sizes = [50] * num_environments
    pool = Pool(
        [Environment(key=f"e{e:04d}") for e in range(num_environments)],
        [Task(key=f"t{e:04d}-{i:02d}", environment=f"e{e:04d}") for e in range(num_environments) for i in range(50)],
    )
    world, _ = make_world(sizes, within_features=48, cross_features=32, num_archetypes=num_archetypes)
    features = Features(world.within, world.cross, pool_fingerprint=pool.fingerprint)
    return pool, [EnvScheduler(pool, SchedulerConfig(graph_mode=mode), 0, features) for mode in ("exact", "incremental_exact")]


@pytest.mark.slow
@pytest.mark.timeout(0)  # the reference builds all lists from scratch at every step
@pytest.mark.parametrize(("num_environments", "num_archetypes"), [(51, None), (51, 300), (500, 4000)])
def test_200_steps_give_the_same_lists_predictions_and_batches(num_environments, num_archetypes):
    pool, (exact, incremental) = schedulers(num_environments, num_archetypes)
    generator = np.random.default_rng(0)
    solved = np.repeat(generator.beta(0.7, 0.7, num_environments), 50)
    for step in range(STEPS):
        batch = exact.select(step)
        assert incremental.select(step) == batch, step
        rewards = generator.binomial(1, solved[[pool.row_of(task) for task in batch.tasks], None].repeat(8, 1))
        for task, row in zip(batch.tasks, rewards.astype(float), strict=True):
            record = RolloutRecord(task, step, tuple(row.tolist()), (Status.OK,) * 8, step)
            exact.observe([record])
            incremental.observe([record])
        if step % 20 == 19:
            assert_same_graph(exact._graph, incremental._graph)
            mine, theirs = (scheduler._forecast.at(step + 1)[0] for scheduler in (incremental, exact))
            assert np.array_equal(mine.variance, theirs.variance)
            for name, values in theirs.terms.items():
                assert np.array_equal(mine.terms[name], values), name
