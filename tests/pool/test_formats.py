"""Pools that are not EnvScaler's: JSONL, BFCL, tau-bench, and code of one's own."""

import json
import os
from pathlib import Path

import pytest

from envsched.errors import PoolError
from envsched.pool import Pool, PoolSource, pool_from
from envsched.pool.bfcl import read_bfcl
from envsched.pool.jsonl import read_jsonl, write_jsonl
from envsched.pool.opening import open_pool
from envsched.pool.tau_bench import read_tau_bench
from envsched.types import Check, Environment, Task


def lines(path: Path, *items) -> Path:
    path.write_text("".join(f"{item if isinstance(item, str) else json.dumps(item)}\n" for item in items))
    return path


# -- JSONL


def test_a_line_is_a_task_and_its_tools_belong_to_its_environment(tmp_path):
    tool = {"type": "function", "function": {"name": "find", "description": "Find."}}
    path = lines(
        tmp_path / "pool.jsonl",
        {"key": "b", "environment": "e", "prompt": "Do b", "tools": ["find", "move"], "verifier": ["done"], "state": {"x": 1}},
        {"key": "a", "environment": "e", "tools": [tool], "verifier": [{"text": "so?", "source": "def check_func(s): ..."}]},
        {"environment": "e", "summary": "A place", "rules": ["be kind"]},
    )
    pool = read_jsonl(path)
    assert [task.key for task in pool.tasks] == ["a", "b"]
    assert pool.environment("e").tool_names == ("find", "move")
    assert pool.environment("e").tools[0]["function"]["description"] == "Find."
    assert (pool.environment("e").summary, pool.environment("e").rules) == ("A place", ("be kind",))
    assert pool.task("b").initial_state == {"x": 1}
    assert pool.task("b").checks == (Check("done", ""),)
    assert pool.task("a").checks == (Check("so?", "def check_func(s): ..."),)
    assert open_pool(path).fingerprint == pool.fingerprint


@pytest.mark.parametrize("name", ["bundled", "synthetic:3x4", "real"])
def test_writing_and_reading_back_keeps_the_fingerprint(name, tmp_path):
    folder = os.environ.get("ENVSCHED_TESTDATA")
    if name == "real" and not folder:
        pytest.skip("ENVSCHED_TESTDATA names no folder with envscaler/ in it, so the real slice is not there to read")
    pool = open_pool(f"{folder}/envscaler" if name == "real" else name)
    write_jsonl(pool, tmp_path / "pool.jsonl")
    assert read_jsonl(tmp_path / "pool.jsonl").fingerprint == pool.fingerprint
    assert Pool.from_jsonl(tmp_path / "pool.jsonl").fingerprint == pool.fingerprint


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([{"key": "a", "environment": "e"}, {"key": "a", "environment": "f"}], r"line 2: task 'a' occurs twice, first in .*line 1"),
        ([{"environment": "e"}, {"environment": "e"}], r"line 2: environment 'e' occurs twice"),
        ([{"environment": "e"}], "no task"),
        ([], "no task"),
        (["{"], r"line 1: invalid JSON"),
        (["[1]"], r"item 0: expected an object; came int"),
        (["3"], r"line 1: expected an object; came int"),
        (['{"key": "a", "key": "b", "environment": "e"}'], r"line 1: key 'key' occurs twice in one object"),
        ([{"key": "a"}], r"line 1: field 'environment' must be a str; came nothing"),
        ([{"key": 3, "environment": "e"}], r"field 'key' must be a str; came int"),
        ([{"key": "a", "environment": "e", "promt": "x"}], r"unknown field 'promt'; known: environment, key, prompt"),
        ([{"key": "a", "environment": "e", "tools": [{}]}], r"a tool must be a function schema with a name"),
        ([{"key": "a", "environment": "e", "verifier": [3]}], r"verifier\[0\]: expected a string or an object"),
        ([{"key": "a", "environment": "e", "state": []}], r"field 'state' must be a dict; came list"),
        (
            [{"key": k, "environment": "e", "tools": [{"name": "f", "description": k}]} for k in "ab"],
            r"line 2: tool 'f' of environment 'e' is described in two ways",
        ),
    ],
)
def test_a_faulty_line_is_named(items, words, tmp_path):
    with pytest.raises(PoolError, match=words):
        read_jsonl(lines(tmp_path / "pool.jsonl", *items))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(PoolError, match=r"absent\.jsonl: no such file"):
        open_pool(tmp_path / "absent.jsonl")


