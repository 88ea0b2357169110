"""A task whose chosen identifiers bear other names, in its state and in its checks alike."""

import ast
import random
import re
import string
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from envsched.types import Check, Task


def rename_task(task: Task, new_name_of: Mapping[str, str], key: str) -> Task:
    """``task`` under ``key``, its identifiers renamed wherever a text holds them as words of their own."""
    checks = tuple(Check(check.text, _rename_source(check.source, new_name_of)) for check in task.checks)
    return replace(task, key=key, initial_state=rename(task.initial_state, new_name_of), checks=checks)


def rename(value: Any, new_name_of: Mapping[str, str]) -> Any:
    """JSON with its strings and keys renamed."""
    if isinstance(value, Mapping):
        return {rename(key, new_name_of): rename(item, new_name_of) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [rename(item, new_name_of) for item in value]
    return rename_text(value, new_name_of) if isinstance(value, str) else value


def rename_text(text: str, new_name_of: Mapping[str, str]) -> str:
    if not new_name_of or not any(name in text for name in new_name_of):
        return text
    words = "|".join(map(re.escape, sorted(new_name_of, key=len, reverse=True)))
    return re.sub(rf"(?<![0-9A-Za-z])(?:{words})(?![0-9A-Za-z])", lambda found: new_name_of[found.group()], text)


def new_names(identifiers: set[str], taken: str, seed: int) -> dict[str, str]:
    """For each identifier one of the same look that ``taken`` (all text of the task) does not hold: other digits, or a tail."""
    generator = random.Random(f"rename {seed}")
    names: dict[str, str] = {}
    for identifier in sorted(identifiers):
        name = identifier
        while name in taken or name in names.values():
            name = _alike(identifier, generator)
        names[identifier] = name
    return names


def _alike(identifier: str, generator: random.Random) -> str:
    if sum(map(str.isdigit, identifier)) >= 3:
        return "".join(generator.choice(string.digits) if letter.isdigit() else letter for letter in identifier)
    return f"{identifier}{generator.choice(string.ascii_lowercase)}{generator.randrange(100, 1000)}"


def _rename_source(source: str, new_name_of: Mapping[str, str]) -> str:
    """String constants of a check renamed; source that does not parse stays as it is."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return source
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = rename_text(node.value, new_name_of)
    return ast.unparse(tree)
