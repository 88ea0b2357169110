import os
import time

import pytest

from envsched.errors import UnknownTaskError
from envsched.runtime import EnvironmentRuntime, Outcome
from envsched.types import Status
from tests.runtime.pools import counter_pool, one_task_pool, tool


@pytest.fixture(scope="module")
def runtime():
    with EnvironmentRuntime(counter_pool(), num_workers=1, call_seconds=1.0, result_chars=1000) as runtime:
        yield runtime


def test_calls_change_the_state_and_checks_see_it(runtime):
    with runtime.start("task") as episode:
        assert episode.score().passed == (False, False, False, False)
        observation = episode.call("add", {"amount": 2})
        assert (observation.text, observation.ok, observation.status) == ("{'count': 3}", True, Status.OK)
        report = episode.score()
        assert report.passed == (True, True, False, False)
        assert report.reward == 0.5
        assert {(problem.check, problem.kind) for problem in report.problems} == {(2, "not_boolean"), (3, "raised")}
        assert "KeyError" in report.errors[1]


def test_reward_is_unrounded_and_the_rounded_form_is_envscalers():
    checks = ["def check_func(final_state):\n    return True"] * 2 + ["def check_func(final_state):\n    return False"]
    with EnvironmentRuntime(counter_pool(checks), num_workers=1) as runtime, runtime.start("task") as episode:
        report = episode.score()
    assert report.reward == 2 / 3
    assert report.rounded == 0.6667


@pytest.mark.parametrize(
    ("tool_name", "arguments", "outcome", "words"),
    [
        ("vanished", {}, Outcome.UNKNOWN_TOOL, "unknown tool 'vanished'"),
        ("_secret", {}, Outcome.UNKNOWN_TOOL, "unknown tool"),
        ("__init__", {"config": {}}, Outcome.UNKNOWN_TOOL, "unknown tool"),
        ("add", {}, Outcome.BAD_ARGUMENTS, "missing argument 'amount'"),
        ("add", {"amount": 1, "extra": 2}, Outcome.BAD_ARGUMENTS, "unknown argument 'extra'"),
        ("add", {"amount": "1"}, Outcome.BAD_ARGUMENTS, "must be integer, came str"),
        ("add", {"amount": True}, Outcome.BAD_ARGUMENTS, "must be integer, came bool"),
        ("fail", {"words": "no"}, Outcome.RAISED, "ValueError: no"),
    ],
)
def test_every_bad_call_is_told_in_one_way_and_the_episode_goes_on(runtime, tool_name, arguments, outcome, words):
    with runtime.start("task") as episode:
        observation = episode.call(tool_name, arguments)
        assert observation.outcome is outcome
        assert not observation.ok
        assert observation.text.startswith("Error: ")
        assert words in observation.text
        assert episode.counts[outcome] == 1
        assert episode.call("add", {"amount": 1}).ok


def test_a_long_result_is_cut_and_says_so(runtime):
    with runtime.start("task") as episode:
        observation = episode.call("talk", {"length": 5000})
    assert observation.ok
    assert observation.outcome is Outcome.CUT
    assert observation.text.endswith("x... [cut: 4000 of 5000 characters not shown]")


def test_a_call_that_never_ends_is_a_timeout_and_the_next_episode_runs(runtime):
    with runtime.start("task") as episode:
        before = time.monotonic()
        observation = episode.call("spin", {})
        assert 0.9 < time.monotonic() - before < 3
        assert (observation.outcome, episode.status) == (Outcome.TIMEOUT, Status.TIMEOUT)
        assert episode.call("add", {"amount": 1}).outcome is Outcome.ENDED
    with runtime.start("task") as episode:
        assert episode.call("add", {"amount": 1}).ok


def test_an_episode_has_a_limit_beside_that_of_its_calls():
    with EnvironmentRuntime(counter_pool(), num_workers=1, episode_seconds=0.5) as runtime, runtime.start("task") as episode:
        outcomes = [episode.call("linger", {}).outcome for _ in range(4)]
        assert outcomes[0] is Outcome.OK
        assert Outcome.TIMEOUT in outcomes
        assert episode.status is Status.TIMEOUT


SLOW_ONCE = """
class Box:
    def __init__(self, config):
        self.count = 0
    def wait(self):
        import select
        select.select([], [], [], 0.4)
        self.count += 1
        return "waited"
    def spin(self):
        while True:
            pass
"""


def test_a_timeout_keeps_its_reward_even_where_earlier_calls_were_slow():
    """The state before the call is built again by the same calls; what ended in time once is not held to the limit again."""
    check = "def check_func(s):\n    return s['count'] == 2"
    pool = one_task_pool(SLOW_ONCE, [tool("wait"), tool("spin")], [check])
    with EnvironmentRuntime(pool, num_workers=1, call_seconds=0.6) as runtime, runtime.start("task", 0) as episode:
        assert [episode.call("wait", {}).ok for _ in range(2)] == [True, True]
        assert episode.call("spin", {}).outcome is Outcome.TIMEOUT
        report = episode.score()
        assert (report.reward, report.status) == (1.0, Status.TIMEOUT)


