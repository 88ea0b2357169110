"""The static extractor against a truth made by hand; ``TRUTH.md`` says how it was made."""

import json
from collections.abc import Iterator
from pathlib import Path

from envsched.pool import Pool
from envsched.topology import extract_static
from envsched.topology.checks import read_check
from envsched.topology.flow import Flow
from envsched.topology.schema import WRITES
from envsched.topology.source import read_environment
from envsched.topology.static import operations_of

from .conftest import SET_ASIDE

TRUTH = json.loads((Path(__file__).parent / "truth.json").read_text())


def fields(pool: Pool) -> Iterator[tuple[str, str, str, str]]:
    """(group, place, truth, extracted) of every field."""
    topologies = extract_static(pool)
    for key, truth in TRUTH.items():
        task = pool.task(key)
        environment = pool.environment(task.environment)
        reading = read_environment(environment)
        for name, kinds in zip(environment.tool_names, truth["tools"], strict=True):
            yield "tools", f"{key} {name}", kinds, "+".join(sorted(reading.tools[name].kinds))
        readings = [read_check(check.source) for check in task.checks]
        for position, (kind, found) in enumerate(zip(truth["checks"], readings, strict=True)):
            yield "checks", f"{key} {position}", kind, found.kind.value
        operations = operations_of(task, readings, Flow(reading))
        yield "tasks", f"{key} writes", truth["writes"], "+".join(sorted({o.kind for o in operations} & set(WRITES)))
        yield "tasks", f"{key} negative", str(truth["negative"]), str(topologies[key].reward.negative)
        yield "tasks", f"{key} initial", str(truth["initial"]), str(topologies[key].reward.initial)


def test_the_truth_speaks_of_one_task_of_each_environment_set_aside(real_pool):
    assert sorted(real_pool.task(key).environment for key in TRUTH) == sorted(SET_ASIDE)


def test_static_records_agree_with_the_truth(real_pool):
    agreed: dict[str, list[bool]] = {}
    for group, place, truth, found in fields(real_pool):
        agreed.setdefault(group, []).append(truth == found)
        if truth != found:
            print(f"{place}: truth {truth}, extracted {found}")
    for group, hits in agreed.items():
        print(f"{group}: {sum(hits)}/{len(hits)} = {sum(hits) / len(hits):.3f}")
        assert sum(hits) >= 0.9 * len(hits), group
