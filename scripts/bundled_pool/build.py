"""The files of the bundled pool, made from the environment classes and the task grammar; the same bytes every time."""

import ast
import random
from pathlib import Path
from typing import Any

from scripts.bundled_pool.domains import DOMAINS, Domain
from scripts.bundled_pool.tasks import EASY, HARD, TaskDraft, compose

SOURCES = Path(__file__).parent / "environments"
TRAIN_PLAN = ((6, (2,), EASY), (7, (2, 3), EASY + HARD), (7, (2, 3, 4), HARD))  # tasks, goals in turn, families
HELD_OUT_PLAN = ((4, (2,), EASY), (4, (2, 3), EASY + HARD), (4, (2, 3, 4), HARD))
SINGLE = "lighthouse"  # the environment with one task, and none held out
TYPES = {"str": "string", "int": "integer"}


def drafts(split: str) -> dict[str, TaskDraft]:
    """Drafts of a split ("train" or "held_out") by task key."""
    made = {}
    for domain in DOMAINS:
        made.update(_drafts_of(domain, split))
    return made


def _drafts_of(domain: Domain, split: str) -> dict[str, TaskDraft]:
    plan = TRAIN_PLAN if split == "train" else HELD_OUT_PLAN
    if domain.key == SINGLE:
        plan = ((1, (2,), EASY),) if split == "train" else ()
    made = {}
    for num_tasks, num_goals, families in plan:
        for i in range(num_tasks):
            key = f"{domain.key}-{split}_{len(made):02d}"
            made[key] = compose(domain, random.Random(f"bundled pool 1: {key}"), num_goals[i % len(num_goals)], families)
    return made


def environment_item(domain: Domain) -> dict[str, Any]:
    """One environment in EnvScaler's form."""
    source = (SOURCES / f"{domain.key}.py").read_text(encoding="utf-8")
    klass = next(node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    introduction = ast.get_docstring(klass) or ""
    return {
        "env_id": domain.key,
        "environment_summary": introduction.split(".")[0] + ".",
        "environment_introduction": introduction,
        "constraints_rules": [rule.strip() + "." for rule in introduction.split(".")[1:] if rule.strip()],
        "env_class_name": domain.class_name,
        "env_class_code": source,
        "tools": [_schema(node) for node in klass.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")],
    }


def _schema(function: ast.FunctionDef) -> dict[str, Any]:
    arguments = {
        argument.arg: {"type": TYPES[ast.unparse(argument.annotation)]} for argument in function.args.args[1:] if argument.annotation
    }
    return {
        "type": "function",
        "function": {
            "name": function.name,
            "description": ast.get_docstring(function),
            "parameters": {"type": "object", "properties": arguments, "required": list(arguments)},
        },
    }


def task_item(key: str, draft: TaskDraft) -> dict[str, Any]:
    """One task in EnvScaler's form."""
    return {
        "env_id": draft.domain.key,
        "env_class_name": draft.domain.class_name,
        "task_id": key,
        "init_config": draft.initial_state,
        "task": draft.prompt,
        "checklist": [text for text, _ in draft.checks],
        "checklist_with_func": [{"check_item": text, "check_func": source} for text, source in draft.checks],
    }


def solution_item(draft: TaskDraft) -> list[dict[str, Any]]:
    """The reference actions of a task, as recorded actions have them."""
    return [{"name": name, "arguments": arguments} for name, arguments in draft.actions]
