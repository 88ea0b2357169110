"""Leases: what was selected and has no record yet is not picked again for a while, and counts as nothing else."""

import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched import ops
from envsched.errors import StateError
from envsched.pool import Pool
from envsched.scheduler import EnvScheduler
from tests.scheduler.worlds import make_features, make_pool, rewards_of, small_config

POOL = make_pool()
native = pytest.mark.skipif(ops.backend() != "native", reason="large pools need the native kernels")


def new_scheduler(pool=POOL, **changes):
    return EnvScheduler(pool, small_config(**changes), 0, make_features(pool))


def lag_of(task, step, source):
    """Steps after its own in which a record comes; None: never."""
    return random.Random(f"{source} {task} {step}").choice([0, 0, 1, 2, 5, None])


class Asynchronous:
    """A trainer whose records come late or never. ``out`` [(step, task)] is what was selected and did not come."""

    def __init__(self, scheduler, source):
        self.scheduler, self.source = scheduler, source
        self.out, self.came = set(), []

    def step(self, step):
        batch = self.scheduler.select(step)
        self.out |= {(step, task) for task in batch.tasks}
        arrived = [(s, task) for s, task in sorted(self.out) if (lag := lag_of(task, s, self.source)) is not None and s + lag <= step]
        self.out -= set(arrived)
        records = [rewards_of(task, s) for s, task in arrived]
        self.scheduler.observe(records)
        self.came += records
        return batch


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.integers(0, 5), st.sampled_from(["exact", "incremental_exact"]))
def test_nothing_under_a_lease_is_picked_and_a_lease_is_no_evidence(source, lease_steps, mode):
    trainer = Asynchronous(new_scheduler(lease_steps=lease_steps, graph_mode=mode), source)
    quiet = new_scheduler(lease_steps=0, graph_mode=mode)
    for step in range(8):
        leased = {task: s for s, task in sorted(trainer.out) if s < step <= s + lease_steps}
        batch = trainer.step(step)
        assert leased.keys() == batch.masked.keys()
        assert not leased.keys() & set(batch.tasks) or batch.relaxed[-1].quota == "filters"
        for task, since in leased.items():
            assert batch.masked[task] == f"lease: selected at step {since}, its record is still out; until step {since + lease_steps + 1}"
        quiet.observe(trainer.came)
        for ours, theirs in zip(trainer.scheduler._forecast.at(step + 1), quiet._forecast.at(step + 1), strict=True):
            assert np.array_equal(getattr(ours, "variance", ours), getattr(theirs, "variance", theirs))
        assert np.array_equal(trainer.scheduler.history.visits.row, quiet.history.visits.row)


def test_a_lease_ends_with_its_record_or_with_its_time():
    scheduler = new_scheduler(lease_steps=2)
    first = scheduler.select(0)
    scheduler.observe([rewards_of(task, 0) for task in first.tasks[4:]])
    assert set(scheduler.masked(1).reasons) == set(POOL.rows_of(first.tasks[:4]))
    scheduler.observe([rewards_of(first.tasks[0], 0)])
    assert set(scheduler.masked(2).reasons) == set(POOL.rows_of(first.tasks[1:4]))
    assert not scheduler.masked(3).rows.any(), "expired"
    scheduler.observe([rewards_of(task, 0) for task in first.tasks[1:4]])
    assert len(scheduler.history) == 12, "what comes after that is taken all the same"


def test_a_window_counts_what_is_under_a_lease():
    """Nothing ever comes back: were picks without a record not counted, each batch would take four of each environment."""
    pool = make_pool(8, 12)
    scheduler = new_scheduler(pool, lease_steps=10, max_per_environment_window=5, batch_size=12)
    batches = [scheduler.select(step) for step in range(6)]
    assert not any(batch.relaxed for batch in batches)
    for step in range(2, 6):
        recent = [pick.environment for batch in batches[step - 2 : step + 1] for pick in batch.picks]
        assert max(map(recent.count, set(recent))) <= 5
    assert len({task for batch in batches for task in batch.tasks}) == 72


def test_where_leases_leave_too_few_they_are_let_in_and_it_is_said():
    scheduler = new_scheduler(lease_steps=10, batch_size=40, max_per_environment=6, max_per_environment_window=20)
    scheduler.select(0)
    batch = scheduler.select(1)
    assert len(batch.picks) == 40
    assert "filters" in {relaxation.quota for relaxation in batch.relaxed}


def test_leases_survive_a_resume_and_without_them_nothing_is_masked():
    whole, half = (Asynchronous(new_scheduler(), 7) for _ in range(2))
    expected = [whole.step(step) for step in range(9)]
    assert any(batch.masked for batch in expected)
    for step in range(5):
        half.step(step)
    resumed = new_scheduler()
    resumed.load_state_dict(json.loads(json.dumps(half.scheduler.state_dict())))
    assert resumed.digests(5) == half.scheduler.digests(5)
    assert "leases" in resumed.digests(5)
    half.scheduler = resumed
    assert [half.step(step) for step in range(5, 9)] == expected[5:]
    off = Asynchronous(new_scheduler(lease_steps=0), 7)
    assert not any(off.step(step).masked for step in range(9))
    assert off.scheduler.state_dict()["leases"] == {}


def test_a_synchronous_run_has_no_lease():
    with_leases, without = new_scheduler(), new_scheduler(lease_steps=0)
    for step in range(6):
        batch = with_leases.select(step)
        assert (without.select(step), batch.masked) == (batch, {})
        for scheduler in (with_leases, without):
            scheduler.observe([rewards_of(task, step) for task in batch.tasks])
    assert "leases" not in with_leases.digests(6)


@native
@pytest.mark.parametrize("mode", ["static", "kernel"])
def test_large_pools_keep_leases_too(mode):
    trainer = Asynchronous(new_scheduler(Pool.synthetic(8, 30), graph_mode=mode), 3)
    masked = 0
    for step in range(8):
        leased = {task for s, task in trainer.out if s < step <= s + 4}
        batch = trainer.step(step)
        assert batch.masked.keys() == leased
        assert not leased & set(batch.tasks)
        masked += len(leased)
    assert masked


def test_a_lease_of_an_unknown_task_is_refused():
    state = new_scheduler().state_dict()
    with pytest.raises(StateError, match="field 'leases' was altered"):
        new_scheduler().load_state_dict(state | {"leases": {"0": ["nobody"]}})
