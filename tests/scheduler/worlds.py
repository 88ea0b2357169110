"""Pools, features and rewards that follow from a seed alone."""

import functools
import random

import numpy as np

from envsched.config import SchedulerConfig
from envsched.features import Features
from envsched.pool import Pool
from envsched.types import RolloutRecord, Status


@functools.cache
def make_pool(num_environments=8, tasks_each=6):
    return Pool.synthetic(num_environments, tasks_each)


@functools.cache
def make_features(pool, seed=0):
    """Random unit rows: tasks of one environment resemble each other, archetypes cross environments."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(len(pool.environments), 12))
    within = centres[pool.environment_of] + generator.normal(size=(len(pool), 12))
    archetypes = generator.normal(size=(5, 8))
    cross = archetypes[generator.integers(0, 5, len(pool))] + 0.3 * generator.normal(size=(len(pool), 8))
    unit = [values / np.linalg.norm(values, axis=1, keepdims=True) for values in (within, cross)]
    return Features(*unit, pool_fingerprint=pool.fingerprint, encoder="random")


def rewards_of(task, step, group_size=8, missing=0.0):
    """A record that is a pure function of task and step; each task has its own success rate."""
    rate = random.Random(f"rate {task}").random()
    draws = random.Random(f"{task} {step}")
    status = [Status.INFRA_ERROR if draws.random() < missing else Status.OK for _ in range(group_size)]
    rewards = [None if s.is_missing else round(sum(draws.random() < rate for _ in range(4)) / 4, 6) for s in status]
    return RolloutRecord(task, step, tuple(rewards), tuple(status), step)


def records_of(batch, group_size=8, missing=0.0):
    return [rewards_of(task, batch.step, group_size, missing) for task in batch.tasks]


def small_config(**changes):
    """Small numbers that keep every quota, both lanes and the calibration in play."""
    defaults = {"batch_size": 12, "calibration_start": 20, "calibration_full": 60, "max_per_environment": 3, "coverage_sweep": 0}
    return SchedulerConfig(**(defaults | changes))
