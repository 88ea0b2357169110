import json
import math

import numpy as np
import pytest

from envsched.config import SchedulerConfig
from envsched.errors import ConfigError, RecordError, SelectionError, StateError, UnknownTaskError
from envsched.pool import Pool
from envsched.scheduler import METRICS, EnvScheduler
from envsched.types import Lane, RolloutRecord, Scheduler, Status
from tests.scheduler.worlds import make_features, make_pool, records_of, rewards_of, small_config
from tests.select.worlds import broken_quotas

POOL = make_pool()
FEATURES = make_features(POOL)
ESTIMATORS = pytest.mark.parametrize("estimator", ["envsched", "paper"])


def new_scheduler(seed=0, pool=POOL, features=FEATURES, **changes):
    return EnvScheduler(pool, small_config(**changes), seed, features)


def drive(scheduler, steps, start=0, **changes):
    batches = []
    for step in range(start, start + steps):
        batches.append(scheduler.select(step))
        scheduler.observe(records_of(batches[-1], **changes))
    return batches


@ESTIMATORS
def test_one_process_per_step_gives_what_one_long_process_gives(estimator):
    long_run = drive(new_scheduler(estimator=estimator), 20, missing=0.1)
    records = []
    for batch in long_run:
        fresh = new_scheduler(estimator=estimator)
        fresh.observe(records)
        assert fresh.select(batch.step) == batch  # picks, scores, terms, reasons: equal to the last bit
        records += records_of(batch, missing=0.1)


@ESTIMATORS
def test_resume_from_a_state_that_went_through_json_is_bit_identical(estimator):
    scheduler = new_scheduler(seed=3, estimator=estimator)
    whole = drive(scheduler, 12)
    first = new_scheduler(seed=3, estimator=estimator)
    drive(first, 7)
    resumed = new_scheduler(seed=0, estimator=estimator)
    resumed.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert drive(resumed, 5, start=7) == whole[7:]
    assert resumed.state_dict() == scheduler.state_dict()


def test_loading_a_state_forgets_what_was_known_before():
    state = new_scheduler().state_dict()
    scheduler = new_scheduler()
    first = drive(scheduler, 4)
    scheduler.load_state_dict(state)
    assert drive(scheduler, 4) == first


def test_records_in_any_order_and_twice_change_nothing():
    scheduler = new_scheduler()
    batches = drive(scheduler, 6)
    shuffled = [record for batch in batches for record in records_of(batch)]
    np.random.default_rng(0).shuffle(shuffled)
    other = new_scheduler(lease_steps=0)
    for record in [*shuffled, *shuffled[:20]]:
        other.observe([record])
        if record.step == 3:
            other.select(4)  # without leases a look in between leaves no trace
    assert other.select(6) == scheduler.select(6)
    assert scheduler.select(6) == scheduler.select(6)


def test_records_of_the_step_itself_and_later_are_not_looked_at():
    scheduler = new_scheduler()
    drive(scheduler, 5)
    before = scheduler.select(5)
    scheduler.observe([rewards_of(task.key, step) for task in POOL.tasks[::3] for step in (5, 6)])
    assert scheduler.select(5) == before
    assert scheduler.select(3).tasks == drive(new_scheduler(), 4)[3].tasks


def test_seed_decides_the_cold_start():
    batches = [new_scheduler(seed=seed).select(0) for seed in (0, 0, 1)]
    assert batches[0] == batches[1]
    assert batches[0].tasks != batches[2].tasks
    assert {pick.lane for pick in batches[0].picks} == {Lane.COLD_START}
    assert len({pick.environment for pick in batches[0].picks}) == 8


def test_picks_keep_lane_score_terms_and_the_lane_sizes():
    scheduler = new_scheduler(coverage_share=0.25)
    batch = drive(scheduler, 6)[-1]
    assert [pick.lane for pick in batch.picks] == [Lane.COVERAGE] * 3 + [Lane.EXPLOITATION] * 9
    for pick in batch.picks:
        assert {"own", "within", "cross", "prior", "guard", "discount", "penalty", "variance"} <= pick.terms.keys()
        assert 0 <= pick.score <= 1
        assert all(type(value) is float and math.isfinite(value) for value in pick.terms.values())
    exploited = batch.picks[3:]
    worth = [pick.score * pick.terms["discount"] - pick.terms["penalty"] for pick in exploited]
    assert all(0 < pick.terms["discount"] <= 1 and 0 <= pick.terms["penalty"] <= 0.08 for pick in exploited)
    assert worth[0] == max(worth)


