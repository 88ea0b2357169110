import json
import logging
import random

import numpy as np
import pytest

from envsched.config import SchedulerConfig
from envsched.errors import RecordError, StateError, UnknownTaskError
from envsched.history import History, group_statistics
from envsched.types import RolloutRecord, Status
from tests.history.pools import record, small_pool

POOL = small_pool()
RECORDS = [
    record("a0", 0, 0.0, 1.0, 1 / 3),
    record("c1", 0, 0.5, None, status=["ok", "aborted"]),
    record("a0", 2, 0.2, 0.4, policy_version=1),
    record("b0", 2, None, None, status=["infra_error", "verifier_error"]),
    record("a1", 5, 1.0, 1.0),
]


def filled() -> History:
    history = History(POOL)
    history.extend(RECORDS)
    return history


def snapshot(history: History):
    return history.to_list(), history.digest_before(99), len(history.visits), len(history)


def test_visits_hold_what_the_groups_say():
    visits = filled().visits
    assert visits.row.tolist() == [0, 5, 0, 3, 1]
    assert visits.step.tolist() == [0, 0, 2, 2, 5]
    assert visits.policy_version.tolist() == [0, 0, 1, 2, 5]
    groups = [group_statistics(r) for r in RECORDS]
    assert visits.num_valid.tolist() == [g.num_valid for g in groups]
    np.testing.assert_array_equal(visits.mean, [np.nan if g.mean is None else g.mean for g in groups])
    np.testing.assert_array_equal(visits.variance, [np.nan if g.variance is None else g.variance for g in groups])


def test_the_order_of_arrival_leaves_no_trace():
    expected = snapshot(filled())
    for seed in range(10):
        shuffled = random.Random(seed).sample(RECORDS, len(RECORDS))
        history = History(POOL)
        for r in shuffled:
            assert history.add(r)
            assert len(history.visits) == len(history)  # merged one by one
        assert snapshot(history) == expected
        for mine, theirs in zip(history.visits.variance, filled().visits.variance, strict=True):
            assert mine == theirs or (np.isnan(mine) and np.isnan(theirs))


def test_the_same_record_again_counts_once_and_is_said_once(caplog):
    history = filled()
    before = snapshot(history)
    with caplog.at_level(logging.WARNING):
        assert not history.add(RECORDS[0])
        assert history.extend(RECORDS) == 0
    assert len(caplog.records) == 1
    assert "task 'a0', step 0: the same record came again" in caplog.text
    assert snapshot(history) == before


def test_the_same_record_twice_in_one_batch_counts_once():
    history = History(POOL)
    assert history.extend([RECORDS[0], RECORDS[1], RECORDS[0]]) == 2


def test_tokens_traces_and_unknown_fields_do_not_make_another_record():
    history = filled()
    again = RolloutRecord("a0", 0, RECORDS[0].rewards, RECORDS[0].status, 0, tokens=(1, 2, 3), trace="x", extra={"y": 1})
    assert not history.add(again)


@pytest.mark.parametrize(
    "other",
    [
        record("a0", 0, 0.0, 1.0, 1 / 3 + 1e-16),
        record("a0", 0, 0.0, 1.0),
        record("a0", 0, 0.0, 1.0, 1 / 3, status=["ok", "ok", "timeout"]),
        record("a0", 2, 0.2, 0.4, policy_version=2),
    ],
)
def test_another_record_for_the_same_task_and_step_is_refused(other):
    history = filled()
    before = snapshot(history)
    with pytest.raises(RecordError, match=f"task 'a0' already has another record for step {other.step}"):
        history.extend([record("a2", 9, 0.0, 1.0), other])
    assert snapshot(history) == before


def test_two_records_of_one_batch_that_differ_are_refused():
    history = History(POOL)
    with pytest.raises(RecordError, match="already has another record"):
        history.extend([record("a0", 1, 0.0, 1.0), record("a0", 1, 1.0, 1.0)])
    assert len(history) == 0


