"""The environment of a BFCL dialogue. Its text runs in an environment worker, ahead of it the API classes as ``source.py`` puts them.

Two copies of every class live side by side: what the policy does happens to one, the reference calls happen to the other, and after
each turn of the user the two are compared as BFCL's own checker does. Standard library only.
"""

import ast
import copy
import inspect
import json
from typing import Any


class Dialogue:
    """``state``: ``classes`` (names, in order), ``configs`` by class, ``truth`` [turns] of lists of calls, ``long_context``."""

    def __init__(self, state: dict[str, Any]) -> None:
        self._ours, self._theirs = (_instances(state) for _ in range(2))
        self._truth = state["truth"]
        self._turn = 0
        self._responses: list[str] = []  # of the policy's calls, over all turns
        self._has_called = False  # in this turn

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """One call of the policy."""
        self._has_called = True
        response = _execute(self._ours, name, (), arguments)
        self._responses.append(response)
        return response

    def finish_turn(self) -> str:
        """Run the reference calls of this turn and compare: JSON with ``passed`` and ``reason``."""
        reason = self._objection(self._truth[self._turn])
        self._turn += 1
        self._has_called = False
        return json.dumps({"passed": not reason, "reason": reason})

    def _objection(self, truth: list[str]) -> str:
        expected = [_execute(self._theirs, *_parsed(call)) for call in truth]
        if not truth:  # nothing can be done in this turn; what the policy did shows in a later state
            return ""
        if not self._has_called:
            return "no call"
        differing = [
            f"{name}.{attribute}"
            for name, instance in self._theirs.items()
            for attribute, value in vars(instance).items()
            if not attribute.startswith("_") and not _equal(getattr(self._ours[name], attribute, _NOTHING), value)
        ]
        if differing:
            return f"state differs: {', '.join(differing)}"
        left = list(self._responses)
        for response in expected:
            if response not in left:
                return f"response missing: {response[:200]}"
            left.remove(response)
        return ""


_NOTHING = object()


def _equal(ours: Any, theirs: Any) -> bool:
    return bool(ours == theirs)  # the classes define what equality is


def _instances(state: dict[str, Any]) -> dict[str, Any]:
    made = {}
    for name in state["classes"]:
        made[name] = instance = CLASSES[name]()  # noqa: F821  # put there by source.py
        if hasattr(instance, "_load_scenario"):
            instance._load_scenario(copy.deepcopy(state["configs"].get(name, {})), long_context=state["long_context"])
    return made


def _execute(instances: dict[str, Any], name: str, positional: tuple[Any, ...], arguments: dict[str, Any]) -> str:
    """A call's response as text; where two classes have the method, the later one's runs."""
    try:
        owners = [one for one in instances.values() if not name.startswith("_") and inspect.ismethod(getattr(one, name, None))]
        if not owners:
            raise NameError(f"name {name!r} is not defined")
        response = getattr(owners[-1], name)(*positional, **arguments)
    except Exception as error:
        return f"Error during execution: {error}"
    if not isinstance(response, dict):
        return str(response)
    try:
        return json.dumps(response)
    except (TypeError, ValueError):
        return str(response)


def _parsed(call: str) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """``name(value, key=value)`` with literal values."""
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    positional = tuple(ast.literal_eval(value) for value in node.args)
    return node.func.id, positional, {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}
