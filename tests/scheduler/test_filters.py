"""Filters inside the scheduler: what rests is not picked, what is barred comes last, and all follows from the history alone."""

import json

import numpy as np
import pytest

from envsched import ops
from envsched.audit import make_manifest
from envsched.config import FeatureConfig, SchedulerConfig
from envsched.errors import RecordError
from envsched.features import build_features
from envsched.filters import Findings, GuessCase
from envsched.pool import Pool
from envsched.scheduler import EnvScheduler
from envsched.types import Lane, RolloutRecord, Status

ops_native = pytest.mark.skipif(ops.backend() != "native", reason="large pools need the native kernels")
SIZE = {
    "batch_size": 8,
    "group_size": 4,
    "max_per_environment_window": 24,
    "max_consecutive": 50,
    "coverage_sweep": 0,
    "max_per_environment": 8,
    "open_batches": 1,
}


@pytest.fixture(scope="module")
def pool():
    return Pool.synthetic(4, 12, seed=1)


def record(task, step, rewards, **extra):
    return RolloutRecord(task, step, tuple(rewards), (Status.OK,) * len(rewards), step, extra=extra)


@pytest.fixture(scope="module")
def features(pool):
    return build_features(pool, FeatureConfig(encoder="tfidf"))


@pytest.fixture
def scheduler_of(pool, features):
    def make(*filters, **settings):
        return EnvScheduler(pool, SchedulerConfig(filters=filters, **SIZE, **settings), seed=3, features=features)

    return make


def run(scheduler, num_steps, rewards_of):
    for step in range(num_steps):
        tasks = scheduler.select(step).tasks
        scheduler.observe([record(task, step, rewards_of(task, step)) for task in tasks])


def test_mastered_tasks_rest_and_others_take_their_place(pool, scheduler_of):
    mastered = {task.key for task in pool.tasks[::3]}

    def rewards_of(task, step):
        return [1.0] * 4 if task in mastered else [0.0, 1.0, 0.5, 0.0]

    shares = {}
    for filters in ((), ("progress",)):
        scheduler = scheduler_of(*filters, coverage_share=1.0, coverage_explore=1.0)  # every task comes round
        run(scheduler, 40, rewards_of)
        picks = [task for step in range(18, 40) for task in scheduler.select(step).tasks]
        shares[filters] = sum(task in mastered for task in picks) / len(picks)
    assert shares["progress",] < shares[()]
    masks = {step: scheduler.resting(step) for step in range(40)}
    assert any(mask.rows.any() for mask in masks.values())
    for step, mask in masks.items():
        resting = {pool.tasks[row].key for row in mask.reasons}
        assert resting <= mastered
        assert not resting & set(scheduler.select(step).tasks)


def test_a_fall_brings_a_task_back_at_the_next_step(pool, scheduler_of):
    scheduler, key = scheduler_of("progress"), pool.tasks[0].key
    scheduler.observe([record(key, step, [1.0] * 4) for step in range(3)])
    assert scheduler.resting(3).rows[0]
    scheduler.observe([record(key, 3, [0.0, 1.0, 1.0, 1.0])])
    assert not scheduler.resting(4).rows.any()


def guess(task, step):
    return GuessCase(task, step, 0, ("ID-1",), 1.0, 0.0).to_json()


def test_a_task_with_proven_guesses_is_kept_from_exploitation_and_may_be_covered(pool, scheduler_of):
    best = pool.tasks[5].key

    def lane_of_best(with_guesses):
        scheduler = scheduler_of("guesses", coverage_share=0.25, coverage_explore=1.0)
        for step in range(4):
            for key in {*scheduler.select(step).tasks, best}:
                extra = {"guesses": [guess(key, step)]} if key == best and with_guesses else {}
                scheduler.observe([record(key, step, [0.0, 1.0, 0.0, 1.0] if key == best else [0.4, 0.5, 0.4, 0.5], **extra)])
        assert list(scheduler.barred(4).reasons) == ([5] if with_guesses else [])
        return {pick.task: pick.lane for pick in scheduler.select(4).picks}.get(best)

    assert lane_of_best(with_guesses=False) is Lane.EXPLOITATION
    assert lane_of_best(with_guesses=True) is not Lane.EXPLOITATION


def test_where_only_barred_tasks_are_left_they_are_let_in_and_it_is_said(pool, scheduler_of):
    scheduler = scheduler_of("guesses")
    everyone = [task.key for task in pool.tasks]
    for step in range(2):
        scheduler.observe([record(key, step, [0.0, 1.0, 0.0, 1.0], guesses=[guess(key, step)]) for key in everyone])
    batch = scheduler.select(2)
    assert len(batch.picks) == 8
    assert "filters" in {relaxation.quota for relaxation in batch.relaxed}


