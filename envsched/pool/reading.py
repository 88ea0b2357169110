"""Reading files of tasks: every fault names the file, the place in it, what was expected and what came."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from envsched.errors import PoolError
from envsched.files import parse_json

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_text(file: Path) -> str:
    """UTF-8, with or without a byte-order mark.

    Raises:
        PoolError: unreadable or not UTF-8.
    """
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise PoolError(f"{file}: not UTF-8 at byte {error.start}; restore the file") from None
    except OSError as error:
        raise PoolError(f"{file}: {error.strerror}") from None


def read_objects(file: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """Objects of a JSON list, of a dict by key, or of JSON lines, each with the words that name it in an error.

    Raises:
        PoolError: unreadable, not JSON, or an item that is no object.
    """
    text = read_text(file)
    start = text.lstrip()[:1]
    if start == "[":
        items = ((item, f"{file}: item {position}") for position, item in enumerate(decode(text, str(file))))
    else:
        # JSON strings may hold the other separators that splitlines() knows
        lines = ((number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip())
        items = ((decode(line, f"{file}, line {number}"), f"{file}, line {number}") for number, line in lines)
    for item, where in items:
        if not isinstance(item, dict):
            raise PoolError(f"{where}: expected an object; came {type(item).__name__}")
        yield item, where


def decode(text: str, where: str) -> Any:
    """JSON without repeated keys, NaN, infinities or halves of characters: a pool's fingerprint is over its canonical JSON.

    Raises:
        PoolError: not JSON, a key twice in one object, or a value that canonical JSON can't hold.
    """

    def refuse(constant: str) -> None:
        raise PoolError(f"{where}: {constant} is no JSON number; give a finite number or null")

    try:
        value = parse_json(text, object_pairs_hook=lambda pairs: _unique(pairs, where), parse_constant=refuse)
        if _SURROGATE.search(text):  # an escape of half a character; a pair of them is one whole character
            json.dumps(value, ensure_ascii=False).encode()
    except PoolError:
        raise
    except json.JSONDecodeError as error:
        place = f"column {error.colno}" if ", line " in where else f"line {error.lineno}, column {error.colno}"
        raise PoolError(f"{where}: invalid JSON at {place}: {error.msg}; restore it") from None
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])
        raise PoolError(f"{where}: {half} is half a character (a lone surrogate); write the whole character") from None
    except ValueError as error:
        raise PoolError(f"{where}: invalid JSON: {str(error).partition(';')[0]}; restore it") from None
    return value


def _unique(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise PoolError(f"{where}: key {key!r} occurs twice in one object; keys must be unique, rename or drop one")
        made[key] = value
    return made


def field(item: Mapping[str, Any], name: str, kind: type | tuple[type, ...], where: str, default: Any = None) -> Any:
    """A field of the given type, ``default`` where it is absent or null and a default is given.

    Raises:
        PoolError: absent without a default, or of another type.
    """
    value = item.get(name)
    if value is None:
        value = default
    if not isinstance(value, kind):
        kinds = " or ".join(one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,)))
        raise PoolError(f"{where}: field {name!r} must be a {kinds}; came {'nothing' if value is None else type(value).__name__}")
    return value


def tool_schema(entry: Any, where: str) -> dict[str, Any]:
    """An OpenAI function schema, from one, from a bare function, or from a name alone.

    Raises:
        PoolError: no name.
    """
    function = {"name": entry} if isinstance(entry, str) else entry
    if isinstance(function, dict) and isinstance(function.get("function"), dict):
        function = function["function"]
    if not isinstance(function, dict) or not isinstance(function.get("name"), str) or not function["name"]:
        raise PoolError(f"{where}: a tool must be a function schema with a name, or a name; came {str(entry)[:80]}")
    return {"type": "function", "function": function}
