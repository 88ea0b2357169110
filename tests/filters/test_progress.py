"""The progress filter against a plain re-telling of its rule, and on tasks that are mastered, forgotten, stuck."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.config import SchedulerConfig
from envsched.filters import mask_resting
from envsched.history import Visits

CONFIG = SchedulerConfig(top_visits=3, flat_visits=4, rest_steps=8, longest_rest_steps=64, probation_picks=2, open_batches=1)


def visits_of(rows):
    """Visits from (row, step, mean, variance), as the history keeps them."""
    rows = sorted(rows, key=lambda visit: (visit[1], visit[0]))
    columns = list(zip(*rows, strict=True)) if rows else [[], [], [], []]
    steps = np.array(columns[1], dtype=np.int64)
    counts = np.full(len(rows), 8, dtype=np.int64)
    return Visits(np.array(columns[0], dtype=np.int64), steps, steps, counts, np.array(columns[2], float), np.array(columns[3], float))


def resting(rows, step, num_tasks=20, batch_size=4, config=CONFIG):
    return mask_resting(visits_of(rows), step, num_tasks, config.model_copy(update={"batch_size": batch_size}))


def mastered(row, steps):
    return [(row, step, 1.0, 0.0) for step in steps]


def test_a_mastered_task_rests_and_its_rest_doubles_after_a_probation_that_changes_nothing():
    assert not resting(mastered(0, [0, 1]), 2).rows.any(), "two visits prove too little"
    three = mastered(0, [0, 1, 2])
    assert resting(three, 3).rows[0]
    assert resting(three, 9).rows[0]
    assert not resting(three, 10).rows[0], "2 + 8: on probation"
    assert resting(mastered(0, [0, 1, 2, 10]), 25).rows[0]
    assert not resting(mastered(0, [0, 1, 2, 10]), 26).rows[0], "10 + 16"
    assert resting(three, 3).reasons[0] == "progress: 3 visits in a row at the top; rests until step 10"


def test_a_fall_in_the_mean_ends_the_rest_at_once():
    assert not resting([*mastered(0, [0, 1, 2]), (0, 4, 0.7, 0.05)], 5).rows[0]
    assert not resting([*mastered(0, [0, 1, 2]), (0, 4, 0.7, 0.0)], 5).rows[0]


def test_a_task_stuck_at_equal_rewards_rests_and_progress_wakes_it():
    stuck = [(0, step, 0.25, 0.0) for step in range(4)]
    assert resting(stuck, 4).rows[0]
    assert not resting(stuck[:3], 4).rows[0]
    assert not resting([*stuck, (0, 5, 0.5, 0.0)], 6).rows[0], "a higher mean is progress"
    assert not resting([*stuck, (0, 5, 0.25, 0.01)], 6).rows[0], "a spread is evidence"


def test_a_group_without_evidence_says_nothing():
    assert resting([*mastered(0, [0, 1, 2]), (0, 3, np.nan, np.nan)], 4).rows[0]


def test_probation_is_a_small_budget_longest_waiting_first():
    everyone = [visit for row in range(6) for visit in mastered(row, [row, row + 1, row + 2])]
    at_30 = resting(everyone, 30)
    assert np.flatnonzero(~at_30.rows[:6]).tolist() == [0, 1]
    assert "waits for its probation" in at_30.reasons[5]


def test_the_pool_never_drains():
    everyone = [visit for row in range(20) for visit in mastered(row, [0, 1, 2])]
    open_tasks = ~resting(everyone, 3, batch_size=7, config=SchedulerConfig(open_batches=2, probation_picks=1)).rows
    assert open_tasks.sum() == 14
    assert not resting(everyone, 3, batch_size=20).rows.any()


def test_what_is_shut_for_other_reasons_does_not_count_as_open():
    everyone = [visit for row in range(20) for visit in mastered(row, [0, 1, 2])]
    shut = np.arange(20) >= 12
    config = SchedulerConfig(open_batches=2, probation_picks=1, batch_size=4)
    mask = mask_resting(visits_of(everyone), 3, 20, config, shut=shut)
    assert (~mask.rows & ~shut).sum() == 8
    assert mask.rows[shut].all()


def test_a_forgotten_task_is_back_within_its_probation_period():
    """A learner masters the task, forgets it while it rests; picked whenever it is open, its first visit brings it back."""
    rows, forgotten_at, back_at = [], 6, None
    for step in range(200):
        if resting(rows, step).rows[0]:
            continue
        rows.append((0, step, 1.0, 0.0) if step < forgotten_at else (0, step, 0.4, 0.1))
        if step >= forgotten_at:
            back_at = step
            break
    assert back_at is not None
    assert back_at - forgotten_at <= CONFIG.rest_steps
    assert not resting(rows, back_at + 1).rows[0]


def rule_in_words(rows, step, num_tasks, batch_size, config):
    """The same rule, visit by visit."""
    resting, due_tasks = {}, []
    for row in range(num_tasks):
        mine = sorted((when, mean, variance) for r, when, mean, variance in rows if r == row and when < step and not np.isnan(mean))
        top = flat = 0
        previous = None
        for _, mean, variance in mine:
            top = top + 1 if mean >= 1 - config.top_tolerance else 0
            moved = previous is None or abs(mean - previous) > config.top_tolerance
            flat = 0 if variance != 0 else 1 if moved else flat + 1
            previous = mean
        length = max(top - config.top_visits, flat - config.flat_visits)
        if not mine or length < 0:
            continue
        due = mine[-1][0] + min(config.rest_steps * 2**length, config.longest_rest_steps)
        resting[row] = due
        if step >= due:
            due_tasks.append((due, row))
    for _, row in sorted(due_tasks)[: config.probation_picks]:
        del resting[row]
    while num_tasks - len(resting) < min(num_tasks, config.open_batches * batch_size):
        del resting[min(resting, key=lambda row: (resting[row], row))]
    return sorted(resting)


VISIT = st.tuples(
    st.integers(0, 5), st.integers(0, 30), st.sampled_from([0.0, 0.25, 0.5, 0.99, 1.0, float("nan")]), st.sampled_from([0.0, 0.1])
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(VISIT, max_size=60, unique_by=lambda visit: visit[:2]),
    st.integers(0, 60),
    st.integers(1, 4),
    st.builds(
        SchedulerConfig,
        top_visits=st.integers(2, 3),
        flat_visits=st.integers(2, 4),
        rest_steps=st.integers(1, 9),
        longest_rest_steps=st.integers(1, 20),
        probation_picks=st.integers(1, 3),
        open_batches=st.integers(1, 2),
    ),
)
def test_the_arrays_say_what_the_rule_says(rows, step, batch_size, config):
    mask = resting(rows, step, num_tasks=7, batch_size=batch_size, config=config)
    assert np.flatnonzero(mask.rows).tolist() == rule_in_words(rows, step, 7, batch_size, config)
    assert set(mask.reasons) == set(np.flatnonzero(mask.rows).tolist())


@pytest.mark.parametrize("num_visits", [200_000])
def test_it_is_quick_on_a_long_history(num_visits):
    generator = np.random.default_rng(0)
    step = np.sort(generator.integers(0, 2000, num_visits))
    row = generator.integers(0, 2550, num_visits)
    mean, counts = generator.choice([0.0, 0.5, 1.0], num_visits), np.full(num_visits, 8)
    visits = Visits(row, step, step, counts, mean, np.zeros(num_visits))
    assert mask_resting(visits, 2001, 2550, SchedulerConfig()).rows.shape == (2550,)