# -- BFCL


def entry(key: str = "multi_turn_0", **changes) -> dict:
    question = [[{"role": "user", "content": "Go there."}], [{"role": "user", "content": "Now back."}]]
    base = {"id": key, "question": question, "initial_config": {"TravelAPI": {"x": 1}}, "path": ["MathAPI.add"]}
    return {**base, "involved_classes": ["TravelAPI", "MathAPI"], **changes}


def test_bfcl_entries_become_tasks_of_their_set_of_classes(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    lines(docs / "math_api.json", {"name": "add", "description": "Add.", "parameters": {"type": "dict"}}, {"name": "mean"})
    lines(docs / "travel_booking.json", {"name": "book"})
    file = lines(tmp_path / "multi_turn_base.json", entry(), entry("multi_turn_1", involved_classes=["MathAPI"]))
    answers = lines(tmp_path / "answers.json", {"id": "multi_turn_0", "ground_truth": [["add(a=1)", "book()"], ["mean()"]]})
    pool = read_bfcl(file, answers, docs)
    assert [environment.key for environment in pool.environments] == ["MathAPI", "MathAPI+TravelAPI"]
    task = pool.task("multi_turn_0")
    assert task.prompt == "Go there.\n\nNow back."
    assert [check.text for check in task.checks] == ["add(a=1)", "book()", "mean()"]
    assert pool.environment("MathAPI+TravelAPI").tool_names == ("add", "mean", "book")
    assert task.initial_state == {"TravelAPI": {"x": 1}}


def test_bfcl_without_documents_takes_the_names_of_the_path_and_a_list_reads_like_lines(tmp_path):
    file = tmp_path / "base.json"
    file.write_text(json.dumps([entry(ground_truth=[["add(a=1)"]])]))
    pool = read_bfcl(file)
    assert pool.environment("MathAPI+TravelAPI").tool_names == ("add",)
    assert pool.tasks[0].checks == (Check("add(a=1)", ""),)


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([entry(involved_classes=[])], "involves no class"),
        ([entry(question=[[{"role": "user"}]])], "a message of question: field 'content' must be a str"),
        ([{"question": []}], "field 'id' must be a str"),
        ([], "no task"),
        ([entry(), entry()], "occurs twice"),
    ],
)
def test_a_faulty_bfcl_entry_is_named(items, words, tmp_path):
    with pytest.raises(PoolError, match=words):
        read_bfcl(lines(tmp_path / "base.json", *items))


def test_answers_of_another_category_and_unknown_classes_are_refused(tmp_path):
    file = lines(tmp_path / "base.json", entry())
    with pytest.raises(PoolError, match="answer to 'other'"):
        read_bfcl(file, lines(tmp_path / "answers.json", {"id": "other", "ground_truth": []}))
    with pytest.raises(PoolError, match=r"unknown class 'Moon'; known: GorillaFileSystem"):
        read_bfcl(lines(tmp_path / "moon.json", entry(involved_classes=["Moon"])), None, tmp_path)
    with pytest.raises(PoolError, match=r"math_api\.json: No such file"):
        read_bfcl(file, None, tmp_path)


# -- tau-bench

PYTHON_TASKS = """
from somewhere import Action, Task
open("/must/not/be/opened")

TASKS = [
    Task(annotator="0", user_id="u1", instruction="Change it.", outputs=["7"],
         actions=[Action(name="update_order", kwargs={"order_id": "#1", "items": [{"n": 1}]})]),
    Task(annotator="0", user_id="u2", instruction="Leave it.", outputs=[], actions=[]),
]
"""