def test_a_state_that_can_not_be_reached_again_is_missing_and_no_fault_of_the_checks():
    """The process's own number is chance that no seed reaches."""
    source = """
import os
class Box:
    def __init__(self, config):
        self.count = 0
    def number(self):
        return os.getpid()
    def wait(self, number):
        while os.getpid() != number:
            pass
    def spin(self):
        while True:
            pass
"""
    pool = one_task_pool(source, [tool("number"), tool("wait"), tool("spin")], ["def check_func(s): return True"] * 8)
    with EnvironmentRuntime(pool, num_workers=1, call_seconds=0.3) as runtime, runtime.start("task", 0) as episode:
        number = int(episode.call("number", {}).text)
        assert episode.call("wait", {"number": number}, validate=False).ok
        assert episode.call("spin", {}).outcome is Outcome.TIMEOUT
        report = episode.score()
        assert (report.reward, report.status, report.problems) == (None, Status.INFRA_ERROR, ())
        assert "can't be reached again: it took longer" in episode.problem


def test_cpu_seconds_are_limited_too():
    with EnvironmentRuntime(counter_pool(), num_workers=1, cpu_seconds=1, call_seconds=30) as runtime, runtime.start("task") as episode:
        assert episode.call("spin", {}).outcome is Outcome.TIMEOUT
        assert episode.problem == "it used up its CPU seconds"


def test_a_process_that_dies_gives_no_reward(runtime):
    with runtime.start("task") as episode, runtime.start("task") as neighbour:
        assert episode.call("vanish", {}).outcome is Outcome.DIED
        assert episode.status is Status.INFRA_ERROR
        report = episode.score()
        assert report.reward is None
        assert report.status is Status.INFRA_ERROR
        assert neighbour.call("add", {"amount": 2}).text == "{'count': 3}"


def test_seeded_episodes_are_equal_and_unseeded_ones_are_not(runtime):
    def marks(seed):
        with runtime.start("task", seed) as episode:
            return episode.call("mark", {}).text, episode.call("mark", {}).text, episode.snapshot()

    assert marks(7) == marks(7)
    assert marks(7) != marks(8)
    assert marks(None) != marks(None)
    assert marks(7)[0] != marks(7)[1]


def test_many_calls_at_once_keep_their_order(runtime):
    episodes = runtime.start_many(["task"] * 20)
    for amount in (1, 10):
        observations = runtime.call_many([(episode, "add", {"amount": amount + i}) for i, episode in enumerate(episodes)])
    assert [observation.text for observation in observations] == [f"{{'count': {1 + 1 + 10 + 2 * i}}}" for i in range(20)]
    for episode in episodes:
        episode.close()


def test_one_hanging_call_among_many_delays_no_other_result(runtime):
    episodes = runtime.start_many(["task"] * 4)
    calls = [(episode, "spin" if i == 1 else "add", {} if i == 1 else {"amount": 1}) for i, episode in enumerate(episodes)]
    observations = runtime.call_many(calls)
    assert [observation.outcome for observation in observations] == [Outcome.OK, Outcome.TIMEOUT, Outcome.OK, Outcome.OK]
    for episode in episodes:
        episode.close()


def test_an_unknown_task_is_the_callers_fault(runtime):
    with pytest.raises(UnknownTaskError, match="'nowhere'"):
        runtime.start("nowhere")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("class Box(", "does not compile"),
        ("1 / 0", "ZeroDivisionError"),
        ("x = 1", "defines no class 'Box'"),
        ("class Box:\n    def __init__(self, config):\n        raise KeyError('no')", "can't be constructed"),
        ("class Box:\n    def __init__(self, config):\n        while True: pass", "longer than its time limit"),
        ("import os; os._exit(0)", "its process is gone"),
    ],
)
def test_an_environment_that_can_not_start_gives_an_infra_error(source, words):
    with EnvironmentRuntime(
        one_task_pool(source, [tool("go")], ["def check_func(s): return True"]), num_workers=1, start_seconds=2
    ) as runtime:
        episode = runtime.start("task")
        assert episode.status is Status.INFRA_ERROR
        assert words in episode.problem
        assert episode.score().reward is None


def test_a_constructor_without_arguments_is_envscalers_other_form():
    source = "class Box:\n    def __init__(self):\n        self.items = {}\n    def count(self):\n        return len(self.items)"
    pool = one_task_pool(source, [tool("count")], ["def check_func(s): return len(s['items']) == 2"], {"items": {"a": 1, "b": 2}})
    with EnvironmentRuntime(pool, num_workers=1) as runtime, runtime.start("task") as episode:
        assert episode.call("count", {}).text == "2"
        assert episode.score().reward == 1.0


def test_a_check_that_changes_the_state_is_reported_and_harms_no_other():
    checks = ["def check_func(s):\n    s['count'] = 99\n    return True", "def check_func(s):\n    return s['count'] == 1"]
    with EnvironmentRuntime(counter_pool(checks), num_workers=1) as runtime, runtime.start("task") as episode:
        report = episode.score()
        assert report.passed == (True, True)
        assert [(problem.check, problem.kind) for problem in report.problems] == [(0, "mutates_state")]
        assert episode.call("add", {"amount": 1}).text == "{'count': 2}"


def test_a_worker_killed_from_outside_is_replaced(runtime):
    os.kill(runtime._launcher.workers[0].process_id, 9)
    time.sleep(0.1)
    with runtime.start("task") as episode:
        assert episode.call("add", {"amount": 1}).ok


def test_closing_leaves_no_process():
    runtime = EnvironmentRuntime(counter_pool(), num_workers=2)
    runtime.start_many(["task"] * 4)
    folder = f"/proc/{runtime._launcher.workers[0].process_id}"
    runtime.close()
    assert not os.path.exists(folder)
