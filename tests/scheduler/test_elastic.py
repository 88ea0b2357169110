"""A pool that changes between two steps: what stays is known as before, what is new is what its neighbours say, the rest is gone."""

import json
import logging
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.audit import make_manifest, read_manifest, write_manifest
from envsched.baselines import build_scheduler
from envsched.config import SchedulerConfig
from envsched.errors import StateError
from envsched.features import Features
from envsched.files import digest
from envsched.pool import Pool
from envsched.pool.outline import Outline
from envsched.pool.pool import OutlinedPool
from envsched.scheduler import EnvScheduler, carry_over
from envsched.types import Environment, Task
from tests.oracle import reference
from tests.scheduler.worlds import rewards_of

B = 4


def pool_of(texts, code=None):
    """A pool from {task key: prompt}; the environment is the key's first part, ``code`` its source where it is not empty."""
    environments = sorted({key.split("-")[0] for key in texts})
    return Pool(
        [Environment(e, source=(code or {}).get(e, "")) for e in environments], [Task(k, k.split("-")[0], t) for k, t in texts.items()]
    )


def features_of(pool):
    """Vectors that follow from each task's content, so that those of tasks that stay do not change with the pool."""
    rows = [np.random.default_rng(int(digest(task.environment, task.key, task.prompt)[:8], 16)).normal(size=(2, 6)) for task in pool.tasks]
    unit = [values / np.linalg.norm(values, axis=1, keepdims=True) for values in np.stack(rows, axis=1)]
    return Features(*unit, pool_fingerprint=pool.fingerprint, encoder="content")


def scheduler_on(pool, **changes):
    config = SchedulerConfig(batch_size=B, calibration_start=6, calibration_full=12, num_within=2, num_cross=3, **changes)
    return EnvScheduler(pool, config, 1, features_of(pool))


@st.composite
def changing_texts(draw):
    """Prompts before and after; environments of one task, tasks removed, edited, added, environments that come and go."""
    source = random.Random(draw(st.integers(0, 2**32)))
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=5))
    before = {f"e{e}-t{i}": "as it was" for e, size in enumerate(sizes) for i in range(size)}
    after = {key: source.choice([text, text, text, "edited"]) for key, text in before.items() if source.random() < 0.75}
    after |= {f"e{source.randrange(len(sizes) + 2)}-n{i}": "new" for i in range(source.randint(0, 4))}
    for texts in (before, after):
        texts |= {f"z-t{i}": "filler" for i in range(max(0, B - len(texts)))}  # B tasks make a batch
    return before, after


def run(scheduler, first, last):
    records, batches = [], []
    for step in range(first, last):
        batches.append(scheduler.select(step))
        records += [rewards_of(task, step) for task in batches[-1].tasks]
        scheduler.observe(records[-B:])
    return batches, records


@settings(max_examples=25, deadline=None)
@given(changing_texts(), st.sampled_from(["exact", "incremental_exact"]), st.sampled_from(["envsched", "paper"]), st.integers(0, 6))
def test_a_changed_pool_equals_a_fresh_scheduler_with_the_records_that_are_left(texts, mode, estimator, step):
    before, after = texts
    old, pool = scheduler_on(pool_of(before), graph_mode=mode, estimator=estimator), pool_of(after)
    _, records = run(old, 0, step)
    state, change = carry_over(json.loads(json.dumps(old.state_dict())), pool, step)
    carried, fresh = (scheduler_on(pool, graph_mode=mode, estimator=estimator) for _ in range(2))
    carried.load_state_dict(state)
    stayed = {key for key in before if after.get(key) == before[key]}
    fresh.observe([record for record in records if record.task in stayed])

    assert set(change.added) == after.keys() - before.keys()
    assert set(change.removed) == before.keys() - after.keys()
    assert set(change.edited) == {key for key in before.keys() & after.keys() if before[key] != after[key]}
    assert run(carried, step, step + 3) == run(fresh, step, step + 3)
    for relation in ("within", "cross"):
        lists = [getattr(scheduler._graph, relation) for scheduler in (carried, fresh)]
        assert np.array_equal(lists[0].edge_index, lists[1].edge_index)
        assert np.array_equal(lists[0].edge_weight, lists[1].edge_weight)


@settings(max_examples=15, deadline=None)
@given(changing_texts(), st.sampled_from(["envsched", "paper"]), st.integers(1, 6))
def test_predictions_after_a_change_equal_the_plain_python_reference(texts, estimator, step):
    before, after = texts
    old, pool = scheduler_on(pool_of(before), estimator=estimator), pool_of(after)
    _, records = run(old, 0, step)
    carried = scheduler_on(pool, estimator=estimator)
    carried.load_state_dict(carry_over(old.state_dict(), pool, step)[0])
    visits = [
        reference.Visit(pool.row_of(r.task), r.step, list(r.rewards), [s.value for s in r.status], r.policy_version)
        for r in records
        if after.get(r.task) == before[r.task]
    ]
    rows = np.arange(len(pool))
    names = reference.Settings.__dataclass_fields__
    given_settings = reference.Settings(**{name: value for name, value in carried.config.model_dump().items() if name in names})
    similarity = carried._graph.similarity(rows, rows).tolist()
    expected = reference.forecast(visits, pool.environment_of.tolist(), similarity, step, given_settings)
    prediction, score, _ = carried._forecast.at(step)
    np.testing.assert_allclose(prediction.variance, expected.u, atol=1e-6)
    np.testing.assert_allclose(score, expected.score, atol=1e-6)
    for row in (pool.row_of(key) for key in after if after[key] != before.get(key)):
        assert prediction.terms["own_mass"][row] == 0
        assert prediction.variance[row] == pytest.approx(prediction.terms["prior"][row]), "a new task is what its neighbours say"