def test_tau_bench_python_is_read_and_not_run(tmp_path):
    (tmp_path / "tasks_test.py").write_text(PYTHON_TASKS)
    pool = read_tau_bench(tmp_path / "tasks_test.py", "retail")
    assert [task.key for task in pool.tasks] == ["retail-0000", "retail-0001"]
    assert pool.tasks[0].prompt == "Change it."
    assert [check.text for check in pool.tasks[0].checks] == ['update_order({"items":[{"n":1}],"order_id":"#1"})', "7"]
    assert pool.environment("retail").tool_names == ("update_order",)


def test_tau_bench_json_of_both_shapes(tmp_path):
    first = {"id": 5, "instruction": "Go.", "actions": [{"name": "cancel", "arguments": {"a": 1}}], "outputs": ["x"]}
    scenario = {"instructions": {"reason_for_call": "Cancel it.", "known_info": "I am me.", "unknown_info": None}}
    criteria = {"actions": [{"name": "cancel", "arguments": {}}], "communicate_info": ["done"], "nl_assertions": ["is polite"]}
    second = {"id": "s", "user_scenario": scenario, "initial_state": None, "evaluation_criteria": criteria}
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps([first, second]))
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([{"type": "function", "function": {"name": "find"}}]))
    pool = read_tau_bench(path, "airline", tools)
    assert pool.task("5").prompt == "Go."
    assert pool.task("s").prompt == "Cancel it.\n\nI am me."
    assert [check.text for check in pool.task("s").checks] == ["cancel({})", "done", "is polite"]
    assert pool.environment("airline").tool_names == ("find", "cancel")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("TASKS = [", r"not Python that can be parsed"),
        ("TASKS = []", "no task"),
        ("TASKS = [3]", r"line 1: expected Task\(\.\.\.\) or a dict; came int"),
        ("TASKS = [Task(instruction=make())]", r"line 1: make\(\) is no literal|field 'instruction' must be a str"),
        ("TASKS = [Task(instruction=x)]", r"line 1: x is no literal; give the tasks as JSON"),
        ("TASKS = [Task(actions=[])]", r"field 'user_scenario' must be"),
    ],
)
def test_a_faulty_task_list_is_named(text, words, tmp_path):
    path = tmp_path / "tasks.py"
    path.write_text(text)
    with pytest.raises(PoolError, match=words):
        read_tau_bench(path, "e")


# -- code of one's own


class Shop:
    def environments(self):
        return [Environment("shop")]

    def tasks(self):
        return [Task("t", "shop", "Sell it")]


def test_anything_that_lists_environments_and_tasks_is_a_pool():
    assert isinstance(Shop(), PoolSource)
    pool = pool_from(Shop())
    assert pool.fingerprint == Pool([Environment("shop")], [Task("t", "shop", "Sell it")]).fingerprint


def test_separators_inside_strings_do_not_end_a_line(tmp_path):
    pool = Pool([Environment("e")], [Task("t", "e", prompt="a\u2028b\x85c\x0bd")])
    write_jsonl(pool, tmp_path / "pool.jsonl")
    assert read_jsonl(tmp_path / "pool.jsonl").fingerprint == pool.fingerprint


def test_a_file_of_another_system_is_read(tmp_path):
    (tmp_path / "pool.jsonl").write_bytes(b'\xef\xbb\xbf{"key": "t", "environment": "e"}\r\n')
    assert read_jsonl(tmp_path / "pool.jsonl").tasks[0].key == "t"


@pytest.mark.parametrize(("name", "words"), [("none", "no such file or folder"), ("none.jsonl", "no such"), ("pool.csv", "another kind")])
def test_a_path_that_is_no_pool_is_named_with_what_one_is(name, words, tmp_path):
    (tmp_path / "pool.csv").write_text("a,b\n")
    with pytest.raises(PoolError, match=f"pool .*{name}: .*{words}.*expected a folder in EnvScaler's format, a JSONL file"):
        open_pool(tmp_path / name)
