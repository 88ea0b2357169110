from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsched.pool import Pool
from envsched.train.ordering import LengthForecast
from envsched.types import Environment, RolloutRecord, Status, Task

POOL = Pool([Environment(f"e{e}") for e in range(4)], [Task(f"e{e}-{i}", f"e{e}", "x" * (10 * i + 10)) for e in range(4) for i in range(5)])
KEYS = [task.key for task in POOL.tasks]


def record(task, tokens):
    return RolloutRecord(task, 0, (0.0, 1.0), (Status.OK, Status.OK), 0, tokens=(tokens, tokens))


def test_before_any_record_environments_come_as_the_batch_named_them():
    forecast = LengthForecast(POOL)
    assert forecast.order([KEYS[5], KEYS[0], KEYS[6], KEYS[1]]) == [KEYS[5], KEYS[6], KEYS[0], KEYS[1]]


def test_the_last_mean_of_a_task_else_the_line_through_those_seen():
    """Prompts of 10 and 20 characters took 10 and 30 tokens: two tokens a character, less 10."""
    forecast = LengthForecast(POOL)
    forecast.observe([record(KEYS[0], 10), record(KEYS[6], 99)])
    forecast.observe([record(KEYS[6], 30)])
    assert forecast.tokens(KEYS[6]) == 30
    assert forecast.tokens(KEYS[12]) == pytest.approx(50), "30 characters, of an environment never seen"


def test_one_length_of_prompts_says_the_mean_for_all():
    forecast = LengthForecast(POOL)
    forecast.observe([record(KEYS[0], 10), record(KEYS[5], 30)])
    assert forecast.tokens(KEYS[12]) == 20


def test_long_environments_come_first_and_long_tasks_first_in_them():
    forecast = LengthForecast(POOL)
    forecast.observe([record(KEYS[0], 10), record(KEYS[5], 30), record(KEYS[6], 50), record(KEYS[7], 40)])
    assert forecast.order([KEYS[0], KEYS[5], KEYS[6], KEYS[7]]) == [KEYS[6], KEYS[7], KEYS[5], KEYS[0]]


@given(tasks=st.lists(st.sampled_from(KEYS), unique=True, min_size=1), seen=st.dictionaries(st.sampled_from(KEYS), st.integers(1, 99)))
def test_nothing_is_lost_and_environments_stay_together(tasks, seen):
    forecast = LengthForecast(POOL)
    forecast.observe(record(task, tokens) for task, tokens in seen.items())
    order = forecast.order(tasks)
    assert sorted(order) == sorted(tasks)
    environments = [POOL.task(task).environment for task in order]
    changes = sum(a != b for a, b in pairwise(environments))
    assert changes == len(set(environments)) - 1
