"""Graph modes behind the five verbs."""

import numpy as np
import pytest

from envsched import ops
from envsched.audit import make_manifest
from envsched.config import FeatureConfig, SchedulerConfig
from envsched.features import build_features
from envsched.graph import resolve_mode
from envsched.maintained import Follower, StaticGraph
from envsched.pool import Pool
from envsched.scheduler import EnvScheduler
from envsched.types import RolloutRecord, Status
from kernels import native

needs_native = pytest.mark.skipif(
    not native.is_built() or not native.has_int8(), reason="no native library with int8 products was built (python -m kernels.build)"
)


@pytest.fixture(scope="module")
def world():
    pool = Pool.synthetic(30, 20)
    return pool, build_features(pool, FeatureConfig(encoder="tfidf"))


def records_of(batch, step, generator, solved, pool):
    for task in batch.tasks:
        rewards = tuple(float(x) for x in generator.binomial(4, solved[pool.row_of(task)], size=8) / 4)
        yield RolloutRecord(task, step, rewards, (Status.OK,) * 8, step)


def run(scheduler, steps, pool, late=0):
    generator, solved = np.random.default_rng(0), np.random.default_rng(1).beta(0.5, 0.5, size=len(pool))
    batches, waiting = [], []
    for step in range(steps):
        batches.append(scheduler.select(step))
        waiting.append(list(records_of(batches[-1], step, generator, solved, pool)))
        if len(waiting) > late:
            scheduler.observe(waiting.pop(0))
    return batches


def config_of(mode, **changes):
    return SchedulerConfig(batch_size=24, graph_mode=mode, calibration_start=48, calibration_full=96, **changes)


def test_exact_and_incremental_give_the_same_batches(world):
    pool, features = world
    a, b = (run(EnvScheduler(pool, config_of(mode), 0, features), 6, pool) for mode in ("exact", "incremental_exact"))
    assert a == b


@needs_native
@pytest.mark.parametrize("estimator", ["envsched", "paper"])
def test_maintained_static_sums_follow_the_timeline_over_static_lists(world, estimator):
    """On one history: the terms of every pick, and the batches but for near ties of float32 sums."""
    pool, features = world
    config = config_of("static", estimator=estimator)
    maintained, timeline = EnvScheduler(pool, config, 0, features), EnvScheduler(pool, config, 0, features)
    assert isinstance(maintained._large, Follower)
    timeline._large, timeline._graph = None, StaticGraph(features, pool.environment_of, config.num_within, config.num_cross)
    timeline._follow_history()
    generator, solved, same = np.random.default_rng(0), np.random.default_rng(1).beta(0.5, 0.5, size=len(pool)), 0
    for step in range(12):
        ours, theirs = maintained.select(step), timeline.select(step)
        same += len(set(ours.tasks) & set(theirs.tasks))
        prediction, score, _ = timeline._forecast.at(step)
        for pick in ours.picks:
            row = pool.row_of(pick.task)
            assert pick.score == pytest.approx(score[row], rel=1e-5, abs=1e-9)
            expected = {name: float(values[row]) for name, values in prediction.terms.items()}
            assert {name: pick.terms[name] for name in expected} == pytest.approx(expected, rel=1e-5, abs=1e-7)
        records = list(records_of(theirs, step, generator, solved, pool))
        maintained.observe(records)
        timeline.observe(records)
    assert same >= 0.95 * 12 * 24


@needs_native
@pytest.mark.parametrize("mode", ["static", "kernel"])
def test_a_resumed_run_goes_on_bit_for_bit(world, mode):
    pool, features = world
    scheduler = EnvScheduler(pool, config_of(mode), 0, features)
    run(scheduler, 7, pool)
    resumed = EnvScheduler(pool, config_of(mode), 5, features)
    resumed.load_state_dict(scheduler.state_dict())
    assert resumed.select(7) == scheduler.select(7)
    assert resumed.digests(7) == scheduler.digests(7)
    assert resumed.select(3) == scheduler.select(3)


@needs_native
def test_records_that_come_one_step_late_are_taken_in(world):
    pool, features = world
    late = run(EnvScheduler(pool, config_of("static"), 0, features), 8, pool, late=1)
    assert len({batch.tasks for batch in late}) == 8


def test_the_automatic_choice_goes_by_size():
    assert [resolve_mode("auto", n) for n in (62, 250_000)] == ["incremental_exact"] * 2
    assert resolve_mode("auto", 250_001) == ("kernel" if ops.has_int8() else "incremental_exact")
    assert resolve_mode("exact", 10**9) == "exact"


MODES = ["exact", "incremental_exact", "static", pytest.param("kernel", marks=needs_native)]


@pytest.mark.parametrize("mode", MODES)
def test_the_manifest_says_how_the_graph_was_made(world, mode):
    pool, features = world
    scheduler = EnvScheduler(pool, config_of(mode), 0, features)
    manifest = make_manifest(scheduler.select(0), scheduler)
    assert manifest.graph["mode"] == mode
    assert manifest.graph["exact"] == (mode in ("exact", "incremental_exact"))
    if mode == "static":
        classes = len(np.unique(features.cross, axis=0))
        assert manifest.graph["cross"] == {"carried": "lists", "classes": classes, "recall": 1.0, "certified": 1.0}


def test_approximate_lists_are_told_in_log_and_manifest(world, caplog):
    pool, features = world
    scheduler = EnvScheduler(pool, config_of("static", build_seconds=0, build_recall=0.9), 0, features)
    assert "cross-environment lists are approximate" in caplog.text
    assert 0.9 <= make_manifest(scheduler.select(0), scheduler).graph["cross"]["recall"] <= 1
