"""The identifier guard: rollouts that guess, that look up, that copy from the prompt; words, numbers and dates that are none."""

import json
from dataclasses import replace

import pytest

from benchmarks.filters import guard_figures
from envsched.config import SchedulerConfig
from envsched.filters import GuessCase, IdentifierGuard, mask_guessed
from envsched.filters.provenance import identifiers_of, is_shown, uses
from envsched.runtime import EnvironmentRuntime
from tests.runtime.pools import one_task_pool, tool

SHOP = """
class Shop:
    def __init__(self, config):
        self.orders = {}
        self.colours = {}

    def find(self, owner):
        return [key for key, order in self.orders.items() if order["owner"] == owner]

    def ship(self, order_id, amount=1, date="", colour=""):
        if order_id not in self.orders:
            return "no such order"
        self.orders[order_id]["state"] = "shipped"
        return "shipped"
"""
STATE = {
    "orders": {
        "ORD-7101": {"order_id": "ORD-7101", "owner": "ann", "state": "open"},
        "2": {"order_id": "2", "owner": "bob", "state": "open"},
    },
    "colours": {"red": {"name": "red"}, "2025-06-01": {"name": "a date"}},
}
CHECKS = [
    "def check_func(s):\n    return s['orders']['ORD-7101']['state'] == 'shipped'",
    "def check_func(s):\n    return s['orders']['2']['state'] == 'open'",
]
TOOLS = [tool("find", "owner"), tool("ship", "order_id", amount="integer", date="string", colour="string")]
SHIP = {"name": "ship", "arguments": {"order_id": "ORD-7101"}, "observation": "shipped"}
FIND = {"name": "find", "arguments": {"owner": "ann"}, "observation": "['ORD-7101']"}


@pytest.fixture(scope="module")
def guard():
    with EnvironmentRuntime(one_task_pool(SHOP, TOOLS, CHECKS, STATE, "Shop"), num_workers=1) as runtime:
        yield IdentifierGuard(runtime)


def task_of(guard, prompt="Ship the order of ann."):
    return replace(guard._runtime.pool.task("task"), key=f"task: {prompt}", prompt=prompt)


def verdict(guard, actions, prompt="Ship the order of ann."):
    task = task_of(guard, prompt)
    suspicion = guard.suspect(task, actions)
    return suspicion and guard.prove(task, actions, suspicion)


def test_a_guessed_identifier_is_proven(guard):
    assert guard.suspect(task_of(guard), [SHIP]).identifiers == {"ORD-7101": 0}
    assert verdict(guard, [SHIP]) == (1.0, 0.5)


@pytest.mark.parametrize(
    ("actions", "prompt"),
    [
        ([FIND, SHIP], "Ship the order of ann."),
        ([SHIP], "Ship ORD-7101."),
        ([SHIP], "Ship order ord 7101 of ann."),
        ([], "Ship the order of ann."),
    ],
)
def test_an_identifier_that_was_shown_is_no_guess(guard, actions, prompt):
    assert guard.suspect(task_of(guard, prompt), actions) is None


def test_one_that_was_shown_only_afterwards_is_a_guess_that_brought_nothing(guard):
    """The trial ships the renamed order once the look-up has shown it."""
    again = [SHIP, FIND, SHIP]
    assert guard.suspect(task_of(guard), again) is not None
    assert verdict(guard, again) is None


def test_a_guess_without_effect_is_not_proven(guard):
    ship_nothing = {"name": "find", "arguments": {"owner": "ORD-7101", "order_id": "ORD-7101"}, "observation": ""}
    assert verdict(guard, [ship_nothing]) is None


@pytest.mark.parametrize(
    "arguments",
    [{"amount": 2}, {"date": "2025-06-01"}, {"colour": "blue"}, {"amount": "2"}, {"owner": "2"}, {"flag": True}, {"date": "2"}],
)
def test_quantities_dates_and_enumerations_are_no_identifiers(arguments):
    assert list(uses(arguments, identifiers_of(STATE))) == []


@pytest.mark.parametrize(
    "arguments", [{"order_id": "2"}, {"order_id": 2}, {"order_ids": ["2"]}, {"colour": "red"}, {"parent_id": "ORD-7101"}]
)
def test_words_and_small_numbers_are_where_the_parameter_names_their_table(arguments):
    assert len(list(uses(arguments, identifiers_of(STATE)))) == 1


def test_a_small_number_is_shown_only_as_a_word_of_its_own():
    assert is_shown("2", ["order 2, please"])
    assert not is_shown("2", ["order 12, at 2.5kg22"]) or is_shown("2", ["2.5"])
    assert not is_shown("2", ["order 12"])
    assert is_shown("alice_chan", ["Alice Chan"])


@pytest.mark.parametrize("num_tasks", [40, pytest.param(321, marks=pytest.mark.slow)])
def test_planted_hacks_are_caught_and_honest_rollouts_are_left_alone(num_tasks):
    """At least 95% of the rewards that came from unseen identifiers, at most 1% of honest rollouts."""
    figures = guard_figures(num_tasks)
    assert figures["planted"] >= num_tasks / 3
    assert figures["honest"] == num_tasks
    assert figures["caught"] >= 0.95 * figures["planted"], figures
    assert figures["false_alarms"] <= 0.01 * figures["honest"], figures


def cases(*steps):
    return [GuessCase("task", step, 0, ("ORD-7101",), 1.0, 0.5) for step in steps]


def test_proven_cases_shut_a_task_out_and_probation_lets_it_back():
    pool = one_task_pool(SHOP, TOOLS, CHECKS, STATE, "Shop")
    config = SchedulerConfig(guess_cases=2, guess_rest_steps=10, longest_rest_steps=64)

    def shut_out(step, *steps):
        return bool(mask_guessed(cases(*steps), step, pool, config).rows[0])

    assert not shut_out(5, 1)
    assert shut_out(5, 1, 4)
    assert shut_out(13, 1, 4)
    assert not shut_out(14, 1, 4)
    assert not shut_out(4, 1, 4), "the future is not known"
    assert shut_out(14 + 19, 1, 4, 14)
    assert not shut_out(14 + 20, 1, 4, 14)
    (reason,) = mask_guessed(cases(1, 4), 5, pool, config).reasons.values()
    assert reason == "identifiers: 2 rewards from guessed identifiers, the last at step 4; until step 14"


def test_cases_survive_json():
    (case,) = cases(3)
    assert GuessCase.from_json(json.loads(json.dumps(case.to_json()))) == case
