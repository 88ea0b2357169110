"""What the reader of environments makes of the forms that tools are written in."""

import pytest

from envsched.pool import Pool
from envsched.topology.flow import Flow
from envsched.topology.schema import Phase
from envsched.topology.source import read_environment
from envsched.types import Environment

from .test_static import SHELF, shelf

HEAD = """
from typing import Dict, List, TypedDict

class BoxInfo(TypedDict):
    box_id: str
    owner_id: str
    label: str
    is_open: bool
    marks: List[str]

class OwnerInfo(TypedDict):
    owner_id: str
    name: str

class Shelf:
    def __init__(self, init_config):
        self.boxes: Dict[str, BoxInfo] = {}
        self.owners: Dict[str, OwnerInfo] = {}
        self.log: List[dict] = []
        self._counter = 0

    def _new_id(self):
        self._counter += 1
        return f"B{self._counter}"

    def _box(self, box_id):
        return self.boxes.get(box_id)

    def tool(self, box_id, label):
"""

FORMS = [
    # writes
    ("self.boxes[box_id] = {'box_id': box_id}", {("boxes", "create")}),
    ("new_id = self._new_id()\nself.boxes[new_id] = dict(box_id=new_id)", {("boxes", "create")}),
    (
        "if box_id not in self.boxes:\n    return {'success': False, 'error': '?'}\nself.boxes[box_id] = {'box_id': box_id}",
        {("boxes", "update")},
    ),
    ("self.boxes[box_id]['label'] = label", {("boxes", "update")}),
    ("box = self.boxes[box_id]\nbox['label'] = label", {("boxes", "update")}),
    ("box = self._box(box_id)\nbox['label'] = label", {("boxes", "update")}),
    ("box = self.boxes[box_id].copy()\nbox['label'] = label", set()),
    (
        "box = dict(self.boxes[box_id])\nbox['label'] = label\nif box_id not in self.boxes:\n    return {}\nself.boxes[box_id] = box",
        {("boxes", "update")},
    ),
    ("self.boxes[box_id].update({'label': label})", {("boxes", "update")}),
    ("self.boxes[box_id]['marks'].append(label)", {("boxes", "update")}),
    ("self.boxes[box_id]['marks'].remove(label)", {("boxes", "update")}),
    ("for box in self.boxes.values():\n    box['label'] = label", {("boxes", "update")}),
    ("for key, box in self.boxes.items():\n    if box['label'] == label:\n        box['is_open'] = True", {("boxes", "update")}),
    ("box = next((b for b in self.boxes.values() if b['label'] == label), None)\nbox['is_open'] = True", {("boxes", "update")}),
    ("[b for b in self.boxes.values() if b['label'] == label][0]['is_open'] = True", {("boxes", "update")}),
    ("del self.boxes[box_id]", {("boxes", "delete")}),
    ("self.boxes.pop(box_id, None)", {("boxes", "delete")}),
    ("for key in [k for k, b in self.boxes.items() if b['label'] == label]:\n    del self.boxes[key]", {("boxes", "delete")}),
    ("self.boxes = {k: b for k, b in self.boxes.items() if k != box_id}", {("boxes", "delete")}),
    ("kept = [entry for entry in self.log if entry['box_id'] != box_id]\nself.log = kept", {("log", "delete")}),
    ("self.log.append({'box_id': box_id})", {("log", "create")}),
    ("self.boxes[box_id]['label'] = label\nself.log.append({'box_id': box_id})", {("boxes", "update"), ("log", "create")}),
    ("if not hasattr(self, 'links'):\n    self.links = {}\nself.links[box_id] = label", {("links", "create")}),
    ("self.boxes[box_id]['weight'] += 1", {("boxes", "update")}),
    ("sorted_boxes = sorted(self.boxes.values(), key=lambda b: b['label'])\nsorted_boxes.append(1)", set()),
    ("box, owner = self.boxes[box_id], self.owners['o']\nowner['name'] = label", {("owners", "update")}),
]


def made_of(body: str):
    source = HEAD + "\n".join(f"        {line}" for line in body.split("\n"))
    tools = ({"type": "function", "function": {"name": "tool", "parameters": {"required": ["box_id", "label"]}}},)
    return read_environment(Environment("e", tools=tools, class_name="Shelf", source=source)).tools["tool"]


