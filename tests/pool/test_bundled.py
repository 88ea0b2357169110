"""The bundled pool: the files equal what their sources make, every task is solvable, and nothing depends on the clock."""

import ast
import copy
import json
from collections import Counter
from pathlib import Path

import pytest

from envsched.files import digest
from envsched.pool import Pool
from scripts.build_bundled_pool import contents

FOLDER = Path(__file__).parents[2] / "envsched" / "pool" / "bundled"
POOLS = {"train": Pool.bundled(), "held_out": Pool.from_envscaler(FOLDER / "held_out")}
SOLUTIONS = json.loads((FOLDER / "solutions.json").read_text())
TASKS = [pytest.param(pool, task, id=task.key) for pool in POOLS.values() for task in pool.tasks]


def run(pool, task, actions):
    """Reward and results of actions, by executing the environment and the checks as they stand in the files."""
    environment = pool.environment(task.environment)
    scope: dict = {}
    exec(environment.source, scope)
    instance = scope[environment.class_name](copy.deepcopy(dict(task.initial_state)))
    results = [getattr(instance, action["name"])(**action["arguments"]) for action in actions]
    passed = []
    for check in task.checks:
        scope = {"initial_state": copy.deepcopy(dict(task.initial_state))}
        exec(check.source, scope)
        passed.append(bool(scope["check_func"](copy.deepcopy(vars(instance)))))
    return sum(passed) / len(passed), results


def test_files_equal_what_their_sources_make():
    for name, content in contents().items():
        assert json.loads((FOLDER / name).read_text()) == content, f"{name}: run python -m scripts.build_bundled_pool"


def test_split_names_every_task_and_file():
    split = json.loads((FOLDER / "split.json").read_text())
    for name, pool in POOLS.items():
        assert split["tasks"][name] == [task.key for task in pool.tasks]
        assert split["fingerprints"][name] == pool.fingerprint
    for name, recorded in split["files"].items():
        assert digest((FOLDER / name).read_bytes()) == recorded, name


def test_size():
    tasks = Counter(task.environment for task in POOLS["train"].tasks)
    assert len([count for count in tasks.values() if count >= 10]) >= 12
    assert sorted(tasks.values())[0] == 1
    assert all(2 <= len(task.checks) <= 6 for pool in POOLS.values() for task in pool.tasks)


def test_no_held_out_task_is_a_training_task():
    train = {(task.prompt, json.dumps(task.initial_state)) for task in POOLS["train"].tasks}
    assert not any((task.prompt, json.dumps(task.initial_state)) in train for task in POOLS["held_out"].tasks)


@pytest.mark.parametrize(("pool", "task"), TASKS)
def test_reference_actions_reach_reward_one(pool, task):
    reward, results = run(pool, task, SOLUTIONS[task.key])
    assert reward == 1.0
    assert all(result["success"] for result in results)
    assert run(pool, task, SOLUTIONS[task.key]) == (reward, results)


@pytest.mark.parametrize(("pool", "task"), TASKS)
def test_doing_nothing_earns_little(pool, task):
    reward, _ = run(pool, task, [])
    guards = sum("initial_state" in check.source for check in task.checks)
    assert guards <= 1
    assert reward == guards / len(task.checks)


@pytest.mark.parametrize(("pool", "task"), TASKS)
def test_each_goal_counts(pool, task):
    """Dropping the last action, which always completes a goal, costs a check."""
    assert run(pool, task, SOLUTIONS[task.key][:-1])[0] < 1.0


@pytest.mark.parametrize("environment", POOLS["train"].environments, ids=lambda e: e.key)
def test_environments_need_nothing_and_match_their_schemas(environment):
    tree = ast.parse(environment.source)
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    methods = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for tool in environment.tools:
        function = tool["function"]
        assert function["description"]
        assert [argument.arg for argument in methods[function["name"]].args.args[1:]] == function["parameters"]["required"]


@pytest.mark.parametrize("environment", POOLS["train"].environments, ids=lambda e: e.key)
def test_bad_arguments_are_answered_not_raised(environment):
    """Every tool, called with ids and values that nothing has, answers; only what it says it did is success."""
    scope: dict = {}
    exec(environment.source, scope)
    for tool in environment.tools:
        instance = scope[environment.class_name]({})
        properties = tool["function"]["parameters"]["properties"]
        result = getattr(instance, tool["function"]["name"])(
            **{n: "nothing" if p["type"] == "string" else 99 for n, p in properties.items()}
        )
        assert result["success"] or result["error"]
        assert not any(name.endswith("_id") for name in properties) or not result["success"]
