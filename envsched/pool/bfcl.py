"""BFCL's multi-turn files: a task is one conversation, its environment the set of API classes it may call.

Read are ``multi_turn_base.json`` and its kin (a list or JSON lines with ``id``, ``question``, ``initial_config``,
``involved_classes``). The reference calls (``ground_truth``, in the same file or in the one of possible answers) become the
verifier's texts; function documents (``multi_turn_func_doc``) become the tools. Nothing is executed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from envsched.errors import PoolError
from envsched.pool.pool import Pool
from envsched.pool.reading import field, read_objects, tool_schema
from envsched.types import Check, Environment, Task

DOCUMENTS = {
    "GorillaFileSystem": "gorilla_file_system.json",
    "MathAPI": "math_api.json",
    "MessageAPI": "message_api.json",
    "TwitterAPI": "posting_api.json",
    "TicketAPI": "ticket_api.json",
    "TradingBot": "trading_bot.json",
    "TravelAPI": "travel_booking.json",
    "VehicleControlAPI": "vehicle_control.json",
}
ANSWER_FIELDS = ("ground_truth", "possible_answer", "answers")


def read_bfcl(file: Path, answers: Path | None = None, tools: Path | None = None) -> Pool:
    """The pool of a multi-turn file.

    Args:
        answers: the file of possible answers, where the reference calls are not in ``file``.
        tools: the folder of function documents; without it tools are the names in each task's ``path``.

    Raises:
        PoolError: an entry that does not fit, an unknown class, a missing document, an answer without its task.
    """
    entries = [(field(item, "id", str, where), item, where) for item, where in read_objects(file)]
    if not entries:
        raise PoolError(f"{file}: the pool has no task; expected entries with id, question and involved_classes")
    known = _answers(answers, {key for key, _, _ in entries}) if answers else {}
    tasks: list[Task] = []
    names: dict[str, dict[str, Any]] = {}
    for key, item, where in entries:
        classes = sorted(set(map(str, field(item, "involved_classes", list, where))))
        if not classes:
            raise PoolError(f"{where}: {key!r} involves no class; give it at least one")
        environment = "+".join(classes)
        described = names.setdefault(environment, {name: tool for one in classes for name, tool in _documented(tools, one, where)})
        for path in field(item, "path", list, where, default=[]):
            described.setdefault(str(path).rpartition(".")[2], tool_schema(str(path).rpartition(".")[2], where))
        calls = known.get(key) or next((item[name] for name in ANSWER_FIELDS if isinstance(item.get(name), list)), [])
        tasks.append(
            Task(
                key=key,
                environment=environment,
                prompt=_prompt(item, where),
                initial_state=field(item, "initial_config", dict, where, default={}),
                checks=tuple(Check(text=call, source="") for call in _flat(calls)),
            )
        )
    environments = [Environment(key, summary=key.replace("+", ", "), tools=tuple(tools.values())) for key, tools in names.items()]
    return Pool(environments, tasks)


def _prompt(item: Mapping[str, Any], where: str) -> str:
    """All that the user says, turn by turn."""
    turns = field(item, "question", list, where)
    messages = [message for turn in turns for message in (turn if isinstance(turn, list) else [turn])]
    said = [message for message in messages if isinstance(message, dict) and message.get("role", "user") == "user"]
    return "\n\n".join(field(message, "content", str, f"{where}: a message of question") for message in said)


def _flat(calls: Any) -> list[str]:
    return [call for turn in calls for call in (_flat(turn) if isinstance(turn, list) else [str(turn)])]


def _answers(file: Path, tasks: set[str]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item, where in read_objects(file):
        key = field(item, "id", str, where)
        if key not in tasks:
            raise PoolError(f"{where}: answer to {key!r}, which the file of tasks does not have; give the two files of one category")
        found[key] = field(item, "ground_truth", list, where)
    return found


def _documented(folder: Path | None, name: str, where: str) -> list[tuple[str, Any]]:
    if folder is None:
        return []
    if name not in DOCUMENTS:
        raise PoolError(f"{where}: unknown class {name!r}; known: {', '.join(DOCUMENTS)}")
    tools = [tool_schema(item, place) for item, place in read_objects(folder / DOCUMENTS[name])]
    return [(tool["function"]["name"], tool) for tool in tools]
