"""A pool as JSON lines: the format for task sets of one's own. A pool for scheduling needs nothing that can be run.

A line with ``key`` is a task:

    key          string, unique
    environment  string; tasks of one environment share its tools and its quotas
    prompt       string, optional: what the agent is asked
    tools        list, optional: function schemas or names; an environment has the tools of all its tasks
    verifier     list, optional: what is checked, each a string or {"text": string, "source": Python of check_func}
    state        object, optional: the start state

A line without ``key`` describes an environment, and is needed only for what tasks don't say:

    environment  string, unique among these lines
    summary, description, class_name, source   strings, optional; ``source`` is the Python of ``class_name``
    rules        list of strings, optional
    tools        list, optional

Unknown fields are refused, so that a typing error is not a silent loss.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from envsched.errors import PoolError
from envsched.files import canonical_json, write_atomically
from envsched.pool.pool import Pool
from envsched.pool.reading import field, read_objects, tool_schema
from envsched.types import Check, Environment, Task

TASK_FIELDS = {"key", "environment", "prompt", "tools", "verifier", "state"}
ENVIRONMENT_FIELDS = {"environment", "summary", "description", "rules", "tools", "class_name", "source"}


def read_jsonl(file: Path) -> Pool:
    """The pool of a file.

    Raises:
        PoolError: a line that does not fit, named by its number; a key twice; no task.
    """
    environments: dict[str, Environment] = {}
    tasks: list[Task] = []
    seen: dict[str, str] = {}
    for item, where in read_objects(file):
        key = field(item, "environment", str, where)
        if "key" in item:
            task = _task(item, where)
            _refuse_twice(seen, f"task {task.key!r}", where)
            tasks.append(task)
            environments.setdefault(key, Environment(key))
        else:
            _refuse_twice(seen, f"environment {key!r}", where)
            _refuse_unknown(item, ENVIRONMENT_FIELDS, where)
            environments[key] = _described(item, environments.get(key, Environment(key)), where)
        environments[key] = _with_tools(environments[key], item, where)
    if not tasks:
        raise PoolError(f"{file}: the pool has no task; a line with a key is one")
    return Pool(environments.values(), tasks)


def write_jsonl(pool: Pool, file: Path) -> None:
    """Write a pool whole or not at all; reading it back gives the same fingerprint."""
    lines = [_environment_line(environment) for environment in pool.environments] + [_task_line(task) for task in pool.tasks]
    write_atomically(file, "".join(f"{canonical_json(line)}\n" for line in lines))


def _task(item: Mapping[str, Any], where: str) -> Task:
    _refuse_unknown(item, TASK_FIELDS, where)
    verifier = field(item, "verifier", list, where, default=[])
    return Task(
        key=field(item, "key", str, where),
        environment=item["environment"],
        prompt=field(item, "prompt", str, where, default=""),
        initial_state=field(item, "state", dict, where, default={}),
        checks=tuple(_check(entry, f"{where}: verifier[{position}]") for position, entry in enumerate(verifier)),
    )


def _check(entry: Any, where: str) -> Check:
    if isinstance(entry, str):
        return Check(text=entry, source="")
    if not isinstance(entry, dict):
        raise PoolError(f"{where}: expected a string or an object with text and source; came {type(entry).__name__}")
    _refuse_unknown(entry, {"text", "source"}, where)
    return Check(text=field(entry, "text", str, where, default=""), source=field(entry, "source", str, where, default=""))


def _described(item: Mapping[str, Any], known: Environment, where: str) -> Environment:
    texts = {name: field(item, name, str, where, default="") for name in ("summary", "description", "class_name", "source")}
    return replace(known, **texts, rules=tuple(map(str, field(item, "rules", list, where, default=[]))))


def _with_tools(environment: Environment, item: Mapping[str, Any], where: str) -> Environment:
    """The environment with the tools of one more line; a name alone adds nothing to a known schema."""
    tools = {tool["function"]["name"]: tool for tool in environment.tools}
    for entry in field(item, "tools", list, where, default=[]):
        tool = tool_schema(entry, where)
        known = tools.get(tool["function"]["name"])
        if known is None or len(known["function"]) == 1:
            tools[tool["function"]["name"]] = tool
        elif len(tool["function"]) > 1 and tool != known:
            name = tool["function"]["name"]
            raise PoolError(f"{where}: tool {name!r} of environment {environment.key!r} is described in two ways; keep one")
    return replace(environment, tools=tuple(tools.values()))


def _environment_line(environment: Environment) -> dict[str, Any]:
    optional = {
        "summary": environment.summary,
        "description": environment.description,
        "rules": list(environment.rules),
        "tools": list(environment.tools),
        "class_name": environment.class_name,
        "source": environment.source,
    }
    return {"environment": environment.key, **{name: value for name, value in optional.items() if value}}


def _task_line(task: Task) -> dict[str, Any]:
    verifier = [{"text": check.text, "source": check.source} if check.source else check.text for check in task.checks]
    optional = {"prompt": task.prompt, "verifier": verifier, "state": dict(task.initial_state)}
    return {"key": task.key, "environment": task.environment, **{name: value for name, value in optional.items() if value}}


def _refuse_unknown(item: Mapping[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(item) - known)
    if unknown:
        raise PoolError(f"{where}: unknown field {unknown[0]!r}; known: {', '.join(sorted(known))}")


def _refuse_twice(seen: dict[str, str], thing: str, where: str) -> None:
    if thing in seen:
        raise PoolError(f"{where}: {thing} occurs twice, first in {seen[thing]}; keys must be unique, rename or drop one")
    seen[thing] = where
