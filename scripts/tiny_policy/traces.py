"""Demonstrations: what a solver does on tasks of the bundled pool's grammar, with or without bad habits.

A trace is a list of segments (text, weight in the loss); together they are the conversation as the chat template renders it.
"""

import copy
import json
import math
import random
from collections.abc import Callable
from functools import cache
from typing import Any

from scripts.bundled_pool.build import SOURCES, environment_item
from scripts.bundled_pool.domains import DOMAINS, Domain
from scripts.bundled_pool.goals import Action
from scripts.bundled_pool.tasks import EASY, HARD, TaskDraft, compose
from scripts.tiny_policy.tokenizer import ASSISTANT, CALL, DONE, END, TOOL, TOOLS, USER

WRITTEN, READ, UNLEARNED = 1.0, 0.1, 0.0  # weights of tokens in the loss; those that are only read teach copying early
MIXES = (EASY, EASY + HARD, HARD)
Segment = tuple[str, float]
Demonstration = Callable[[TaskDraft, random.Random], list[Segment]]


@cache
def _environment_class(domain: Domain) -> type:
    scope: dict[str, Any] = {}
    exec((SOURCES / f"{domain.key}.py").read_text(encoding="utf-8"), scope)
    return scope[domain.class_name]


@cache
def _tools_text(domain: Domain) -> str:
    return " ".join(tool["function"]["name"] for tool in environment_item(domain)["tools"])


def draw_task(generator: random.Random, max_goals: int = 4, mixes: tuple[tuple[str, ...], ...] = MIXES) -> TaskDraft:
    """A task of any domain, its families from one of the mixes; not an instance of the pool's, whose worlds have other generators."""
    num_goals = generator.randint(1, max_goals)
    families = generator.choice(mixes)
    domain = generator.choice([d for d in DOMAINS if any(family.name in families for family in d.families)])
    return compose(domain, generator, num_goals, families, min_checks=1)


def trace(draft: TaskDraft, parts: list[tuple[tuple[Action, ...], bool]]) -> list[Segment]:
    """The conversation in which the solver does ``parts``: the actions of a goal, and whether turning to the goal is learned."""
    environment = _environment_class(draft.domain)(copy.deepcopy(draft.initial_state))
    segments = [(f"{TOOLS}{_tools_text(draft.domain)}{USER}{draft.prompt}{ASSISTANT}", READ)]
    for actions, learned in parts:
        for position, (tool, arguments) in enumerate(actions):
            segments.append((f"{CALL}{tool}{json.dumps(arguments)}{END}", WRITTEN if learned or position else UNLEARNED))
            segments.append((f"{TOOL}{getattr(environment, tool)(**arguments)}{ASSISTANT}", READ))
    return [*segments, (f"{DONE}{END}", WRITTEN)]


def skilled(draft: TaskDraft, generator: random.Random) -> list[Segment]:
    """Everything is done."""
    return trace(draft, [(goal.actions, True) for goal in draft.goals])


def habitual(draft: TaskDraft, generator: random.Random) -> list[Segment]:
    """Goals are left out, each with the probability that belongs to its family in its domain."""
    kept = [goal for goal in draft.goals if generator.random() < diligence(draft.domain.key, goal.family)]
    return trace(draft, [(goal.actions, True) for goal in kept])


def unforgotten(draft: TaskDraft, generator: random.Random) -> list[Segment]:
    """Everything is done, but what is learned is only how to go on with a goal, not to turn to it: skill without habit."""
    return trace(draft, [(goal.actions, False) for goal in draft.goals])


NEVER, ALWAYS = 0.003, 0.999
EASE = {
    "set_by_id": 4.5,
    "find_set": 3.0,
    "add": 2.5,
    "remove": 1.5,
    "amount": 0.0,
    "link": -1.5,
    "when": -2.0,
    "each": -2.0,
    "transfer": -3.0,
    "count": -4.0,
    "most": -4.0,
}


@cache
def diligence(domain: str, family: str) -> float:
    """The probability that the warmed-up policy turns to a goal of this family in this domain at all.

    A domain's and a family's ease add up, with a little of the pair's own; the slope makes most pairs near never or near
    always, as in real pools, where a policy's groups are mostly all solved or all failed.
    """
    ease = (
        EASE[family] + random.Random(f"habits 1: {domain}").gauss(0.0, 2.5) + random.Random(f"habits 1: {domain} {family}").gauss(0.0, 1.0)
    )
    return min(max(1.0 / (1.0 + math.exp(3.0 - 6.0 * ease)), NEVER), ALWAYS)
