"""Tool calls read from a policy's message, whatever its style.

=========================  ==============================================================================================
Hermes, Qwen3              text with ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``, any number of them
OpenAI                     a message with ``tool_calls``, arguments as a JSON string; or such a message as JSON text
TRL, transformers          the same with arguments as an object
=========================  ==============================================================================================

Thoughts (all before the last ``</think>``) hold no calls. Reading takes time linear in the text: no regular expression
meets the policy's words.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

OPEN, CLOSE, END_OF_THOUGHT, THOUGHT = "<tool_call>", "</tool_call>", "</think>", "<think>"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that could be read."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Unparsable:
    """A call that could not, and why, in words for the policy."""

    reason: str


def parse_tool_calls(message: str | Mapping[str, Any]) -> list[ToolCall | Unparsable]:
    """The calls of an assistant's message in their order; empty when it makes none.

    Args:
        message: the generated text, or a chat message (``content``, ``tool_calls``).
    """
    if isinstance(message, str):
        return _from_text(message)
    listed = message.get("tool_calls")
    if listed:
        return [_from_entry(entry) for entry in listed] if isinstance(listed, (list, tuple)) else [Unparsable("tool_calls is no list")]
    content = message.get("content")
    return _from_text(content) if isinstance(content, str) else []


def _from_text(text: str) -> list[ToolCall | Unparsable]:
    text = _without_thoughts(text)
    if OPEN not in text:
        return _from_bare_json(text.strip())
    calls: list[ToolCall | Unparsable] = []
    position = text.find(OPEN)
    while position >= 0:
        begin = position + len(OPEN)
        end = text.find(CLOSE, begin)
        if end < 0:
            calls.append(Unparsable(f"{OPEN} is never closed by {CLOSE}"))
            break
        calls.append(_from_json(text[begin:end]))
        position = text.find(OPEN, end)
    return calls


def _without_thoughts(text: str) -> str:
    _, separator, tail = text.rpartition(END_OF_THOUGHT)
    if separator:
        return tail
    return text.partition(THOUGHT)[0]  # a thought that never ends: what follows is no call


def _from_bare_json(text: str) -> list[ToolCall | Unparsable]:
    """A message that is one JSON value: OpenAI's message, or a call alone. Any other text makes no call."""
    if not text.startswith(("{", "[")):
        return []
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
        return [_from_entry(entry) for entry in value["tool_calls"]]
    entries = value if isinstance(value, list) else [value]
    looks_like_calls = bool(entries) and all(isinstance(entry, dict) and ("name" in entry or "function" in entry) for entry in entries)
    return [_from_entry(entry) for entry in entries] if looks_like_calls else []


def _from_json(text: str) -> ToolCall | Unparsable:
    try:
        return _from_entry(json.loads(text))
    except ValueError as error:
        return Unparsable(f"the call is not valid JSON: {error}")
    except RecursionError:
        return Unparsable("the call is nested too deep")


def _from_entry(entry: Any) -> ToolCall | Unparsable:
    """``{"function": {...}}``, or the function's ``name`` and ``arguments`` themselves."""
    if isinstance(entry, Mapping) and isinstance(entry.get("function"), Mapping):
        entry = entry["function"]
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str) or not entry["name"]:
        return Unparsable('a call is {"name": ..., "arguments": {...}}; this one has no name')
    arguments = entry.get("arguments", entry.get("parameters"))
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError) as error:
            return Unparsable(f"the arguments of {entry['name']} are not valid JSON: {error}")
    arguments = {} if arguments is None else arguments
    if not isinstance(arguments, Mapping):
        return Unparsable(f"the arguments of {entry['name']} must be an object, came {type(arguments).__name__}")
    return ToolCall(entry["name"], arguments)