@pytest.mark.parametrize(("body", "effects"), FORMS)
def test_writes(body, effects):
    tool = made_of(f"{body}\nreturn {{'success': True, 'message': 'done'}}")
    assert {(key, kind.value) for key, kind in tool.effects} == effects
    assert tool.writes == {key for key, _ in effects}


READS = [
    ("return {'success': True, 'data': list(self.boxes.values())}", "look_up", {"boxes"}),
    ("return {'success': True, 'data': self.boxes[box_id]}", "look_up", {"boxes"}),
    ("return {'success': True, 'data': [b for b in self.boxes.values() if b['owner_id'] in self.owners]}", "look_up", {"boxes", "owners"}),
    ("return {'success': True, 'data': max(self.boxes.values(), key=lambda b: b['label'])}", "look_up", {"boxes"}),
    ("return {'success': True, 'data': box_id in self.boxes}", "validate", {"boxes"}),
    ("return {'success': True, 'data': self.boxes[box_id]['is_open']}", "validate", {"boxes"}),
    ("ok = any(b['label'] == label for b in self.boxes.values())\nreturn {'success': True, 'data': {'exists': ok}}", "validate", {"boxes"}),
    (
        "if box_id not in self.boxes:\n    return {'success': False, 'error': '?'}\nreturn {'success': True, 'message': 'fine'}",
        "validate",
        {"boxes"},
    ),
    ("return {'success': True, 'data': len(self.boxes)}", "aggregate", {"boxes"}),
    ("total = 0\nfor b in self.boxes.values():\n    total += b['weight']\nreturn {'success': True, 'data': total}", "aggregate", {"boxes"}),
    ("return {'success': True, 'data': sum(b['weight'] for b in self.boxes.values()) / len(self.boxes)}", "aggregate", {"boxes"}),
]


@pytest.mark.parametrize(("body", "kind", "reads"), READS)
def test_readings(body, kind, reads):
    tool = made_of(body)
    assert tool.kinds == {Phase(kind)}
    assert tool.reads == reads
    assert not tool.effects


def test_a_helper_that_calls_itself_ends():
    tool = made_of("return self.tool(box_id, label)")
    assert tool.is_read


def test_a_tool_without_a_method_and_a_class_without_code_are_unread():
    tools = ({"type": "function", "function": {"name": "absent", "parameters": {"required": True}}},)
    reading = read_environment(Environment("e", tools=tools, class_name="Shelf", source=SHELF))
    assert (reading.is_read, reading.tools["absent"].is_read) == (True, False)
    assert not read_environment(Environment("e", tools=tools, class_name="Other", source=SHELF)).is_read
    deep = "class Shelf:\n    def absent(self):\n        return " + "-" * 5000 + "1"
    assert read_environment(Environment("e", tools=tools, class_name="Shelf", source=deep)).tools["absent"].name == "absent"


def test_inherited_methods_are_tools():
    polish = "    def polish(self, box_id):\n        self.boxes[box_id]['label'] = 'shiny'\n        return {'success': True}\n"
    source = f"{SHELF}\nclass Better(Shelf):\n{polish}"
    reading = read_environment(Environment("e", tools=shelf().tools, class_name="Better", source=source))
    assert reading.tools["throw_away"].kinds == {Phase.DELETE}


def test_which_output_feeds_which_argument():
    flow = Flow(read_environment(shelf()))
    assert ("relabel", "box_id", "list_boxes") in flow.feeds()
    assert ("relabel", "box_id", "add_box") in flow.feeds()  # a new box's identifier is shown
    assert not any(parameter == "label" for _, parameter, _ in flow.feeds())
    assert flow.steps == {"boxes": 1}
    assert flow.depth({"boxes"}, ()) == 2
    assert flow.depth((), ()) == 1


def test_all_real_environments_are_read(real_pool: Pool):
    readings = [read_environment(environment) for environment in real_pool.environments]
    assert len(readings) == 44
    assert all(reading.is_read for reading in readings)
    tools = [tool for reading in readings for tool in reading.tools.values()]
    assert len(tools) == 850
    assert all(tool.is_read and tool.kinds for tool in tools)


def test_fields_of_an_answers_own_making_are_shown():
    assert {"box_id", "label"} <= made_of(
        "found = [{'box_id': k, **b} for k, b in self.boxes.items()]\nreturn {'success': True, 'data': found}"
    ).yields
    body = "found = []\nfor k in self.boxes:\n    found.append({'key': k})\nreturn {'success': True, 'data': found}"
    assert "key" in made_of(body).yields
    assert not {"success", "data", "message"} & made_of(body).yields
