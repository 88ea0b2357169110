"""Policies that know the reference calls, to be held against the checker."""

import ast
from collections.abc import Callable


def named_calls(suite, task, calls):
    """``name(value, key=value)`` as calls by name, positional values named after the function's document."""
    documents = {tool["function"]["name"]: tool["function"] for name in task.classes for tool in suite._tools[name]}
    made = []
    for call in calls:
        node = ast.parse(call, mode="eval").body
        names = list(documents[node.func.id]["parameters"]["properties"])
        values = dict(zip(names, map(ast.literal_eval, node.args), strict=False))
        made.append((node.func.id, values | {k.arg: ast.literal_eval(k.value) for k in node.keywords}))
    return made


def message(calls):
    return {"content": "", "tool_calls": [{"function": {"name": name, "arguments": values}} for name, values in calls]}


def play(suite, task, change: Callable[[list], list] = lambda turns: turns):
    """The verdict on the reference calls, turn by turn, after ``change`` of the list of turns."""
    dialogue = suite.begin(task)
    for calls in change([named_calls(suite, task, turn) for turn in task.truth]):
        if calls and dialogue.verdict is None:
            dialogue.take(message(calls))
        if dialogue.verdict is None:
            dialogue.take({"content": "That is all."})
    return dialogue.verdict


def without_last(turns):
    """Drop the last call of all."""
    last = max(i for i, calls in enumerate(turns) if calls)
    return [calls[:-1] if i == last else calls for i, calls in enumerate(turns)]
