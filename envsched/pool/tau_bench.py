"""Task lists in the style of tau-bench and its successor: an instruction for the user, reference actions, outputs.

Read are JSON lists (or JSON lines) of tasks, and Python files that hold ``TASKS = [Task(...), ...]``, whose literals are read
from the syntax tree: the file is not executed. Two shapes of a task are known: ``instruction``, ``actions``, ``outputs``; and
``user_scenario`` with ``evaluation_criteria``. Reference actions and expected outputs become the verifier's texts.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from envsched.errors import PoolError
from envsched.files import canonical_json
from envsched.pool.pool import Pool
from envsched.pool.reading import field, read_objects, read_text, tool_schema
from envsched.types import Check, Environment, Task


def read_tau_bench(file: Path, environment: str, tools: Path | None = None) -> Pool:
    """The pool of one domain.

    Args:
        environment: key of the domain; tasks without an ``id`` are called ``<environment>-<position>``.
        tools: a JSON list of function schemas; without it tools are the names that the actions call.

    Raises:
        PoolError: a task that does not fit, a Python file without a list of tasks.
    """
    items = list(_python_tasks(file) if file.suffix == ".py" else read_objects(file))
    if not items:
        raise PoolError(f"{file}: the pool has no task; expected a list of tasks")
    schemas = [tool_schema(entry, place) for entry, place in read_objects(tools)] if tools else []
    known = {tool["function"]["name"]: tool for tool in schemas}
    tasks = []
    for position, (item, where) in enumerate(items):
        actions = _actions(item, where)
        known |= {name: tool_schema(name, where) for name, _ in actions if name not in known}
        tasks.append(
            Task(
                key=str(item.get("id") if item.get("id") is not None else f"{environment}-{position:04d}"),
                environment=environment,
                prompt=_prompt(item, where),
                initial_state=field(item, "initial_state", dict, where, default={}),
                checks=tuple(Check(text=text, source="") for text in (*_calls(actions), *_expected(item, where))),
            )
        )
    return Pool([Environment(environment, summary=environment, tools=tuple(known.values()))], tasks)


def _prompt(item: Mapping[str, Any], where: str) -> str:
    if "instruction" in item:
        return field(item, "instruction", str, where)
    scenario = field(item, "user_scenario", (str, dict), where)
    instructions = scenario if isinstance(scenario, str) else scenario.get("instructions", "")
    if isinstance(instructions, str):
        return instructions
    if not isinstance(instructions, dict):
        raise PoolError(f"{where}: user_scenario.instructions must be a string or an object; came {type(instructions).__name__}")
    parts = (instructions.get(name) for name in ("reason_for_call", "known_info", "task_instructions"))
    return "\n\n".join(part for part in parts if isinstance(part, str))


def _actions(item: Mapping[str, Any], where: str) -> list[tuple[str, Mapping[str, Any]]]:
    holder = field(item, "evaluation_criteria", dict, where, default={}) if "evaluation_criteria" in item else item
    actions = []
    for action in field(holder, "actions", list, where, default=[]):
        if not isinstance(action, dict):
            raise PoolError(f"{where}: an action must be an object with name and arguments; came {type(action).__name__}")
        arguments = action.get("kwargs", action.get("arguments")) or {}
        actions.append((field(action, "name", str, where), arguments))
    return actions


def _calls(actions: list[tuple[str, Mapping[str, Any]]]) -> Iterator[str]:
    return (f"{name}({canonical_json(arguments)})" for name, arguments in actions)


def _expected(item: Mapping[str, Any], where: str) -> Iterator[str]:
    criteria = field(item, "evaluation_criteria", dict, where, default={})
    lists = [item.get("outputs"), criteria.get("communicate_info"), criteria.get("nl_assertions")]
    return (str(text) for texts in lists if isinstance(texts, list) for text in texts)


def _python_tasks(file: Path) -> Iterator[tuple[dict[str, Any], str]]:
    try:
        tree = ast.parse(read_text(file))
    except SyntaxError as error:
        raise PoolError(f"{file}: not Python that can be parsed: {error.msg} at line {error.lineno}") from None
    lists = (node.value for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.List))
    for entry in (entry for found in lists for entry in found.elts):
        where = f"{file}, line {entry.lineno}"
        value = _literal(entry, where)
        if not isinstance(value, dict):
            raise PoolError(f"{where}: expected Task(...) or a dict; came {type(value).__name__}")
        yield value, where


def _literal(node: ast.expr, where: str) -> Any:
    """A literal in which calls with keywords stand for dicts."""
    match node:
        case ast.Call(args=[], keywords=keywords) if all(keyword.arg for keyword in keywords):
            return {keyword.arg: _literal(keyword.value, where) for keyword in keywords}
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_literal(item, where) for item in items]
        case ast.Dict(keys=keys, values=values) if all(keys):
            return {_literal(key, where): _literal(value, where) for key, value in zip(keys, values, strict=True) if key}
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        raise PoolError(f"{where}: {ast.unparse(node)[:80]} is no literal; give the tasks as JSON") from None
