"""EnvScaler's own JSON: both public shapes, every fault with its file, key and remedy, and the real slice."""

import json
import os
from pathlib import Path

import pytest

from envsched.errors import PoolError
from envsched.pool import Pool
from envsched.pool.opening import open_pool
from envsched.types import Environment, Task

TOOL = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}}}
CHECK = {"check_item": "Is it so?", "check_func": "def check_func(final_state):\n    return True"}


def environment(key: str = "e", **changes) -> dict:
    return {"env_id": key, "env_class_name": "E", "env_class_code": "class E: ...", "tools": [TOOL], **changes}


def task(key: str = "t", env: str = "e", **changes) -> dict:
    return {"task_id": key, "env_id": env, "task": "Do it.", "init_config": {"a": {}}, "checklist_with_func": [CHECK], **changes}


def write(folder: Path, environments, tasks) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in (("191_env_metadata.json", environments), ("envscaler_rl_scenario_metadata.json", tasks)):
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def test_a_dict_and_a_list_decoded_and_as_strings_give_the_same_pool(tmp_path):
    as_dict = write(tmp_path / "dict", {"e": {k: v for k, v in environment().items() if k != "env_id"}}, {"t": task()})
    as_list = write(tmp_path / "list", [environment()], [task()])
    as_text = write(tmp_path / "text", [environment(tools=json.dumps([TOOL]))], [task(init_config=json.dumps({"a": {}}))])
    pools = [Pool.from_envscaler(folder) for folder in (as_dict, as_list, as_text)]
    assert len({pool.fingerprint for pool in pools}) == 1
    assert pools[0].environment("e").tool_names == ("look",)
    assert pools[0].task("t").initial_state == {"a": {}}


def test_other_public_names_of_the_files_are_read(tmp_path):
    folder = write(tmp_path / "pool", [environment()], [task()])
    (folder / "191_env_metadata.json").rename(folder / "191_env_metadata_processed.json")
    (folder / "envscaler_rl_scenario_metadata.json").rename(folder / "tasks.json")
    assert len(Pool.from_envscaler(folder)) == 1


def test_the_order_of_files_does_not_change_rows_or_fingerprint(tmp_path):
    environments, tasks = [environment("e"), environment("d")], [task("t"), task("s", "d")]
    one = Pool.from_envscaler(write(tmp_path / "one", environments, tasks))
    two = Pool.from_envscaler(write(tmp_path / "two", environments[::-1], tasks[::-1]))
    assert [t.key for t in one.tasks] == [t.key for t in two.tasks] == ["s", "t"]
    assert one.fingerprint == two.fingerprint


