"""Where an identifier in an action came from: the prompt, an earlier observation, or nowhere.

An *identifier* is a key of a table of the environment's initial state. An argument uses one when its value is such a key
and its parameter names a table's keys: quantities, dates and enumerations that happen to equal a key are no identifiers.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_ID_NAME = re.compile(r"(?:^|_)(?:id|ids|uid|uuid|key|code|ref|sku|isbn|serial|handle)$")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_SHORTEST_COMPACT = 4  # below this, "Room 12" and "room_12" being one is chance


def identifiers_of(state: Mapping[str, Any]) -> dict[str, set[str]]:
    """Parameter and field names that carry identifiers, with the identifiers: ``{"user_id": {"U1", "U2"}, ...}``.

    A table is a mapping of mappings. Its keys go by ``<singular of the table>_id``, by every field that repeats the key
    of its own record, and by every field named like an identifier whose values are keys.
    """
    tables = dict(_tables(state, ""))
    keys = set().union(*tables.values()) if tables else set()
    names: dict[str, set[str]] = {}
    for table, its_keys in tables.items():
        singular = _singular(table)
        for name in (f"{singular}_id", singular):
            names.setdefault(name, set()).update(its_keys)
    for name, key, value in _fields(state):
        if not isinstance(value, (str, int)) or isinstance(value, bool):
            continue
        if str(value) == key or (_ID_NAME.search(name) and str(value) in keys):
            names.setdefault(name, set()).add(str(value))
    return {name: {key for key in found if not _DATE.match(key)} for name, found in names.items()}


def uses(arguments: Mapping[str, Any], identifiers: Mapping[str, set[str]]) -> Iterator[str]:
    """Identifiers that the arguments of one action use."""
    every = set().union(*identifiers.values()) if identifiers else set()
    for name, value in arguments.items():
        allowed = identifiers.get(name) or identifiers.get(name.removesuffix("s")) or (every if _ID_NAME.search(name) else set())
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(item, (str, int)) and not isinstance(item, bool) and str(item) in allowed:
                yield str(item)


def is_shown(identifier: str, texts: Sequence[str]) -> bool:
    """Whether a text shows the identifier as a word of its own, or spelled with other separators and case."""
    return any(_has_word(text, identifier) for text in texts) or (
        len(compact(identifier)) >= _SHORTEST_COMPACT and any(compact(identifier) in compact(text) for text in texts)
    )


def compact(text: str) -> str:
    """Letters and digits in lower case."""
    return "".join(filter(str.isalnum, text)).casefold()


def _has_word(text: str, word: str) -> bool:
    text, word = text.casefold(), word.casefold()
    at = text.find(word)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(word) : at + len(word) + 1]
        if not before.isalnum() and not after.isalnum():
            return True
        at = text.find(word, at + 1)
    return False


def _tables(state: Any, name: str) -> Iterator[tuple[str, set[str]]]:
    if not isinstance(state, Mapping):
        return
    if name and state and all(isinstance(record, Mapping) for record in state.values()):
        yield name, set(map(str, state))
    for key, value in state.items():
        yield from _tables(value, str(key))


def _fields(state: Any, key: str = "") -> Iterator[tuple[str, str, Any]]:
    """(field, key of the record that holds it, value), lists taken apart."""
    if isinstance(state, Mapping):
        for name, value in state.items():
            if isinstance(value, Mapping):
                yield from _fields(value, str(name))
            else:
                for item in value if isinstance(value, (list, tuple)) else [value]:
                    yield from _fields(item) if isinstance(item, Mapping) else [(str(name), key, item)]


def _singular(table: str) -> str:
    if table.endswith("ies"):
        return f"{table[:-3]}y"
    return table.removesuffix("s")
