"""One episode in a process of its own: an instance of the environment's class, its tools, its checks.

Instantiation follows EnvScaler: the class gets a copy of the initial state (or nothing, if it takes no argument), then
each top-level key of that state becomes an attribute.
"""

import copy
import hashlib
import json
import sys
import types
from dataclasses import dataclass
from types import CodeType
from typing import Any

from .checks import run_checks
from .words import describe


@dataclass
class Blueprint:
    """What a worker keeps of a task, compiled once and inherited by every episode's process."""

    environment: CodeType | str  # or why it does not compile
    class_name: str
    initial_state: str  # JSON text, decoded anew per episode
    checks: list[CodeType | str]
    reads_initial_state: bool


class Instance:
    """A live environment.

    Raises:
        RuntimeError: the source does not compile, run, define its class, or construct it; says which.
    """

    def __init__(self, blueprint: Blueprint, result_chars: int) -> None:
        self.blueprint = blueprint
        self.result_chars = result_chars
        self.environment = _construct(_load_class(blueprint), json.loads(blueprint.initial_state))
        self.initial_state = copy.deepcopy(self.state) if blueprint.reads_initial_state else None

    @property
    def state(self) -> dict[str, Any]:
        """The live attributes, dunder names apart; not a copy."""
        return {key: value for key, value in vars(self.environment).items() if not (key.startswith("__") and key.endswith("__"))}

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run a tool; a raise is an answer like any other. Of a long result only the beginning goes on its way."""
        try:
            text = f"{getattr(self.environment, tool)(**arguments)}"
            return {"ok": True, "text": _printable(text[: self.result_chars]), "length": len(text)}
        except BaseException as error:  # SystemExit and KeyboardInterrupt too: a tool must not end the process
            return {"ok": False, "text": _printable(describe(error))}

    def score(self, chosen: list[int] | None, empty: bool) -> dict[str, Any]:
        """Run checks (all by default) on the state, or on one that holds nothing at all."""
        positions = list(range(len(self.blueprint.checks))) if chosen is None else chosen
        initial, final = ({}, {}) if empty else (self.initial_state, self.state)
        passed, problems = run_checks(self.blueprint.checks, positions, initial, final)
        return {"passed": passed, "problems": problems}

    def methods(self, tools: list[str]) -> dict[str, Any]:
        """Tools without a method, and public methods that are no tool."""
        public = [name for name in dir(type(self.environment)) if not name.startswith("_")]
        missing = [name for name in tools if not callable(getattr(self.environment, name, None))]
        return {"missing": missing, "unlisted": [name for name in public if name not in tools]}

    def snapshot(self) -> dict[str, Any]:
        """The state as JSON text (what JSON can't say, by its ``repr``) and its SHA-256."""
        text = json.dumps(_jsonable(self.state), sort_keys=True)
        return {"state": text, "digest": hashlib.sha256(text.encode()).hexdigest()}


def _load_class(blueprint: Blueprint) -> type:
    if isinstance(blueprint.environment, str):
        raise RuntimeError(f"the environment's source does not compile: {blueprint.environment}")
    module = types.ModuleType("dynamic_env")
    try:
        exec(blueprint.environment, module.__dict__)
    except BaseException as error:
        raise RuntimeError(f"the environment's source does not run: {describe(error)}") from None
    if not hasattr(module, blueprint.class_name):
        raise RuntimeError(f"the environment's source defines no class {blueprint.class_name!r}")
    return getattr(module, blueprint.class_name)


def _construct(environment_class: type, initial_state: dict[str, Any]) -> Any:
    try:
        try:
            environment = environment_class(initial_state)
        except TypeError:  # a constructor without arguments
            environment = environment_class()
        for key, value in initial_state.items():
            setattr(environment, key, value)
    except BaseException as error:
        raise RuntimeError(f"{environment_class.__name__} can't be constructed: {describe(error)}") from None
    return environment


def _printable(text: str) -> str:
    """Lone surrogates would stop the trainer's tokenizer."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_jsonable(item) for item in value), key=repr)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return repr(value)


class NullWriter:
    """Where an environment's prints go; a write to it costs no system call."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None: ...


def silence() -> None:
    sys.stdout = sys.stderr = NullWriter()
