"""The static extractor on small code of our own, and on the real slice."""

import time
from dataclasses import replace

import pytest

from envsched.pool import Pool
from envsched.topology import Part, Phase, extract_static, task_sets
from envsched.topology.schema import CheckKind
from envsched.types import Check, Environment, Task

SHELF = """
from typing import Dict, List, TypedDict
import uuid

class BoxInfo(TypedDict):
    box_id: str
    label: str
    weight: float
    marks: List[str]

class Shelf:
    def __init__(self, init_config):
        self.boxes: Dict[str, BoxInfo] = {}
        self.init_config = init_config

    def list_boxes(self):
        return {"success": True, "data": list(self.boxes.values())}

    def is_heavy(self, box_id):
        if box_id not in self.boxes:
            return {"success": False, "error": "no such box"}
        return {"success": True, "data": self.boxes[box_id]["weight"] > 10}

    def total_weight(self):
        total = sum(box["weight"] for box in self.boxes.values())
        return {"success": True, "data": total}

    def add_box(self, label):
        box_id = str(uuid.uuid4())
        self.boxes[box_id] = {"box_id": box_id, "label": label, "weight": 0.0, "marks": []}
        return {"success": True, "box_id": box_id}

    def relabel(self, box_id, label):
        box = self.boxes.get(box_id)
        if box is None:
            return {"success": False, "error": "no such box"}
        box["label"] = label
        return {"success": True, "message": "done"}

    def replace_box(self, box_id, label):
        if box_id not in self.boxes:
            return {"success": False, "error": "no such box"}
        self.boxes[box_id] = {"box_id": box_id, "label": label, "weight": 0.0, "marks": []}
        return {"success": True, "message": "done"}

    def mark(self, box_id, mark):
        self.boxes[box_id]["marks"].append(mark)
        return {"success": True, "message": "done"}

    def _drop(self, box_id):
        self.boxes.pop(box_id)

    def throw_away(self, box_id):
        self._drop(box_id)
        return {"success": True, "message": "gone"}
"""


def tool(name: str, *required: str) -> dict:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "required": list(required)}}}


TOOLS = (
    tool("list_boxes"),
    tool("is_heavy", "box_id"),
    tool("total_weight"),
    tool("add_box", "label"),
    tool("relabel", "box_id", "label"),
    tool("replace_box", "box_id", "label"),
    tool("mark", "box_id", "mark"),
    tool("throw_away", "box_id"),
)


def shelf(source: str = SHELF, tools: tuple = TOOLS) -> Environment:
    return Environment(key="shelf", tools=tools, class_name="Shelf", source=source)


def check(body: str) -> Check:
    return Check(text="", source=f"def check_func(final_state):\n{body}")


def pool_of(*checks: Check, prompt: str = "", environment: Environment | None = None, state: dict | None = None) -> Pool:
    start = {"boxes": {"B1": {"box_id": "B1", "label": "tea", "weight": 1.0, "marks": []}}} if state is None else state
    return Pool([environment or shelf()], [Task("t", "shelf", prompt=prompt, initial_state=start, checks=checks)])


def test_operations_are_told_from_checks_and_the_start_state():
    pool = pool_of(
        check("    return final_state['boxes']['B1']['label'] == 'salt'"),
        check("    return any(b['label'] == 'rice' for b in final_state['boxes'].values())"),
        check("    return 'B1' not in final_state['boxes']"),
    )
    topology = extract_static(pool)["t"]
    assert topology.execution.phases == (Phase.LOOK_UP, Phase.UPDATE, Phase.CREATE, Phase.LOOK_UP, Phase.DELETE)
    assert (topology.execution.reads, topology.execution.writes, topology.execution.entities) == (1, 3, 1)
    assert topology.execution.discovery == "all"
    assert (topology.reward.equality, topology.reward.presence, topology.reward.absence, topology.reward.negative) == (1, 1, 1, 1)
    assert topology.reward.grading == "partial"
    assert topology.unread == ()


def test_an_identifier_in_the_prompt_needs_no_finding():
    pool = pool_of(check("    return final_state['boxes']['B1']['label'] == 'salt'"), prompt="Call box B1 salt")
    execution = extract_static(pool)["t"].execution
    assert (execution.discovery, execution.reads, execution.depth) == ("none", 0, 1)


def test_what_cannot_be_read_is_said_and_never_a_crash():
    broken = shelf(source="class Shelf:\n  def (", tools=())
    pool = pool_of(Check("", "not python ("), prompt="Find the box and delete it", environment=broken, state={})
    topology = extract_static(pool)["t"]
    assert topology.unread == (Part.CHECKS, Part.SOURCE, Part.STATE, Part.TOOLS)
    assert topology.execution.phases == (Phase.LOOK_UP, Phase.DELETE)
    assert topology.reward.other == 1


def test_sets_hold_the_keys_that_checks_read_and_the_tools_that_touch_them():
    sets = task_sets(pool_of(check("    return final_state['boxes']['B1']['label'] == 'salt'")))[0]
    assert sets.state_keys == {"boxes"}
    assert sets.tools == {entry["function"]["name"] for entry in TOOLS}
    assert {"label", "salt", f"kind:{CheckKind.EQUALITY}"} <= sets.verifier_tokens


def test_all_tools_stand_in_where_no_key_can_be_told():
    sets = task_sets(pool_of(Check("", "?")))[0]
    assert sets.state_keys == frozenset()
    assert len(sets.tools) == len(TOOLS)


def test_every_real_task_gets_a_record(real_pool):
    topologies = extract_static(real_pool)
    assert list(topologies) == [task.key for task in real_pool.tasks]
    assert all(topology.reward.checks == len(real_pool.task(key).checks) for key, topology in topologies.items())
    assert len(task_sets(real_pool)) == len(real_pool) == 62


def test_a_pool_without_code_gets_records_from_its_words():
    topologies = extract_static(Pool.synthetic(3, 4, seed=2))
    assert all(topology.unread == (Part.CHECKS, Part.SOURCE, Part.STATE, Part.TOOLS) for topology in topologies.values())
    assert any(topology.execution.phases for topology in topologies.values())


@pytest.mark.slow
def test_2550_real_tasks_take_less_than_30_seconds(real_pool):
    """As many tasks and environments as EnvScaler's RL pool, each with code of its own, so that nothing is read from a cache."""
    used = [environment for environment in real_pool.environments if any(t.environment == environment.key for t in real_pool.tasks)]
    environments, tasks = [], []
    for m in range(51):
        original = used[m % len(used)]
        environments.append(replace(original, key=f"e{m}", source=f"{original.source}\n# {m}\n"))
        ordinary = [task for task in real_pool.tasks if task.environment == original.key and len(task.checks) < 100]
        for i in range(50):
            task = ordinary[i % len(ordinary)]
            checks = tuple(replace(check, source=f"{check.source}\n# {m} {i}\n") for check in task.checks)
            tasks.append(replace(task, key=f"e{m}-t{i}", environment=f"e{m}", checks=checks))
    pool = Pool(environments, tasks)
    start = time.process_time()
    assert len(extract_static(pool)) == 2550
    assert time.process_time() - start < 30


def test_several_processes_read_what_one_reads():
    pool = Pool.bundled()
    shares = {task.key: 0.5 for task in pool.tasks[::3]}
    alone, shared = extract_static(pool, shares), extract_static(pool, shares, processes=2)
    assert shared == alone
    assert list(shared) == [task.key for task in pool.tasks]
