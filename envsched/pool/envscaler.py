"""EnvScaler's own JSON: ``191_env_metadata.json`` (environments) and ``envscaler_rl_scenario_metadata.json`` (tasks).

Both public shapes are read: a dict by ``env_id`` or a list of environments, with ``tools`` and ``init_config`` decoded
or as JSON strings. Nothing of an environment's code is executed here.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from envsched.errors import PoolError
from envsched.pool.reading import decode, read_text
from envsched.types import Check, Environment, Task

ENVIRONMENT_FILES = ("191_env_metadata.json", "191_env_metadata_processed.json", "environments.json")
TASK_FILES = ("envscaler_rl_scenario_metadata.json", "tasks.json")


def read_envscaler(folder: Path) -> tuple[list[Environment], list[Task]]:
    """Environments and tasks of a folder.

    Raises:
        PoolError: a missing file, invalid JSON, a missing or ill-typed field, an empty checklist; names file and key.
    """
    environment_file = _first_of(folder, ENVIRONMENT_FILES, "environments")
    task_file = _first_of(folder, TASK_FILES, "tasks")
    environments = [_environment(item, where) for item, where in _items(environment_file, "env_id")]
    tasks = [_task(item, where) for item, where in _items(task_file, "task_id")]
    _refuse_duplicates([e.key for e in environments], environment_file, "env_id")
    _refuse_duplicates([t.key for t in tasks], task_file, "task_id")
    if not tasks:
        raise PoolError(f"{task_file}: the pool has no task; give at least one")
    known = {e.key for e in environments}
    for task in tasks:
        if task.environment not in known:
            raise PoolError(
                f"{task_file}: task {task.key!r} names env_id {task.environment!r}, which {environment_file.name} "
                "does not have; add the environment or drop the task"
            )
    return environments, tasks


def _first_of(folder: Path, names: tuple[str, ...], kind: str) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise PoolError(f"{folder}: no file of {kind}; expected one of {', '.join(names)}")


def _items(file: Path, key_field: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Items of a file, each with the words that name it in an error."""
    content = decode(read_text(file), str(file))
    if isinstance(content, dict):
        content = [{key_field: key, **item} if isinstance(item, dict) else item for key, item in content.items()]
    if not isinstance(content, list):
        raise PoolError(f"{file}: expected a list, or a dict by {key_field}; came {type(content).__name__}")
    for position, item in enumerate(content):
        if not isinstance(item, dict) or not isinstance(item.get(key_field), str):
            raise PoolError(f"{file}: item {position} has no string {key_field!r}; give it one")
        yield item, f"{file}: {key_field} {item[key_field]!r}"


def _environment(item: Mapping[str, Any], where: str) -> Environment:
    tools = _decoded(item, "tools", where, list, default=[])
    for position, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise PoolError(f"{where}: tools[{position}] has no function.name; expected an OpenAI function schema")
    return Environment(
        key=item["env_id"],
        summary=_typed(item, "environment_summary", where, str, default=""),
        description=_typed(item, "environment_introduction", where, str, default=""),
        rules=tuple(map(str, _typed(item, "constraints_rules", where, list, default=[]))),
        tools=tuple(tools),
        class_name=_typed(item, "env_class_name", where, str),
        source=_typed(item, "env_class_code", where, str),
    )


def _task(item: Mapping[str, Any], where: str) -> Task:
    checklist = _typed(item, "checklist_with_func", where, list)
    if not checklist:
        raise PoolError(f"{where}: checklist_with_func has length 0, so no reward can be computed; drop the task or give it checks")
    return Task(
        key=item["task_id"],
        environment=_typed(item, "env_id", where, str),
        prompt=_typed(item, "task", where, str),
        initial_state=_decoded(item, "init_config", where, dict),
        checks=tuple(_check(entry, f"{where}: checklist_with_func[{position}]") for position, entry in enumerate(checklist)),
    )


def _check(entry: Any, where: str) -> Check:
    if not isinstance(entry, dict):
        raise PoolError(f"{where}: expected an object with check_item and check_func; came {type(entry).__name__}")
    return Check(text=_typed(entry, "check_item", where, str, default=""), source=_typed(entry, "check_func", where, str))


def _typed(item: Mapping[str, Any], field: str, where: str, kind: type, default: Any = None) -> Any:
    value = item.get(field, default)
    if not isinstance(value, kind):
        came = "nothing" if value is None else type(value).__name__
        raise PoolError(f"{where}: field {field!r} must be a {kind.__name__}; came {came}")
    return value


def _decoded(item: Mapping[str, Any], field: str, where: str, kind: type, default: Any = None) -> Any:
    value = item.get(field, default)
    if isinstance(value, str):
        value = decode(value, f"{where}: field {field!r} holds a string that is not JSON")
    return _typed({field: value}, field, where, kind)


def _refuse_duplicates(keys: list[str], file: Path, field: str) -> None:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise PoolError(f"{file}: {field} {key!r} occurs twice; keys must be unique, rename or drop one")
        seen.add(key)
