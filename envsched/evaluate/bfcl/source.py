"""Dialogues as tasks of an ``EnvironmentRuntime``: what its workers need to know, and nothing that the policy sees."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from envsched.evaluate.bfcl.files import DialogueTask
from envsched.pool import Pool
from envsched.pool.bfcl import DOCUMENTS
from envsched.types import Environment, Task

_FOLDER = Path(__file__).parent
_PACKAGE = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"  # under which the modules import one another
_LOADER = """\
import sys, types

def _load(name, text):
    for end in [i for i, c in enumerate(name) if c == "."]:
        sys.modules.setdefault(name[:end], types.ModuleType(name[:end])).__path__ = []
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
    return module
"""
_CALL = {"name": {"type": "string"}, "arguments": {"type": "object"}}
_TOOLS = (  # between ``dialogue.py`` and the worker; the policy is offered the classes' functions
    {"type": "function", "function": {"name": "call", "parameters": {"type": "object", "properties": _CALL, "required": [*_CALL]}}},
    {"type": "function", "function": {"name": "finish_turn", "parameters": {"type": "object", "properties": {}}}},
)


def pool_of(dialogues: Iterable[DialogueTask], modules: Mapping[str, str]) -> Pool:
    """A pool whose environments are the sets of classes that dialogues involve.

    Args:
        modules: sources by name, as ``files.read_modules`` gives them.
    """
    dialogues = list(dialogues)
    sets = {_key(dialogue): dialogue.classes for dialogue in dialogues}
    environments = [
        Environment(key, tools=_TOOLS, class_name="Dialogue", source=environment_source(classes, modules)) for key, classes in sets.items()
    ]
    return Pool(environments, [_task(dialogue) for dialogue in dialogues])


def environment_source(classes: Iterable[str], modules: Mapping[str, str]) -> str:
    """The classes' modules, what they import, and the driver, as one text."""
    stems = {name: Path(DOCUMENTS[name]).stem for name in classes}
    texts = {"mpmath": (_FOLDER / "logarithm.py").read_text(encoding="utf-8")} if "MathAPI" in stems else {}
    wanted = [*stems.values()]
    if any("long_context" in re.findall(r"\w+", modules[stem]) and "func_source_code" in modules[stem] for stem in wanted):
        wanted.insert(0, "long_context")
    texts |= {f"{_PACKAGE}.{stem}": modules[stem] for stem in wanted}
    loads = [f"_load({name!r}, {text!r})" for name, text in texts.items()]
    table = ", ".join(f"{name!r}: sys.modules[{f'{_PACKAGE}.{stem}'!r}].{name}" for name, stem in stems.items())
    return "\n".join([_LOADER, *loads, f"CLASSES = {{{table}}}", (_FOLDER / "driver.py").read_text(encoding="utf-8")])


def _key(dialogue: DialogueTask) -> str:
    return "+".join(dialogue.classes)


def _task(dialogue: DialogueTask) -> Task:
    state = {
        "classes": list(dialogue.classes),
        "configs": dict(dialogue.configs),
        "truth": [list(turn) for turn in dialogue.truth],
        "long_context": dialogue.subset == "long_context",
    }
    return Task(dialogue.key, _key(dialogue), initial_state=state)
