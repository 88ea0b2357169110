"""What the model is asked. The wording and the schema have one digest, which is part of every cached answer's key."""

import json
from collections.abc import Iterable
from typing import Any

from envsched.files import canonical_json, digest
from envsched.topology.llm.answer import answer_schema
from envsched.types import Environment, Task

MAX_CHECK_CHARACTERS = 40_000  # of all checks of a task; what is left out is said
MAX_STATE_LINES = 40

SYSTEM = """\
You describe how a task for a tool-using agent is worked and how it is graded, without a word of the task's domain.
You get the task, the agent's tools, an outline of the start state and the source of the checks that grade the final state.
Answer with one JSON object that fits the schema and nothing else.

execution
  phases: kinds of steps in the order an efficient agent takes them; the same kind twice in a row is written once.
    look_up reads records; validate asks a yes/no question; aggregate computes over several records; create, update and delete
    change records; branch: what is done depends on what was read; loop: the next step is repeated for three or more records.
  reads, writes: numbers of tool calls that only read, and that change the state.
  depth: longest chain of calls in which the output of one is an argument of the next (1 when no call needs another).
  entities: number of collections of records that are touched.
  discovery: whether the identifiers that the calls need are in the task's text: none, some or all of them must be found first.
reward
  checks: the kind of each check, one entry a check, in their order.
    presence: a record, key or element is there. absence: one is not there. equality: a value equals a constant.
    count: a number of items, or a sum over them, meets a constant. relation: two values of the state meet each other, or a value
    lies in a range. other: none of these. A check with several assertions counts as its strongest:
    count, then relation, then absence, then equality, then presence.
  negative: how many checks pass because something is not so. initial: how many read the start state.
  grading: partial when there are several checks, all_or_nothing when there is one."""

AGAIN = "That answer can't be used: {problem}. Answer again with one JSON object that fits the schema and nothing else."

PROMPT_DIGEST = digest("envsched topology prompt", SYSTEM, AGAIN, canonical_json(answer_schema(2)))

Messages = list[dict[str, str]]


def first_messages(task: Task, environment: Environment) -> Messages:
    """The conversation that asks for one task."""
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": _question(task, environment)}]


def messages_again(messages: Messages, answer: str, problem: str) -> Messages:
    """The same conversation after an unusable answer."""
    return [*messages, {"role": "assistant", "content": answer}, {"role": "user", "content": AGAIN.format(problem=problem)}]


def _question(task: Task, environment: Environment) -> str:
    parts = {
        "Task": task.prompt or "(no text)",
        "Tools": "\n".join(map(_tool_line, environment.tools)) or "(none listed)",
        "Start state": "\n".join(_outline(task.initial_state)) or "(unknown)",
        f"Checks ({len(task.checks)})": _checks(task) or "(none readable)",
        "Schema": json.dumps(answer_schema(len(task.checks))),
    }
    return "\n\n".join(f"## {title}\n{body}" for title, body in parts.items())


def _tool_line(tool: Any) -> str:
    function = tool["function"]
    schema = function.get("parameters")
    arguments = ", ".join(schema.get("properties") or ()) if isinstance(schema, dict) else ""
    summary = str(function.get("description") or "").strip().split("\n")[0]
    return f"{function['name']}({arguments}): {summary}"


def _outline(state: Any) -> Iterable[str]:
    for name, value in list(state.items())[:MAX_STATE_LINES]:
        if isinstance(value, dict | list):
            sample = next(iter(value.values() if isinstance(value, dict) else value), None)
            fields = f" with {', '.join(map(str, sample))}" if isinstance(sample, dict) else ""
            yield f"{name}: {len(value)} items{fields}"
        else:
            yield f"{name}: {type(value).__name__}"


def _checks(task: Task) -> str:
    texts: list[str] = []
    room = MAX_CHECK_CHARACTERS
    for number, check in enumerate(task.checks):
        text = f"# {number + 1}. {check.text}\n{check.source}"
        if len(text) > room:
            return "\n\n".join([*texts, f"# the other {len(task.checks) - number} checks are left out for length; they are alike"])
        texts.append(text)
        room -= len(text)
    return "\n\n".join(texts)
