"""Concrete sets of a task, for the similarity of tasks of one environment."""

import re
from dataclasses import dataclass

from envsched.pool import Pool
from envsched.topology.checks import read_check
from envsched.topology.source import EnvironmentReading, read_environment
from envsched.types import Check, Environment, Task


@dataclass(frozen=True, slots=True)
class TaskSets:
    """``state_keys``: collections that the checks read; ``tools``: tools that touch them, or all of the environment where that can't be
    told; ``verifier_tokens``: the kinds of the checks, the fields they read, and the words of the constants they compare with."""

    tools: frozenset[str]
    state_keys: frozenset[str]
    verifier_tokens: frozenset[str]


def task_sets(pool: Pool) -> list[TaskSets]:
    """Sets of every task, by row [N]; by ``ast`` only."""
    readings = {environment.key: read_environment(environment) for environment in pool.environments}
    return [_sets(task, pool.environment(task.environment), readings[task.environment]) for task in pool.tasks]


def _sets(task: Task, environment: Environment, reading: EnvironmentReading) -> TaskSets:
    keys = frozenset(key for check in task.checks for key in read_check(check.source).state_keys)
    touching = frozenset(tool.name for tool in reading.tools.values() if keys & (tool.reads | tool.writes))
    tokens = frozenset(token for check in task.checks for token in _tokens(check))
    return TaskSets(tools=touching or frozenset(environment.tool_names), state_keys=keys, verifier_tokens=tokens)


def _tokens(check: Check) -> frozenset[str]:
    reading = read_check(check.source)
    words = (word for text in reading.strings for word in re.findall(r"\w+", text.lower()))
    return frozenset(words) | {f"kind:{reading.kind}"}