@pytest.mark.parametrize(
    ("environments", "tasks", "words"),
    [
        ([environment()], [task(), task()], r"envscaler_rl_scenario_metadata\.json: task_id 't' occurs twice.*rename or drop"),
        ([environment(), environment()], [task()], r"191_env_metadata\.json: env_id 'e' occurs twice.*rename or drop"),
        ('{"e": {}, "e": {}}', [task()], r"191_env_metadata\.json: key 'e' occurs twice"),
        ([environment()], [task(env="f")], r"task 't' names env_id 'f'.*add the environment or drop the task"),
        ([environment()], [], r"envscaler_rl_scenario_metadata\.json: the pool has no task"),
        (
            [environment()],
            [task(checklist_with_func=[])],
            r"task_id 't': checklist_with_func has length 0.*drop the task or",
        ),
        ("{", [task()], r"191_env_metadata\.json: invalid JSON at line 1.*restore it"),
        ([environment()], '[{"task_id": "t",]', r"invalid JSON at line 1, column 18"),
        ("3", [task()], r"expected a list, or a dict by env_id; came int"),
        ([environment()], [{"env_id": "e"}], r"item 0 has no string 'task_id'; give it one"),
        ([environment()], [task(task=None)], r"task_id 't': field 'task' must be a str; came nothing"),
        ([environment()], [task(init_config="{")], r"task_id 't': field 'init_config' holds a string that is not JSON"),
        ([environment()], [task(init_config=[1])], r"field 'init_config' must be a dict; came list"),
        ([environment(tools="[")], [task()], r"env_id 'e': field 'tools' holds a string that is not JSON"),
        ([environment(tools=[{"function": None}])], [task()], r"env_id 'e': tools\[0\] has no function\.name"),
        ([environment()], [task(init_config={"a": float("nan")})], r"metadata\.json: NaN is no JSON number; give a finite number"),
        ([environment()], [task(init_config='{"a": -Infinity}')], r"task_id 't': field 'init_config'.*-Infinity is no JSON number"),
        ([environment()], [task(task="\ud800")], r"metadata\.json: '\\ud800' is half a character"),
        ([environment()], "[" * 100_000, r"metadata\.json: invalid JSON: nested too deep"),
        ([environment()], '[{"task_id": ' + "9" * 5000 + "}]", r"metadata\.json: invalid JSON: Exceeds the limit"),
        ([environment(tools=[{"function": {}}])], [task()], r"env_id 'e': tools\[0\] has no function\.name"),
        ([environment()], [task(checklist_with_func=["x"])], r"checklist_with_func\[0\]: expected an object.*came str"),
        ([environment()], [task(checklist_with_func=[{"check_item": "?"}])], r"checklist_with_func\[0\]: field 'check_func' must be a str"),
    ],
)
def test_a_fault_is_one_error_that_names_file_key_and_remedy(environments, tasks, words, tmp_path):
    folder = write(tmp_path / "pool", environments, tasks)
    with pytest.raises(PoolError, match=words):
        Pool.from_envscaler(folder)


def test_a_missing_file_names_the_ones_that_would_do(tmp_path):
    with pytest.raises(PoolError, match=r"no file of environments; expected one of 191_env_metadata\.json"):
        Pool.from_envscaler(tmp_path)
    (tmp_path / "environments.json").write_text("[]")
    with pytest.raises(PoolError, match=r"no file of tasks"):
        Pool.from_envscaler(tmp_path)


def test_text_that_is_not_utf8_is_named(tmp_path):
    folder = write(tmp_path / "pool", [environment()], [task()])
    (folder / "191_env_metadata.json").write_bytes(b'[{"env_id": "\xff"}]')
    with pytest.raises(PoolError, match=r"191_env_metadata\.json: not UTF-8 at byte 13"):
        Pool.from_envscaler(folder)


def test_a_byte_order_mark_and_whole_characters_by_escapes_are_read(tmp_path):
    folder = write(tmp_path / "pool", [environment()], [task(task="\U0001f600")])
    file = folder / "191_env_metadata.json"
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert Pool.from_envscaler(folder).task("t").prompt == "\U0001f600"


def test_content_without_canonical_json_is_refused_when_opened(tmp_path):
    state = '{"a":' + "[" * 900 + "]" * 900 + "}"
    folder = write(tmp_path / "pool", [environment()], json.dumps([task()]).replace('{"a": {}}', state))
    with pytest.raises(PoolError, match=r"pool: task 't' holds what canonical JSON can't: maximum recursion"):
        open_pool(folder)
    with pytest.raises(PoolError, match=r"task 't' holds what canonical JSON can't"):
        _ = Pool([Environment("e")], [Task("t", "e", initial_state={"a": {1, 2}})]).fingerprint


def test_the_real_slice_loads():
    folder = os.environ.get("ENVSCHED_TESTDATA")
    if not folder:
        pytest.skip("ENVSCHED_TESTDATA names no folder with envscaler/ in it, so the real slice is not there to read")
    pool = Pool.from_envscaler(Path(folder) / "envscaler")
    assert (len(pool.environments), len(pool)) == (44, 62)
    assert sum(len(environment.tools) for environment in pool.environments) == 850
    assert sum(len(task.checks) for task in pool.tasks) == 1448
    assert sum(pool.offsets[1:] > pool.offsets[:-1]) == 22
    assert len(pool.task("env_144_rl-task_1").checks) == 445
