"""Why a task has the neighbours it has: what the two share, in words.

Letters: N tasks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from envsched.graph.observed import ObservedGraph
from envsched.pool import Pool
from envsched.topology import CheckKind, TaskSets, Topology


@dataclass(frozen=True)
class Neighbour:
    """One neighbour of a task: which relation, how similar in [0, 1], and the reasons in words."""

    relation: str
    row: int
    weight: float
    reasons: tuple[str, ...]


def neighbours_of(
    graph: ObservedGraph, row: int, pool: Pool, sets: Sequence[TaskSets], topologies: Mapping[str, Topology]
) -> list[Neighbour]:
    """Neighbours of a task in list order, those of its environment first.

    Args:
        sets: of every task, by row [N].
        topologies: of every task, by key.
    """
    found = []
    for name, relation in (("within", graph.within), ("cross", graph.cross)):
        edges = np.flatnonzero(relation.edge_index[1].numpy() == row)
        for edge in edges.tolist():
            source = int(relation.edge_index[0, edge])
            keys = pool.tasks[row].key, pool.tasks[source].key
            reasons = _shared(sets[row], sets[source]) if name == "within" else _alike(topologies[keys[0]], topologies[keys[1]])
            found.append(Neighbour(name, source, float(relation.edge_weight[edge]), reasons))
    return found


def _shared(a: TaskSets, b: TaskSets) -> tuple[str, ...]:
    """What two tasks of one environment have in common, of how much either has."""
    pairs = (("tools", a.tools, b.tools), ("state keys", a.state_keys, b.state_keys), ("check words", a.verifier_tokens, b.verifier_tokens))
    reasons = []
    for name, one, two in pairs:
        both = sorted(one & two)
        if both:
            shown = ", ".join(both[:4]) + (", ..." if len(both) > 4 else "")
            reasons.append(f"{len(both)} of {len(one | two)} {name} ({shown})")
    return tuple(reasons)


def _alike(a: Topology, b: Topology) -> tuple[str, ...]:
    """In which parts of the topology two tasks of different environments agree."""
    phases = [phase for phase in dict.fromkeys(a.execution.phases) if phase in b.execution.phases]
    kinds = [kind.value for kind in CheckKind if getattr(a.reward, kind.value) and getattr(b.reward, kind.value)]
    numbers = [name for name in ("reads", "writes", "depth", "entities") if getattr(a.execution, name) == getattr(b.execution, name)]
    reasons = [
        ("the same steps", [" > ".join(a.execution.phases)] if a.execution.phases == b.execution.phases else []),
        ("steps", phases if a.execution.phases != b.execution.phases else []),
        ("checks of", kinds),
        ("equal", [f"{name} ({getattr(a.execution, name)})" for name in numbers]),
        ("ids to find:", [a.execution.discovery] if a.execution.discovery == b.execution.discovery else []),
    ]
    return tuple(f"{name} {', '.join(values)}" for name, values in reasons if values)
