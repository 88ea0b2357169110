"""Checks of goals: a question, and the source of the function that answers it."""

from typing import Any


def field_check(collection: str, key: str, name: str, value: Any) -> tuple[str, str]:
    source = f"def check_func(final_state):\n    return final_state[{collection!r}].get({key!r}, {{}}).get({name!r}) == {value!r}"
    return f"Has {key} in {collection} {name} {value}?", source


def member_check(collection: str, key: str, name: str, value: str) -> tuple[str, str]:
    source = f"def check_func(final_state):\n    return {value!r} in final_state[{collection!r}].get({key!r}, {{}}).get({name!r}, [])"
    return f"Does {name} of {key} in {collection} hold {value}?", source


def gone_check(collection: str, key: str) -> tuple[str, str]:
    return f"Is {key} gone from {collection}?", f"def check_func(final_state):\n    return {key!r} not in final_state[{collection!r}]"


def new_check(collection: str, name_field: str, name: str, extra: str | None, value: Any) -> tuple[str, str]:
    also = "" if extra is None else f" and record[{extra!r}] == {value!r}"
    source = (
        f"def check_func(final_state):\n    records = final_state[{collection!r}].values()\n"
        f"    return any(record[{name_field!r}] == {name!r}{also} for record in records)"
    )
    return f"Is {name} in {collection}" + ("?" if extra is None else f" with {extra} {value}?"), source


def untouched_check(collection: str, keys: list[str]) -> tuple[str, str]:
    source = (
        f"def check_func(final_state):\n    before, after = initial_state[{collection!r}], final_state[{collection!r}]\n"
        f"    return all(after.get(key) == before[key] for key in {keys!r})"
    )
    return f"Are {', '.join(keys)} in {collection} as they were?", source
