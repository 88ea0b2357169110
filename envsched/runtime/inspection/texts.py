"""Texts that talk to the policy as if they were its user or its system: a pool's words are data, and may be hostile."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from envsched.types import Environment, Task

_SIGNS = {
    "asks to drop its instructions": (
        r"\b(?:ignore|disregard|forget|override)\b.{0,40}"
        r"\b(?:previous|prior|above|all|your|system) (?:instructions?|rules?|prompts?|guidelines)\b"
    ),
    "speaks as the system": r"<\|[a-z_]+\|>|</?(?:system|tool_call|tool_response|think)>|\[/?INST\]|(?:^|\n)\s*(?:system|assistant)\s*:",
    "gives a new role": r"\byou are now\b|\bfrom now on,? you\b|\bact as an? (?:unrestricted|jailbroken)\b|\bdeveloper mode\b",
    "asks for secrets": r"\b(?:reveal|print|repeat|leak)\b.{0,30}\b(?:system prompt|your instructions|environment variables)\b",
    "speaks of its own reward": r"\b(?:reward|grader|check_func|verifier)\b.{0,40}\b(?:hack|bypass|always pass|maximi[sz]e)\b",
    "hides from the user": r"\b(?:do not|don't|never) (?:tell|inform|mention it to|reveal it to)\b.{0,30}\b(?:user|human|operator)\b",
}
_PATTERNS = {words: re.compile(pattern, re.IGNORECASE) for words, pattern in _SIGNS.items()}


def injected(texts: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """(place, what is wrong and the words) of each text that looks like an instruction to the policy."""
    for place, text in texts:
        for words, pattern in _PATTERNS.items():
            found = pattern.search(text)
            if found:
                yield place, f"{words}: {' '.join(found.group().split())[:80]!r}"


def texts_of_task(task: Task) -> Iterator[tuple[str, str]]:
    """What a policy may come to see of a task."""
    yield "prompt", task.prompt
    yield from _strings(task.initial_state, "initial_state")


def texts_of_environment(environment: Environment) -> Iterator[tuple[str, str]]:
    """What a policy may come to see of an environment."""
    yield "description", environment.description
    for position, rule in enumerate(environment.rules):
        yield f"rule {position}", rule
    for tool in environment.tools:
        yield from _strings(tool["function"], f"tool {tool['function']['name']}")


def _strings(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _strings(item, f"{place}.{key}")
    elif isinstance(value, (list, tuple)):
        for position, item in enumerate(value):
            yield from _strings(item, f"{place}[{position}]")
