"""Topologies without a language model: from tool schemas, environment code and check functions, by ``ast`` alone.

What a task asks for is read off its checks against its start state: a record that a check wants and the start lacks is to be
created, one that is there is to be updated, one that must go is to be deleted. Checks that speak of one record make one call.
What must be found first, and through how many calls, is read off the tools. Where a part can't be read, the words of the prompt
stand in, and the record's ``unread`` says so.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import groupby, pairwise
from multiprocessing import get_context
from typing import Any

from envsched.pool import Pool
from envsched.progress import track
from envsched.topology.checks import CheckReading, read_check
from envsched.topology.flow import Flow
from envsched.topology.schema import MAX_PHASES, READS, WRITES, CheckKind, Execution, Part, Phase, Reward, Topology
from envsched.topology.source import read_environment
from envsched.topology.words import phases_in, tool_phase
from envsched.types import Check, Environment, Task

LOOP_FROM = 3  # calls of one kind on one collection that make a loop
MAX_NUMBER = 99_999


@dataclass(frozen=True)
class Operation:
    """One call that the checks ask for: its kind, the collection, what singles its record out, the record's key at the start."""

    kind: Phase
    collection: str
    identity: frozenset[str]
    key: str | None  # none: the record is not there at the start, or has no key


def extract_static(pool: Pool, true_at_start: Mapping[str, float] | None = None, processes: int = 1) -> dict[str, Topology]:
    """A topology for every task, in the order of the pool.

    Args:
        true_at_start: share of checks that pass before any action, by task key, where something has run them.
        processes: share environments out to this many fresh processes; pays from some thousand checks on.
    """
    known = true_at_start or {}
    tasks = [pool.tasks[first:end] for first, end in pairwise(pool.offsets.tolist())]
    shares = [{task.key: known[task.key] for task in group if task.key in known} for group in tasks]
    if processes == 1:
        return _gathered(map(_of_environment, pool.environments, tasks, shares), len(tasks))
    with ProcessPoolExecutor(processes, get_context("spawn")) as workers:
        return _gathered(workers.map(_of_environment, pool.environments, tasks, shares), len(tasks))


def _gathered(found: Iterable[dict[str, Topology]], number: int) -> dict[str, Topology]:
    return {key: topology for group in track(found, "topologies", total=number) for key, topology in group.items()}


def _of_environment(environment: Environment, tasks: Sequence[Task], known: Mapping[str, float]) -> dict[str, Topology]:
    flow = Flow(read_environment(environment))
    return {task.key: _topology(task, environment, flow, known.get(task.key)) for task in tasks}


def _topology(task: Task, environment: Environment, flow: Flow, true_at_start: float | None) -> Topology:
    readings = [read_check(check.source) for check in task.checks]
    operations = operations_of(task, readings, flow)
    return Topology(
        execution=_execution(task, readings, operations, flow),
        reward=_reward(readings, true_at_start),
        unread=_unread(task, environment, readings, flow),
    )


def operations_of(task: Task, readings: Iterable[CheckReading], flow: Flow) -> list[Operation]:
    """Calls that the checks ask for, in the checks' order; checks of one record are merged into one call."""
    operations: list[Operation] = []
    for reading, check in zip(readings, task.checks, strict=True):
        found = _operation(task, reading, check, flow)
        if found is None:
            continue
        for position, other in enumerate(operations):
            if _is_same(found, other):
                operations[position] = Operation(other.kind, other.collection, other.identity | found.identity, other.key)
                break
        else:
            operations.append(found)
    return operations


def _is_same(a: Operation, b: Operation) -> bool:
    """One call serves both: the same kind on the same record."""
    if (a.kind, a.collection) != (b.kind, b.collection):
        return False
    if a.key is not None and b.key is not None:
        return a.key == b.key
    return a.identity <= b.identity or b.identity <= a.identity


def _operation(task: Task, reading: CheckReading, check: Check, flow: Flow) -> Operation | None:
    if not reading.target or reading.keeps:
        return None
    key, share = _record(task.initial_state.get(reading.target), reading.identity)
    return Operation(_kind(reading, check, share, flow), reading.target, frozenset(reading.identity), key)


def _kind(reading: CheckReading, check: Check, share: float, flow: Flow) -> Phase:
    """Kind of call that makes a check pass; ``share`` of its constants are those of a record that is there at the start."""
    is_new = Phase.CREATE in phases_in(check.text) and flow.has(reading.target, Phase.CREATE)
    match reading.kind:
        case CheckKind.ABSENCE:
            return Phase.UPDATE if reading.is_field else Phase.DELETE
        case CheckKind.EQUALITY if reading.identity:
            return Phase.UPDATE if share > 0 else Phase.CREATE
        case CheckKind.PRESENCE if not reading.is_field:
            if share == 0 or is_new or not flow.has(reading.target, Phase.UPDATE):
                return Phase.CREATE
    return Phase.UPDATE


