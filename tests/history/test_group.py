import math
import statistics as stdlib_statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsched.config import SchedulerConfig
from envsched.errors import RecordError
from envsched.history import GroupStatistics, group_statistics
from tests.history.pools import record

REWARDS = st.lists(st.floats(0, 1), min_size=2, max_size=12)


@given(REWARDS)
def test_equals_the_standard_library(rewards):
    found = group_statistics(record("a0", 0, *rewards))
    assert found.num_valid == len(rewards)
    assert found.mean == pytest.approx(stdlib_statistics.fmean(rewards))
    assert found.variance == pytest.approx(stdlib_statistics.variance(rewards), abs=1e-15)
    population = group_statistics(record("a0", 0, *rewards), SchedulerConfig(ddof=0))
    assert population.variance == pytest.approx(stdlib_statistics.pvariance(rewards), abs=1e-15)


@given(REWARDS, st.integers(0, 12), st.sampled_from(["infra_error", "verifier_error", "aborted"]), st.sampled_from([None, 0.0, 1.0]))
def test_a_missing_rollout_changes_nothing(rewards, place, status, reward):
    place = min(place, len(rewards))
    statuses = ["ok"] * len(rewards)
    extended = record("a0", 0, *rewards[:place], reward, *rewards[place:], status=[*statuses[:place], status, *statuses[place:]])
    assert group_statistics(extended) == group_statistics(record("a0", 0, *rewards))


def test_timeout_and_truncated_keep_their_reward():
    found = group_statistics(record("a0", 0, 0.0, 1.0, 1.0, status=["timeout", "truncated", "ok"]))
    assert (found.num_valid, found.mean) == (3, pytest.approx(2 / 3))


@pytest.mark.parametrize(
    ("settings", "left"),
    [({"timeout_counts": False}, (1.0, 1.0)), ({"truncated_counts": False}, (0.0, 1.0)), ({"ddof": 0}, (0.0, 1.0, 1.0))],
)
def test_a_pool_may_rule_that_rollouts_cut_short_are_missing(settings, left):
    given = record("a0", 0, 0.0, 1.0, 1.0, status=["timeout", "truncated", "ok"])
    config = SchedulerConfig(**settings)
    assert group_statistics(given, config) == group_statistics(record("a0", 0, *left), config)


def test_fewer_than_two_valid_rollouts_are_no_evidence():
    assert group_statistics(record("a0", 0, 0.5)) == GroupStatistics(1, 0.5, None)
    assert group_statistics(record("a0", 0, None, 0.5, status=["aborted", "ok"])) == GroupStatistics(1, 0.5, None)
    assert group_statistics(record("a0", 0, None, None, status=["aborted", "infra_error"])) == GroupStatistics(0, None, None)


def test_rewards_that_agree_up_to_rounding_have_variance_zero():
    assert group_statistics(record("a0", 0, 0.1 + 0.2, 0.3, 0.3)).variance == 0.0
    assert group_statistics(record("a0", 0, 0.3, 0.3 + 1e-6)).variance > 0


@pytest.mark.parametrize(
    ("reward", "named"),
    [
        (math.nan, "nan"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (1.5, "1.5"),
        (-0.1, "-0.1"),
        (None, "no reward came"),
        ({"score": 1}, "dict {'score': 1}"),
        ([1.0], "list [1.0]"),
        ("1.0", "str '1.0'"),
        (True, "bool True"),
        (np.nan, "nan"),
        (1 + 0j, "complex"),
    ],
)
def test_a_bad_reward_is_refused_by_task_step_and_value(reward, named):
    with pytest.raises(RecordError) as refused:
        group_statistics(record("a0", 7, 0.5, reward, 0.5))
    for part in ("'a0'", "step 7", "rollout 1", named):
        assert part in str(refused.value)


def test_the_declared_range_decides():
    wide = SchedulerConfig(reward_low=-1, reward_high=2)
    assert group_statistics(record("a0", 0, -1, 2), wide).variance == pytest.approx(4.5)
    with pytest.raises(RecordError, match=r"\[-1, 2\], came 2.5"):
        group_statistics(record("a0", 0, 2.5, 2), wide)


def test_a_sum_of_shares_may_miss_the_range_by_rounding():
    assert group_statistics(record("a0", 0, 0.1 * 3 + 0.7000000000000001, 1.0)).variance == 0.0


def test_numpy_rewards_are_numbers():
    found = group_statistics(record("a0", 0, np.float32(0.25), np.int64(1), 0))
    assert (found.num_valid, found.mean) == (3, pytest.approx(1.25 / 3))


def test_rewards_and_statuses_run_in_parallel():
    with pytest.raises(RecordError, match="2 rewards but 1 statuses"):
        group_statistics(record("a0", 0, 0.5, 0.5, status=["ok"]))