def test_the_papers_rule_discounts_undecayed_and_ours_decayed():
    scheduler = new_scheduler(estimator="paper", half_life=1)
    batches = drive(scheduler, 9)
    times = {task.key: sum(task.key in batch.tasks for batch in batches[:8]) for task in POOL.tasks}
    for pick in batches[8].picks:
        if pick.lane is Lane.EXPLOITATION:
            assert pick.terms["discount"] == pytest.approx(16 / (16 + times[pick.task]))
    ours = drive(new_scheduler(half_life=1), 9)
    picks = [pick for pick in ours[8].picks if pick.lane is Lane.EXPLOITATION]
    selected = {pick.task: [8 - s for s in range(8) if pick.task in ours[s].tasks] for pick in picks}
    for pick in picks:
        by_exposures = 16 / (16 + sum(2.0**-age for age in selected[pick.task]))
        assert pick.terms["discount"] == pytest.approx(by_exposures * pick.terms["headroom"])


def test_the_papers_rule_covers_with_the_least_observed_whatever_the_chance_to_explore():
    never, always = (drive(new_scheduler(estimator="paper", coverage_explore=chance), 8) for chance in (0.0, 1.0))
    assert never == always
    assert drive(new_scheduler(coverage_explore=0.0), 8) != drive(new_scheduler(coverage_explore=1.0), 8)
    times = {task.key: sum(2.0 ** ((s - 7) / 8) for s in range(7) if task.key in never[s].tasks) for task in POOL.tasks}
    for pick in never[7].picks:
        if pick.lane is Lane.COVERAGE:
            mates = [task.key for task in POOL.tasks if task.environment == pick.environment]
            assert times[pick.task] == pytest.approx(min(times[mate] for mate in mates))


def test_quotas_hold_over_many_steps_and_missing_groups_count_as_selected():
    scheduler = EnvScheduler(make_pool(20, 12), SchedulerConfig(), 1, make_features(make_pool(20, 12)))
    batches = drive(scheduler, 25, missing=0.3)
    pool = scheduler.pool
    rows = [(batch.step, pool.rows_of(batch.tasks).tolist()) for batch in batches]
    assert broken_quotas(rows, pool.offsets) == set()
    assert not any(batch.relaxed for batch in batches)


def test_full_coverage_of_the_published_shape_visits_51_environments_in_every_batch():
    pool = Pool.synthetic(51, 50)
    scheduler = EnvScheduler(pool, SchedulerConfig(coverage_share=1.0), 0, make_features(pool))
    assert {len({pick.environment for pick in batch.picks}) for batch in drive(scheduler, 12)} == {51}


def test_a_pool_smaller_than_a_batch_is_refused_at_construction():
    with pytest.raises(SelectionError, match="the batch needs 64 tasks, the pool has 48"):
        EnvScheduler(POOL, SchedulerConfig(), 0, FEATURES)


def test_features_of_another_pool_are_refused():
    with pytest.raises(StateError, match="made for the pool with fingerprint"):
        EnvScheduler(make_pool(8, 7), small_config(), 0, FEATURES)


@pytest.mark.parametrize("value", [-1, 1.5, "0", True, None])
def test_seed_and_step_must_be_whole_numbers(value):
    with pytest.raises(ConfigError, match=r"seed must be a whole number from 0"):
        new_scheduler(seed=value)
    with pytest.raises(ConfigError, match=r"step must be a whole number from 0"):
        new_scheduler().select(value)


def bad_record(**changes):
    fields = {"task": POOL.tasks[0].key, "step": 2, "rewards": (0.5,) * 8, "status": (Status.OK,) * 8, "policy_version": 2}
    return RolloutRecord(**(fields | changes))


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"rewards": (math.nan,) * 8}, RecordError, "finite"),
        ({"rewards": (None,) * 8}, RecordError, "no reward came"),
        ({"rewards": (1.5,) * 8}, RecordError, "1.5"),
        ({"rewards": ({"total": 1},) * 8}, RecordError, "dict"),
        ({"task": "no-such-task"}, UnknownTaskError, "no-such-task"),
        ({"rewards": (0.5,) * 7}, RecordError, "7 rewards"),
    ],
)
def test_a_bad_record_is_refused_and_nothing_is_lost_or_half_taken(changes, error, says):
    scheduler = new_scheduler()
    drive(scheduler, 2)
    batch = scheduler.select(2)
    state = scheduler.state_dict()
    with pytest.raises(error, match=says):
        scheduler.observe([*records_of(batch), bad_record(**changes)])
    assert scheduler.state_dict() == state
    scheduler.observe(records_of(batch))
    assert scheduler.select(3) == drive(new_scheduler(), 4)[3]


