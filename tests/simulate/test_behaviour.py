"""What the issue asks of the schedule itself, seen on learners: nothing starves, mastered tasks rest, flat pools go on."""

import numpy as np
import pytest

from envsched.config import SchedulerConfig
from envsched.simulate.calibration import load_kind
from envsched.simulate.line_up import prepare
from envsched.simulate.runs import Setting, environment_pool, make_learner, records_of, run_schedule, world_features

CONFIG = SchedulerConfig(batch_size=16, group_size=8)
SETTING = Setting(seed=4, num_environments=16, tasks_per_environment=12)
SMALL = Setting(seed=4, num_environments=16, tasks_per_environment=6)  # six batches sweep it


def prepared(name="envsched", setting=SETTING):
    world, learner = make_learner(setting, load_kind("slow"))
    pool = environment_pool(setting.num_environments, setting.tasks_per_environment)
    return world, learner, pool, prepare(name, pool, CONFIG, 0, world_features(world, pool))


@pytest.mark.parametrize("setting", [SETTING, SMALL], ids=["whole coverage lane", "a quarter of it"])
def test_an_environment_that_looks_dead_is_not_starved(setting):
    world, learner, pool, scheduler = prepared(setting=setting)
    trace = run_schedule(scheduler, learner, pool, 40, 8)
    dead = np.flatnonzero(world.awakening)
    assert len(dead) == 2
    assert not learner.asleep.any()
    last = trace.heat[dead, 20:].sum(axis=1)
    assert (last >= 0.4 * trace.heat[:, 20:].sum() / setting.num_environments).all()


def test_mastered_tasks_rest():
    """Half of each environment's tasks are always solved: once seen, they get far less than half of the picks."""
    _, _, pool, scheduler = prepared()
    rng = np.random.default_rng(0)
    mastered = np.arange(len(pool)) % 2 == 0
    picks = []
    for step in range(40):
        tasks = scheduler.select(step).tasks
        rows = pool.rows_of(tasks)
        rewards = np.where(mastered[rows, None], 1.0, rng.binomial(1, 0.5, (len(rows), 8)).astype(float))
        scheduler.observe(records_of(tasks, step, rewards))
        picks.append(mastered[rows].mean())
    assert np.mean(picks[20:]) < 0.25


@pytest.mark.parametrize("name", ["envsched", "paper", "no_graph", "dps", "mopps", "vcrl", "sec", "greso", "plr", "sfl", "adarft"])
def test_a_pool_of_constant_groups_goes_on(name):
    *_, scheduler = prepared(name)
    for step in range(12):
        tasks = scheduler.select(step).tasks
        scheduler.observe(records_of(tasks, step, np.full((len(tasks), 8), 1 / 3)))
        assert len(set(tasks)) == CONFIG.batch_size