@pytest.mark.parametrize(
    "bad",
    [
        record("a0", 9, float("nan"), 0.5),
        record("a0", 9, None, 0.5),
        record("a0", 9, 1.5, 0.5),
        record("a0", 9, {"reward": 1}, 0.5),
        record("a0", 9, "1", 0.5),
        record("a0", 9, True, 0.5),
        record("a0", 9),
        record("a0", 9, 0.5, 0.5, status=["ok"]),
        record("a0", -1, 0.5, policy_version=-1),
        record("a0", 9, 0.5, policy_version=10),
        record("nowhere", 9, 0.5, 0.5),
        RolloutRecord("a0", 9, (0.5,), ("fine",), 9),
    ],
)
def test_a_bad_record_takes_nothing_of_its_batch_in(bad):
    history = filled()
    before = snapshot(history)
    with pytest.raises((RecordError, UnknownTaskError)) as refused:
        history.extend([record("a2", 9, 0.0, 1.0), bad, record("b0", 9, 0.0, 1.0)])
    assert bad.task in str(refused.value)
    assert snapshot(history) == before
    assert history.extend([record("a2", 9, 0.0, 1.0), record("b0", 9, 0.0, 1.0)]) == 2


def test_an_unknown_task_is_named_with_a_remedy():
    with pytest.raises(UnknownTaskError, match=r"task 'nowhere' is not in this pool of 6 tasks.*another pool"):
        filled().add(record("nowhere", 1, 0.5))


def test_a_list_through_json_gives_the_same_history():
    history = filled()
    history.add(record("a2", 7, 0.1, 0.1 + 0.2, 5e-324, 1 - 2**-53))
    entries = json.loads(json.dumps(history.to_list(), allow_nan=False))
    again = History.from_list(POOL, entries)
    assert snapshot(again) == snapshot(history)
    np.testing.assert_array_equal(again.visits.variance, history.visits.variance)


@pytest.mark.parametrize(
    "entry", [{"task": "nowhere", "step": 1, "rewards": [0.5]}, {"task": "a0", "step": 1, "rewards": [7]}, {"task": "a0"}]
)
def test_a_list_of_another_pool_or_range_is_refused(entry):
    with pytest.raises(StateError, match="does not fit this pool and config"):
        History.from_list(POOL, [entry])


def test_plain_types_make_equal_entries():
    plain, odd = History(POOL), History(POOL)
    plain.add(record("a0", 1, 0.5, 1.0))
    odd.add(RolloutRecord("a0", np.int64(1), [np.float64(0.5), 1], ["ok", Status.OK], np.int32(1)))
    assert snapshot(plain) == snapshot(odd)
    assert not plain.add(RolloutRecord("a0", np.int64(1), [np.float64(0.5), 1], ["ok", Status.OK], np.int32(1)))


def test_a_digest_covers_earlier_steps_alone():
    history = filled()
    digests = [history.digest_before(step) for step in range(8)]
    assert digests[1] == digests[2]  # nothing happened at step 1
    assert digests[3] == digests[4] == digests[5]
    assert len({digests[0], digests[1], digests[3], digests[6]}) == 4
    history.add(record("a2", 2, 0.0, 1.0))
    changed = [history.digest_before(step) for step in range(8)]
    assert changed[:3] == digests[:3]
    assert all(new != old for new, old in zip(changed[3:], digests[3:], strict=True))


def test_a_digest_sees_rewards_status_and_policy_version():
    def digest(r):
        history = History(POOL)
        history.add(r)
        return history.digest_before(5)

    variants = [
        record("a0", 3, 0.0, 1.0),
        record("a0", 3, 0.0, 1.0 - 2**-53),
        record("a0", 3, 0.0, 1.0, policy_version=2),
        record("a0", 3, 0.0, 1.0, status=["ok", "timeout"]),
        record("a1", 3, 0.0, 1.0),
        record("a0", 4, 0.0, 1.0),
    ]
    assert len({digest(r) for r in variants}) == len(variants)


def test_the_config_of_the_history_decides_range_and_ddof():
    history = History(POOL, SchedulerConfig(reward_high=2, ddof=0))
    history.add(record("a0", 0, 0.0, 2.0))
    assert history.visits.variance.tolist() == [1.0]
