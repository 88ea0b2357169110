import json
import subprocess
import sys

import numpy as np
import pytest

from envsched.baselines import SCHEDULERS, build_scheduler
from envsched.config import SchedulerConfig
from envsched.errors import ConfigError, SelectionError, StateError
from envsched.pool import Pool
from envsched.types import Lane, Scheduler
from tests.scheduler.worlds import make_features, make_pool, records_of, small_config

POOL = make_pool()
FEATURES = make_features(POOL)


def drive(name, steps, pool=POOL, config=None, seed=0):
    scheduler = build_scheduler(name, pool, config or small_config(), seed, make_features(pool))
    batches = []
    for step in range(steps):
        batches.append(scheduler.select(step))
        scheduler.observe(records_of(batches[-1]))
    return scheduler, batches


@pytest.mark.parametrize("name", SCHEDULERS)
def test_every_scheduler_has_five_verbs_and_resumes_bit_identically(name):
    scheduler, batches = drive(name, 8)
    assert isinstance(scheduler, Scheduler)
    assert scheduler.name == name
    assert all(len(set(batch.tasks)) == 12 for batch in batches)
    first, _ = drive(name, 4)
    resumed = build_scheduler(name, POOL, small_config(), 9, FEATURES)
    resumed.load_state_dict(json.loads(json.dumps(first.state_dict())))
    for batch in batches[4:]:
        assert resumed.select(batch.step) == batch
        resumed.observe(records_of(batch))
    assert scheduler.metrics()["batch/observed_tasks"] == 12
    assert scheduler.digests(4).keys() >= {"pool", "history", "config"}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_every_scheduler_refuses_a_small_pool_and_another_pools_state(name):
    with pytest.raises(SelectionError, match="64"):
        build_scheduler(name, POOL, SchedulerConfig(), 0, FEATURES)
    other = make_pool(8, 7)
    with pytest.raises(StateError):
        build_scheduler(name, POOL, small_config(), 0, FEATURES).load_state_dict(
            build_scheduler(name, other, small_config(), 0, make_features(other)).state_dict()
        )


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"unknown scheduler 'papr'; did you mean 'paper'\? Known: envsched, paper"):
        build_scheduler("papr", POOL)


def test_the_variants_change_what_their_names_say():
    settings = {name: build_scheduler(name, POOL, small_config(), 0, FEATURES).config for name in SCHEDULERS}
    assert settings["paper"].estimator == "paper"
    assert settings["within_only"].relations == ("within",)
    assert settings["cross_only"].relations == ("cross",)
    assert settings["no_graph"].relations == ()
    assert settings["coverage_only"].coverage_share == 1
    names = ["envsched", "paper", "within_only", "cross_only", "no_graph", "coverage_only"]
    batches = {name: tuple(batch.tasks for batch in drive(name, 8)[1]) for name in names}
    assert len(set(batches.values())) == len(names), "two variants chose the same batches"


def test_coverage_only_has_no_exploitation():
    lanes = {pick.lane for batch in drive("coverage_only", 5)[1] for pick in batch.picks}
    assert lanes == {Lane.COLD_START, Lane.COVERAGE}


def test_random_is_uniform_and_covers_the_expected_environments():
    pool = Pool.synthetic(51, 50)
    scheduler = build_scheduler("random", pool, SchedulerConfig(), 4)
    batches = [scheduler.select(step) for step in range(400)]
    environments = np.mean([len({pick.environment for pick in batch.picks}) for batch in batches])
    assert abs(environments - 36.86) < 0.4
    counts = np.bincount(np.concatenate([pool.rows_of(batch.tasks) for batch in batches]), minlength=len(pool))
    assert counts.sum() == 400 * 64
    assert counts.std() == pytest.approx(np.sqrt(400 * 64 / 2550), rel=0.1)
    assert scheduler.select(7) == batches[7]
    assert {pick.lane for pick in batches[0].picks} == {Lane.RANDOM}


@pytest.mark.parametrize(("num_environments", "tasks_each"), [(8, 6), (5, 5), (3, 4), (4, 4)])
def test_random_epoch_visits_every_task_once_per_epoch(num_environments, tasks_each):
    pool = make_pool(num_environments, tasks_each)
    N, B = len(pool), 12
    scheduler = build_scheduler("random_epoch", pool, small_config(), 2)
    batches = [scheduler.select(step) for step in range(3 * N)]
    drawn = [task for batch in batches for task in batch.tasks]
    for epoch in range(len(drawn) // N):
        assert len(set(drawn[epoch * N : (epoch + 1) * N])) == N
    assert all(len(set(batch.tasks)) == B for batch in batches)
    fresh = build_scheduler("random_epoch", pool, small_config(), 2)
    assert fresh.select(3 * N - 1) == batches[-1]
    assert build_scheduler("random_epoch", pool, small_config(), 3).select(0) != batches[0]


def test_random_needs_no_torch():
    code = (
        "import sys; from envsched.baselines import build_scheduler; from envsched import Pool;"
        "build_scheduler('random', Pool.synthetic(8, 8)).select(0); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
