"""The pool of the learning experiment: the same each time, solvable in principle, apart from the held-out tasks."""

import copy
from collections import Counter

import pytest

from benchmarks.learning_pool import kind_of, learning_drafts, learning_pool, without_signal
from scripts.bundled_pool.build import SOURCES
from tests.pool.test_bundled import POOLS


@pytest.fixture(scope="module")
def pool():
    return learning_pool()


def test_it_is_the_same_each_time(pool):
    assert learning_pool().fingerprint == pool.fingerprint


def test_it_has_tasks_of_every_kind_and_none_that_is_held_out(pool):
    kinds = Counter(kind_of(task.key) for task in pool.tasks)
    assert set(kinds) == {"open", "solved", "foreign"}
    assert set(Counter(task.environment for task in pool.tasks).values()) == {30}, "no environment of a few tasks"
    assert not {task.prompt for task in pool.tasks} & {task.prompt for task in POOLS["held_out"].tasks}


def test_each_environment_has_something_to_learn(pool):
    num_open = Counter(task.environment for task in pool.tasks if kind_of(task.key) == "open")
    assert (min(num_open.values()), max(num_open.values())) == (8, 12)
    assert len(num_open) == len(pool.environments), "open tasks in every environment: the held-out tasks ask for all of them"


def test_share_without_signal_is_that_of_all_groups_that_can_be_drawn():
    assert without_signal([0.5] * 16) == 1
    assert without_signal([1.0] * 8 + [0.0] * 8) == pytest.approx(2 / 12870)  # 16 over 8
    assert without_signal([1.0] * 9 + [0.0] * 7) == pytest.approx(9 / 12870)


def test_reference_actions_pass_every_check():
    for key, draft in learning_drafts().items():
        scope = {}
        exec((SOURCES / f"{draft.domain.key}.py").read_text(), scope)
        environment = scope[draft.domain.class_name](copy.deepcopy(draft.initial_state))
        for tool, arguments in draft.actions:
            getattr(environment, tool)(**arguments)
        for question, source in draft.checks:
            checks = {"initial_state": draft.initial_state}
            exec(source, checks)
            assert checks["check_func"](vars(environment)), f"{key}: {question}"