def test_another_record_for_a_known_task_and_step_is_refused():
    scheduler = new_scheduler()
    [batch] = drive(scheduler, 1)
    with pytest.raises(RecordError, match="already has another record"):
        scheduler.observe([bad_record(task=batch.tasks[0], step=0, policy_version=0, rewards=(0.1,) * 8)])


def test_a_state_of_another_pool_is_refused_with_the_keys_that_differ():
    pool = make_pool(8, 5)  # the last task of each environment is gone
    state = new_scheduler().state_dict()
    with pytest.raises(StateError, match=r"8 tasks removed: .*task_0005.* and 3 more.*carry_over"):
        new_scheduler(pool=pool, features=make_features(pool)).load_state_dict(state)
    grown = make_pool(8, 7)
    with pytest.raises(StateError, match=r"8 tasks added"):
        new_scheduler(pool=grown, features=make_features(grown)).load_state_dict(state)
    with pytest.raises(StateError, match=r"not a scheduler state"):
        new_scheduler().load_state_dict({"seed": 0})


def test_a_changed_text_under_the_same_keys_is_refused():
    changed = Pool.synthetic(8, 6, seed=1)
    with pytest.raises(StateError, match="48 tasks edited"):
        new_scheduler(pool=changed, features=make_features(changed)).load_state_dict(new_scheduler().state_dict())


def test_metrics_are_documented_plain_floats():
    scheduler = new_scheduler()
    assert scheduler.metrics() == {}
    drive(scheduler, 10)
    metrics = scheduler.metrics()
    assert metrics.keys() == METRICS.keys()
    assert all(type(value) is float and math.isfinite(value) for value in metrics.values())
    last = [rewards_of(task, 9) for task in scheduler.select(9).tasks]
    assert metrics["reward/mean"] == pytest.approx(np.mean([np.mean(record.rewards) for record in last]))
    assert metrics["variance/within_task_mean"] == pytest.approx(np.mean([np.var(record.rewards, ddof=1) for record in last]))
    assert metrics["variance/zero_share"] == np.mean([np.ptp(record.rewards) == 0 for record in last])
    assert metrics["batch/environments"] == len({pick.environment for pick in scheduler.select(9).picks})
    assert metrics["batch/observed_tasks"] == 12
    pooled = new_scheduler(prior="pooled")
    drive(pooled, 10)
    assert pooled.metrics()["calibration/spearman"] > 0


def test_metrics_leave_no_trace_in_later_batches():
    quiet, loud = new_scheduler(), new_scheduler()
    for step in range(8):
        batch = quiet.select(step)
        assert loud.select(step) == batch
        for scheduler in (quiet, loud):
            scheduler.observe(records_of(batch))
        loud.metrics()


def test_it_is_a_scheduler_with_five_verbs():
    assert isinstance(new_scheduler(), Scheduler)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": "7"},
        {"seed": -1},
        {"seed": True},
        {"pool": None},
        {"pool": {"fingerprint": 3}},
        {"history": {}},
        {"history": [3]},
        {"format": "envsched state 1"},
        {"pool": POOL.outline.to_json() | {"contents": ["x"]}},
        {"pool": POOL.outline.to_json() | {"environment_of": [99] * len(POOL)}},
        {"changes": [{}]},
        {"leases": {"3": ["nobody"]}},
        {"leases": {"three": []}},
    ],
)
def test_an_altered_state_is_refused_and_nothing_is_lost(change):
    pool = make_pool()
    scheduler = EnvScheduler(pool, small_config(), 3, make_features(pool))
    before = scheduler.state_dict()
    with pytest.raises(StateError, match="not a scheduler state"):
        scheduler.load_state_dict(before | change)
    with pytest.raises(StateError, match="not a scheduler state"):
        scheduler.load_state_dict(None)
    assert scheduler.state_dict() == before