def test_filters_follow_from_the_history_alone(pool, scheduler_of):
    scheduler = scheduler_of("progress", "guesses")
    run(scheduler, 12, lambda task, step: [1.0] * 4 if task[-1] in "02468" else [float(len(task) % 2), 0.5, 1.0, 0.0])
    again = scheduler_of("progress", "guesses")
    again.load_state_dict(scheduler.state_dict())
    assert again.select(12) == scheduler.select(12)
    assert np.array_equal(again.resting(12).rows, scheduler.resting(12).rows)


def test_cases_that_are_none_are_refused_by_name(pool, scheduler_of):
    scheduler = scheduler_of("guesses")
    scheduler.observe([record(pool.tasks[0].key, 0, [0.0, 1.0, 0.0, 1.0], guesses=[{"task": "x"}])])
    with pytest.raises(RecordError, match=r"extra\.guesses"):
        scheduler.select(1)


def findings_of(pool, path, floors, masks):
    content = {"fingerprint": pool.fingerprint, "floors": {pool.tasks[row].key: floor for row, floor in floors.items()}}
    path.write_text(json.dumps(content | {"masks": {pool.tasks[row].key: words for row, words in masks.items()}}))
    return Findings.read(path, pool)


def test_tasks_that_can_teach_nothing_are_never_picked_and_the_manifest_says_why(pool, features, tmp_path):
    findings = findings_of(pool, tmp_path / "report.json", {0: 0.5, 1: 1.0}, {1: "all its checks are vacuous"})
    scheduler = EnvScheduler(pool, SchedulerConfig(**SIZE), seed=3, features=features, findings=findings)
    run(scheduler, 12, lambda task, step: [0.0, 1.0, 0.5, 0.0])
    batches = [scheduler.select(step) for step in range(12)]
    key = pool.tasks[1].key
    assert not any(key in batch.tasks for batch in batches)
    manifest = make_manifest(batches[5], scheduler)
    assert manifest.batch.masked == {key: "pool check: all its checks are vacuous"}
    assert manifest.digests["findings"] == findings.digest
    floors = {pick.task: pick.terms.get("floor") for batch in batches for pick in batch.picks}
    assert floors.pop(pool.tasks[0].key) == 0.5
    assert set(floors.values()) == {None}


def test_a_pool_of_nothing_but_vacuous_tasks_still_fills_a_batch(pool, features, tmp_path):
    findings = findings_of(pool, tmp_path / "report.json", {}, dict.fromkeys(range(len(pool)), "all its checks are vacuous"))
    batch = EnvScheduler(pool, SchedulerConfig(**SIZE), seed=3, features=features, findings=findings).select(0)
    assert len(batch.picks) == 8
    assert [relaxation.quota for relaxation in batch.relaxed] == ["filters"]


def test_progress_is_measured_above_the_floor(pool, features, tmp_path):
    """Equal rewards that fall below what doing nothing earns are no progress; the same rewards above it are."""
    findings = findings_of(pool, tmp_path / "report.json", {0: 0.5, 1: 0.1}, {2: "all its checks are vacuous"})
    settings = SchedulerConfig(filters=("progress",), **SIZE)
    scheduler = EnvScheduler(pool, settings, seed=3, features=features, findings=findings)
    for step, level in enumerate([0.5, 0.25, 0.5, 0.25]):
        scheduler.observe([record(pool.tasks[row].key, step, [level] * 4) for row in (0, 1)])
    assert set(scheduler.resting(4).reasons) == {0}
    assert set(scheduler.masked(4).reasons) == {0, 2}


@pytest.mark.parametrize("mode", ["incremental_exact", pytest.param("kernel", marks=ops_native)])
def test_findings_hold_in_every_way_of_keeping_the_graph(pool, features, tmp_path, mode):
    findings = findings_of(pool, tmp_path / "report.json", {0: 0.5}, dict.fromkeys(range(1, 30), "all its checks are vacuous"))
    scheduler = EnvScheduler(pool, SchedulerConfig(graph_mode=mode, **SIZE), seed=3, features=features, findings=findings)
    floors = []
    for step in range(6):
        batch = scheduler.select(step)
        rows = [pool.row_of(pick.task) for pick in batch.picks]
        assert not set(rows) & set(range(1, 30))
        assert {pool.tasks[row].key for row in range(1, 30)} <= batch.masked.keys()
        floors += [pick.terms.get("floor") for pick, row in zip(batch.picks, rows, strict=True) if row == 0]
        scheduler.observe([record(task, step, [0.0, 1.0, 0.5, 0.0]) for task in batch.tasks])
    assert floors
    assert set(floors) == {0.5}