BEFORE = {f"e{e}-t{i}": "as it was" for e in range(4) for i in range(3)}
AFTER = {**{key: text for key, text in BEFORE.items() if key != "e0-t0"}, "e1-t1": "edited", "e2-n0": "new", "e9-t0": "alone"}


@pytest.mark.parametrize("name", ["envsched", "random_epoch", "dps", "sec", "greso"])
def test_every_scheduler_goes_on_with_a_changed_pool(name):
    config = SchedulerConfig(batch_size=B)
    old, pool = build_scheduler(name, pool_of(BEFORE), config, 1, features_of(pool_of(BEFORE))), pool_of(AFTER)
    _, records = run(old, 0, 4)
    carried, fresh = (build_scheduler(name, pool, config, 1, features_of(pool)) for _ in range(2))
    carried.load_state_dict(carry_over(old.state_dict(), pool, 4)[0])
    fresh.observe([record for record in records if record.task not in ("e0-t0", "e1-t1")])
    assert run(carried, 4, 8) == run(fresh, 4, 8)
    assert carried.digests(7) != fresh.digests(7)
    assert {k: v for k, v in carried.digests(7).items() if k != "changes"} == fresh.digests(7)


def test_the_manifest_says_what_changed_at_the_step_where_it_did(tmp_path):
    old, pool = scheduler_on(pool_of(BEFORE)), pool_of(AFTER)
    run(old, 0, 3)
    state, change = carry_over(old.state_dict(), pool, 3)
    scheduler = scheduler_on(pool)
    scheduler.load_state_dict(state)
    for step in (3, 4):
        write_manifest(tmp_path / f"{step}.json", make_manifest(scheduler.select(step), scheduler))
    said = read_manifest(tmp_path / "3.json").pool_change
    assert said == change.to_json()
    assert (said["added"], said["removed"], said["edited"]) == (["e2-n0", "e9-t0"], ["e0-t0"], ["e1-t1"])
    assert (said["environments_added"], said["environments_removed"]) == (["e9"], [])
    assert (said["before"], said["after"]) == (old.pool.fingerprint, pool.fingerprint)
    assert read_manifest(tmp_path / "4.json").pool_change is None
    assert "changes" in read_manifest(tmp_path / "4.json").digests
    assert str(change) == ("2 tasks added: 'e2-n0', 'e9-t0'; 1 task removed: 'e0-t0'; 1 task edited: 'e1-t1'; 1 environment added: 'e9'")


def test_an_environment_whose_code_changed_makes_all_its_tasks_new_ones():
    state, change = carry_over(scheduler_on(pool_of(BEFORE)).state_dict(), pool_of(BEFORE, {"e2": "class Other: ..."}), 0)
    assert change.edited == ("e2-t0", "e2-t1", "e2-t2")
    assert change.environments_edited == ("e2",)
    assert state["history"] == []


def test_records_that_come_after_the_change_count_where_their_task_stayed(caplog):
    old, pool = scheduler_on(pool_of(BEFORE)), pool_of(AFTER)
    run(old, 0, 3)
    scheduler = scheduler_on(pool)
    scheduler.load_state_dict(carry_over(old.state_dict(), pool, 4)[0])
    with caplog.at_level(logging.WARNING):
        scheduler.observe([rewards_of(key, 3) for key in ("e0-t0", "e1-t1", "e2-t2")])
    assert "2 late records" in caplog.text
    assert [record.task for record in scheduler.history.records_at(3)] == ["e2-t2"]
    scheduler.observe([rewards_of("e1-t1", 4)])
    assert [record.task for record in scheduler.history.records_at(4)] == ["e1-t1"], "the edited task as it is now"


def test_changes_follow_one_another_and_survive_json():
    scheduler, texts = scheduler_on(pool_of(BEFORE)), BEFORE
    for number, change in enumerate([{"e0-t0": "second"}, {"e0-t0": "as it was"}, {"e9-t0": "alone"}], start=1):
        run(scheduler, 3 * number - 3, 3 * number)
        texts = texts | change
        state, _ = carry_over(json.loads(json.dumps(scheduler.state_dict())), pool_of(texts), 3 * number)
        scheduler = scheduler_on(pool_of(texts))
        scheduler.load_state_dict(json.loads(json.dumps(state)))
    assert [change.step for change in scheduler.changes] == [3, 6, 9]
    assert not any(record.task == "e0-t0" for step in range(6) for record in scheduler.history.records_at(step))
    again = scheduler_on(pool_of(texts))
    again.load_state_dict(json.loads(json.dumps(scheduler.state_dict())))
    assert run(again, 9, 12) == run(scheduler, 9, 12)
    assert again.state_dict() == scheduler.state_dict()
    unchanged, nothing = carry_over(scheduler.state_dict(), pool_of(texts), 12)
    assert nothing.is_empty
    assert unchanged == scheduler.state_dict()


def test_a_change_in_the_past_is_refused():
    scheduler = scheduler_on(pool_of(BEFORE))
    run(scheduler, 0, 3)
    with pytest.raises(StateError, match="the pool can't change at step 2: the state knows records of step 2"):
        carry_over(scheduler.state_dict(), pool_of(AFTER), 2)


def test_an_outline_stands_for_a_pool_that_is_gone():
    pool = pool_of(BEFORE)
    gone = OutlinedPool(Outline.from_json(json.loads(json.dumps(pool.outline.to_json()))))
    assert gone.fingerprint == pool.fingerprint
    assert gone.outline == pool.outline
    ours, theirs = (EnvScheduler(p, SchedulerConfig(batch_size=B), 1, features_of(pool)) for p in (pool, gone))
    assert run(ours, 0, 4) == run(theirs, 0, 4)
