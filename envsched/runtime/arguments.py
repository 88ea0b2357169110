"""Tool calls held against the tools' schemas, before anything runs."""

from collections.abc import Mapping
from typing import Any

from envsched.runtime.outcome import Outcome
from envsched.types import Environment

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}


class ToolBox:
    """The tools of one environment: names, parameters, types."""

    def __init__(self, environment: Environment) -> None:
        self._parameters = {tool["function"]["name"]: tool["function"].get("parameters") or {} for tool in environment.tools}

    def objection(self, tool: str, arguments: Mapping[str, Any], validate: bool = True) -> tuple[str, Outcome] | None:
        """Why the call can't be made, and what kind of fault that is; None when it can.

        Only declared tools can be called, never another attribute of the environment.
        """
        if tool not in self._parameters or tool.startswith("_"):
            return f"unknown tool {tool!r}; the tools are: {', '.join(self._parameters)}", Outcome.UNKNOWN_TOOL
        faults = _faults(self._parameters[tool], arguments) if validate else []
        return (f"{tool}: {'; '.join(faults)}", Outcome.BAD_ARGUMENTS) if faults else None


def _faults(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[str]:
    properties = schema.get("properties") or {}
    unknown = [name for name in arguments if name not in properties]
    missing = [name for name in schema.get("required") or () if name not in arguments]
    faults = []
    if unknown:
        faults.append(f"unknown argument {', '.join(map(repr, unknown))}; known: {', '.join(properties) or 'none'}")
    if missing:
        faults.append(f"missing argument {', '.join(map(repr, missing))}")
    for name, value in arguments.items():
        allowed = _allowed_types(properties.get(name) or {})
        if allowed and not any(_is_a(value, kind) for kind in allowed):
            faults.append(f"argument {name!r} must be {' or '.join(allowed)}, came {type(value).__name__}")
    return faults


def _allowed_types(schema: Any) -> tuple[str, ...]:
    kinds = schema.get("type") if isinstance(schema, Mapping) else None
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return tuple(kind for kind in kinds if isinstance(kind, str)) if all(kind in _PYTHON_TYPES for kind in kinds) else ()


def _is_a(value: Any, kind: str) -> bool:
    if isinstance(value, bool):  # Python's bool is an int, JSON's is not
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _PYTHON_TYPES[kind])