def _record(collection: Any, identity: tuple[str, ...]) -> tuple[str | None, float]:
    """The record of the start state that shares most constants with ``identity``: its key, and the share it has of them."""
    if not identity or not isinstance(collection, Mapping | list):
        return None, 0.0
    items = collection.items() if isinstance(collection, Mapping) else ((None, item) for item in collection)
    best: tuple[str | None, float] = (None, 0.0)
    for key, item in items:
        values = {str(key), *map(str, item.values())} if isinstance(item, Mapping) else {str(key), str(item)}
        share = sum(constant in values for constant in identity) / len(identity)
        if share > best[1]:
            best = (None if key is None else str(key), share)
    return best


def _execution(task: Task, readings: list[CheckReading], operations: list[Operation], flow: Flow) -> Execution:
    if not operations:
        return _unchecked(task)
    hidden = [operation.key is not None and operation.key not in task.prompt for operation in operations]
    existing = sum(operation.key is not None for operation in operations)
    to_find = {o.collection for o, is_hidden in zip(operations, hidden, strict=True) if is_hidden}
    records = {(o.collection, o.key) for o, is_hidden in zip(operations, hidden, strict=True) if is_hidden}
    return Execution(
        phases=_phases(task, readings, operations, hidden),
        reads=min(len(records), MAX_NUMBER),
        writes=min(len(operations), MAX_NUMBER),
        depth=flow.depth(to_find, {o.collection for o in operations if o.kind == Phase.CREATE}),
        entities=len({operation.collection for operation in operations}),
        discovery="none" if not any(hidden) else "all" if sum(hidden) == existing else "some",
    )


def _phases(task: Task, readings: list[CheckReading], operations: list[Operation], hidden: list[bool]) -> tuple[Phase, ...]:
    named = set(phases_in(task.prompt))
    phases = [Phase.BRANCH] if Phase.BRANCH in named else []
    for (kind, _), group in groupby(zip(operations, hidden, strict=True), key=lambda pair: (pair[0].kind, pair[0].collection)):
        members = list(group)
        phases += [Phase.LOOK_UP] if any(is_hidden for _, is_hidden in members) else []
        phases += [Phase.LOOP] if len(members) >= LOOP_FROM else []
        phases.append(kind)
    first_write = next((i for i, phase in enumerate(phases) if phase in WRITES), 0)
    if Phase.VALIDATE in named:
        phases.insert(first_write, Phase.VALIDATE)
    if Phase.AGGREGATE in named or any(reading.kind == CheckKind.COUNT for reading in readings):
        phases.insert(first_write, Phase.AGGREGATE)
    return _collapsed(phases)


def _unchecked(task: Task) -> Execution:
    """No check could be read: the calls of a reference solution tell, where the pool keeps one, else the words of the prompt."""
    found = (re.match(r"([A-Za-z_]\w*)\(", check.text) for check in task.checks if not check.source)
    calls = [tool_phase(match[1]) or Phase.LOOK_UP for match in found if match]
    named = calls or phases_in(task.prompt)
    runs = [(phase, len(list(group))) for phase, group in groupby(named)]
    return Execution(
        phases=_collapsed(step for phase, length in runs for step in ([Phase.LOOP] if calls and length >= LOOP_FROM else []) + [phase]),
        reads=min(sum(phase in READS for phase in named), MAX_NUMBER),
        writes=min(sum(phase in WRITES for phase in named), MAX_NUMBER),
        depth=int(bool(named)),
        entities=min(len(task.initial_state), MAX_NUMBER),
        discovery="none",
    )


def _collapsed(phases: Iterable[Phase]) -> tuple[Phase, ...]:
    return tuple(phase for phase, _ in groupby(phases))[:MAX_PHASES]


def _reward(readings: list[CheckReading], true_at_start: float | None) -> Reward:
    counts = {kind.value: sum(reading.kind == kind for reading in readings) for kind in CheckKind}
    return Reward(
        **counts,
        negative=sum(reading.is_negative for reading in readings),
        initial=sum(reading.reads_initial for reading in readings),
        true_at_start=None if true_at_start is None else round(true_at_start, 4),
        grading="partial" if len(readings) > 1 else "all_or_nothing",
    )


def _unread(task: Task, environment: Environment, readings: list[CheckReading], flow: Flow) -> tuple[Part, ...]:
    missing = {
        Part.SOURCE: not flow.reading.is_read or not all(tool.is_read for tool in flow.reading.tools.values()),
        Part.TOOLS: not environment.tools,
        Part.CHECKS: not readings or any(reading.kind == CheckKind.OTHER for reading in readings),
        Part.STATE: not task.initial_state,
    }
    return tuple(sorted(part for part, is_missing in missing.items() if is_missing))
