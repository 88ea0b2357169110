"""Tasks from goals: a few goals that don't disturb each other, in one world, with checks and reference actions."""

import random
from dataclasses import dataclass
from typing import Any

from scripts.bundled_pool.checks import untouched_check
from scripts.bundled_pool.domains import Domain
from scripts.bundled_pool.families import Family
from scripts.bundled_pool.goals import Action, Goal, World

MAX_CHECKS = 6
EASY = ("set_by_id", "find_set", "add", "remove")
HARD = ("each", "link", "amount", "transfer", "when", "count", "most")


@dataclass(frozen=True)
class TaskDraft:
    """A task with its reference solution: ``goals`` hold the actions, in the order of the sentences."""

    domain: Domain
    prompt: str
    initial_state: dict[str, Any]
    checks: tuple[tuple[str, str], ...]
    goals: tuple[Goal, ...]

    @property
    def actions(self) -> tuple[Action, ...]:
        return tuple(action for goal in self.goals for action in goal.actions)


def compose(domain: Domain, generator: random.Random, num_goals: int, families: tuple[str, ...], min_checks: int = 2) -> TaskDraft:
    """Draw worlds until one holds ``num_goals`` goals of these families, with ``min_checks`` to ``MAX_CHECKS`` checks."""
    allowed = [family for family in domain.families if family.name in families]
    while True:
        world = World(domain.main, domain.second, domain.report, generator)
        goals = _draw_goals(world, allowed, num_goals)
        guard = _guard(world, goals) if domain.guarded and generator.random() < 0.5 else ()
        checks = (*(check for goal in goals for check in goal.checks), *guard)
        if len(goals) == num_goals and min_checks <= len(checks) <= MAX_CHECKS:
            prompt = " ".join(goal.text for goal in goals)
            return TaskDraft(domain, prompt, world.state, checks, tuple(goals))


def _draw_goals(world: World, allowed: list[Family], num_goals: int) -> list[Goal]:
    goals: list[Goal] = []
    order = world.random.sample(allowed, len(allowed)) + world.random.choices(allowed, k=num_goals)
    for family in order:
        if len(goals) == num_goals:
            break
        goal = family.make(world)
        if goal is not None and not any(_disturb(goal, other) for other in goals):
            goals.append(goal)
    return goals


def _disturb(one: Goal, other: Goal) -> bool:
    """Whether one goal may change which records the other means, or what it reports."""
    same_report = "report" in one.changes & other.changes
    return bool(one.changes & other.reads or other.changes & one.reads or one.touched & other.touched or same_report)


def _guard(world: World, goals: list[Goal]) -> tuple[tuple[str, str], ...]:
    touched = {key for goal in goals for key in goal.touched}
    keys = [key for key in world.state[world.main.collection] if key not in touched]
    return (untouched_check(world.main.collection, keys),) if keys else ()
