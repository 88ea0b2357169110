"""Plausible calls of every tool, to see an environment at work without a policy."""

from collections.abc import Iterator, Mapping
from typing import Any

from envsched.types import Environment

_BY_TYPE = {"integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}, "null": None}


def probe_calls(environment: Environment, state: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each tool three times: with values that the state holds under the parameters' names, with new ones, with known ids alone."""
    known = dict(_values(state))
    for is_known in (lambda name: True, lambda name: False, lambda name: name.endswith("_id")):
        for tool in environment.tools:
            function = tool["function"]
            properties = (function.get("parameters") or {}).get("properties") or {}
            yield function["name"], {name: _value(name, schema, known, is_known(name)) for name, schema in properties.items()}


def _value(name: str, schema: Any, known: Mapping[str, Any], is_known: bool) -> Any:
    if is_known and name in known:
        return known[name]
    kinds = schema.get("type", "string") if isinstance(schema, Mapping) else "string"
    kind = kinds[0] if isinstance(kinds, list) and kinds else kinds
    if kind in _BY_TYPE:
        return _BY_TYPE[kind]
    if "date" in name or "time" in name:
        return "2025-06-01"
    return f"probe {name}"


def _values(state: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Field names with a value each, from a few entries of each table; of ``users`` also ``user_id``, its first key."""
    if depth > 4 or not isinstance(state, Mapping):
        return
    for name, value in list(state.items())[:8]:
        if isinstance(value, Mapping):
            if value and isinstance(name, str):
                yield f"{name.removesuffix('s')}_id", next(iter(value))
            yield from _values(value, depth + 1)
        elif isinstance(value, (str, int, float, bool)):
            yield str(name), value
