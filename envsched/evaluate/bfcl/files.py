"""BFCL's multi-turn files as ``scripts/prepare_data.py --from-package`` lays them out:

```
BFCL_v4_multi_turn_SUBSET.json                   dialogues: turns of the user, initial configurations, classes
possible_answer/BFCL_v4_multi_turn_SUBSET.json   reference calls per turn
multi_turn_func_doc/*.json                       documents of the classes' functions
func_source_code/*.py                            the classes; run in environment workers only
default_prompts.py                               two constants of the protocol; read, never run
```
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envsched.errors import PoolError
from envsched.pool.bfcl import DOCUMENTS
from envsched.pool.reading import field, read_objects, read_text

SUBSETS = ("base", "miss_func", "miss_param", "long_context")

_JSON_TYPE = {"dict": "object", "float": "number", "tuple": "array", "any": "string", "bool": "boolean", "list": "array"}


@dataclass(frozen=True, slots=True)
class DialogueTask:
    """One dialogue. ``turns`` [T] of messages, ``truth`` [T] of reference calls; ``withheld`` by the turn that brings the functions."""

    key: str
    subset: str
    turns: tuple[tuple[Mapping[str, Any], ...], ...]
    classes: tuple[str, ...]
    configs: Mapping[str, Any]
    withheld: Mapping[int, tuple[str, ...]]
    truth: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Protocol:
    """``max_steps``: messages with calls in one turn, more fail the dialogue; ``announcement``: said when withheld functions come."""

    max_steps: int
    announcement: str


def read_dialogues(folder: Path, subset: str) -> list[DialogueTask]:
    """All dialogues of a subset, in the file's order.

    Raises:
        PoolError: a file is missing, an entry does not fit, or an answer is missing or has another number of turns.
    """
    answered = _objects(folder, f"possible_answer/{_questions(subset)}")
    answers = {field(item, "id", str, where): field(item, "ground_truth", list, where) for item, where in answered}
    return [_dialogue(item, where, subset, answers) for item, where in _objects(folder, _questions(subset))]


def read_tools(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """OpenAI function schemas by class."""
    return {
        name: [_schema(item, where) for item, where in _objects(folder, f"multi_turn_func_doc/{file}")] for name, file in DOCUMENTS.items()
    }


def read_modules(folder: Path) -> dict[str, str]:
    """Sources of the classes' modules by name; the long texts of ``long_context`` among them."""
    names = [*(Path(file).stem for file in DOCUMENTS.values()), "long_context"]
    return {name: read_text(_existing(folder, f"func_source_code/{name}.py")) for name in names}


def read_protocol(folder: Path) -> Protocol:
    """The constants of BFCL's own loop."""
    constants = _constants(read_text(_existing(folder, "default_prompts.py")))
    try:
        return Protocol(constants["MAXIMUM_STEP_LIMIT"], constants["DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC"])
    except KeyError as error:
        raise PoolError(f"{folder / 'default_prompts.py'}: no constant {error}; prepare the folder anew from the pinned package") from None


def has_bfcl(folder: Path) -> bool:
    """Whether the folder was prepared."""
    return all((folder / _questions(subset)).is_file() for subset in SUBSETS)


def _questions(subset: str) -> str:
    return f"BFCL_v4_multi_turn_{subset}.json"


def _existing(folder: Path, name: str) -> Path:
    if not (folder / name).is_file():
        raise PoolError(f"{folder / name} is missing; run: python scripts/prepare_data.py --from-package bfcl-eval")
    return folder / name


def _objects(folder: Path, name: str) -> Iterator[tuple[dict[str, Any], str]]:
    return read_objects(_existing(folder, name))


def _dialogue(item: Mapping[str, Any], where: str, subset: str, answers: Mapping[str, list[Any]]) -> DialogueTask:
    key, turns = field(item, "id", str, where), field(item, "question", list, where)
    if key not in answers or len(answers[key]) != len(turns):
        came = f"{len(answers[key])} turns" if key in answers else "none"
        raise PoolError(f"{where}: {key!r} needs an answer of {len(turns)} turns; came {came}; give the two files of one version")
    return DialogueTask(
        key=key,
        subset=subset,
        turns=tuple(tuple(turn) for turn in turns),
        classes=tuple(field(item, "involved_classes", list, where)),
        configs=field(item, "initial_config", dict, where, default={}),
        withheld={int(turn): tuple(names) for turn, names in field(item, "missed_function", dict, where, default={}).items()},
        truth=tuple(tuple(turn) for turn in answers[key]),
    )


def _schema(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    function = {"name": field(document, "name", str, where), "description": field(document, "description", str, where, default="")}
    return {"type": "function", "function": {**function, "parameters": _typed(field(document, "parameters", dict, where))}}


def _typed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """With JSON Schema's names of types."""
    typed = dict(schema)
    if "type" in typed:
        typed["type"] = _JSON_TYPE.get(typed["type"], typed["type"])
    if isinstance(typed.get("properties"), Mapping):
        typed["properties"] = {name: _typed(inner) for name, inner in typed["properties"].items()}
    if isinstance(typed.get("items"), Mapping):
        typed["items"] = _typed(typed["items"])
    return typed


def _constants(source: str) -> dict[str, Any]:
    """Names that a module binds to literals."""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Constant):
            found[node.targets[0].id] = node.value.value
    return found
