"""Schema, canonical form, similarity, files."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.errors import StateError
from envsched.pool import Pool
from envsched.topology import (
    TOPOLOGY_DIM,
    Execution,
    Phase,
    Reward,
    Topology,
    read_topologies,
    similarity,
    topology_matrix,
    topology_vector,
    write_topologies,
)
from envsched.topology.schema import CheckKind

numbers = st.integers(0, 300)


@st.composite
def topologies(draw) -> Topology:
    phases = draw(st.lists(st.sampled_from(list(Phase)), max_size=12))
    kinds = {kind.value: draw(numbers) for kind in CheckKind}
    checks = sum(kinds.values())
    return Topology(
        execution=Execution(
            phases=tuple(phase for i, phase in enumerate(phases) if i == 0 or phases[i - 1] != phase),
            reads=draw(numbers),
            writes=draw(numbers),
            depth=draw(numbers),
            entities=draw(numbers),
            discovery=draw(st.sampled_from(["none", "some", "all"])),
        ),
        reward=Reward(
            **kinds,
            negative=draw(st.integers(0, checks)),
            initial=draw(st.integers(0, checks)),
            true_at_start=draw(st.none() | st.floats(0, 1)),
            grading=draw(st.sampled_from(["all_or_nothing", "partial"])),
        ),
    )


def record(**changes) -> dict:
    """A valid record as JSON, with changes at dotted places."""
    base = {
        "version": 1,
        "execution": {"phases": ["look_up", "update"], "reads": 1, "writes": 1, "depth": 2, "entities": 1, "discovery": "all"},
        "reward": {**dict.fromkeys(CheckKind, 0), "equality": 2, "negative": 0, "initial": 0, "true_at_start": None, "grading": "partial"},
        "source": "static",
        "unread": [],
    }
    for place, value in changes.items():
        section, _, name = place.partition("__")
        if name:
            base[section][name] = value
        else:
            base[section] = value
    return base


@settings(deadline=None)
@given(topologies())
def test_canonical_form_reads_back_to_the_same_bytes(topology):
    again = Topology.model_validate_json(topology.canonical())
    assert again == topology
    assert again.canonical() == topology.canonical()


@settings(deadline=None)
@given(topologies(), topologies())
def test_equal_records_and_equal_bytes_are_the_same_thing(a, b):
    assert (a == b) == (a.canonical() == b.canonical())


@settings(max_examples=200, deadline=None)
@given(topologies(), topologies())
def test_vectors_are_unit_and_similarity_is_in_range_and_symmetric(a, b):
    va, vb = topology_vector(a), topology_vector(b)
    assert va.shape == (TOPOLOGY_DIM,)
    assert va.dtype == np.float32
    assert abs(float(np.linalg.norm(va)) - 1) < 1e-6
    assert -1e-6 <= float(va @ vb) <= 1 + 1e-6
    assert similarity(a, b) == pytest.approx(similarity(b, a))
    assert similarity(a, a) == pytest.approx(1, abs=1e-6)


def test_dimension_is_at_most_128():
    assert TOPOLOGY_DIM <= 128
    assert topology_matrix([]).shape == (0, TOPOLOGY_DIM)


def test_similarity_is_the_weighted_mean_of_the_documented_blocks():
    a = Topology.model_validate_json(json.dumps(record()))
    b = Topology.model_validate_json(json.dumps(record(execution__discovery="none")))
    c = Topology.model_validate_json(json.dumps(record(reward__equality=0, reward__presence=2)))
    d = Topology.model_validate_json(json.dumps(record(execution__writes=3)))  # place 2 of the ruler, from place 1
    assert similarity(a, b) == pytest.approx(1 - 0.04, abs=1e-6)
    assert similarity(a, c) == pytest.approx(1 - 0.16, abs=1e-6)
    assert similarity(a, d) == pytest.approx(1 - 0.08, abs=1e-6)


def test_alike_tasks_are_nearer_than_unlike_ones():
    base = Topology.model_validate_json(json.dumps(record()))
    near = Topology.model_validate_json(json.dumps(record(execution__reads=2, reward__equality=3)))
    far = Topology.model_validate_json(json.dumps(record(execution__phases=["create"], execution__writes=20, reward__absence=9)))
    assert similarity(base, near) > similarity(base, far)


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2},
        {"execution__phases": ["fly"]},
        {"execution__phases": ["update", "update"]},
        {"execution__phases": ["update", "create"] * 20},
        {"execution__reads": -1},
        {"execution__reads": 1.5},
        {"execution__reads": "1"},
        {"execution__discovery": "maybe"},
        {"execution__flights": 3},
        {"reward__negative": 3},
        {"reward__true_at_start": 1.2},
        {"source": "guess"},
        {"unread": ["tools", "checks"]},
    ],
)
def test_a_record_that_does_not_fit_is_refused_and_named(changes, tmp_path):
    path = tmp_path / "topologies.jsonl"
    path.write_text(json.dumps({"task": "t", "topology": record(**changes)}) + "\n")
    with pytest.raises(StateError, match=r"line 1.*'t'"):
        read_topologies(path)


def test_line_names_phases_and_checks_in_one_line():
    line = Topology.model_validate_json(json.dumps(record())).line()
    assert "look_up > update" in line
    assert "2 checks (2 equality" in line
    assert "\n" not in line


def test_files_hold_a_line_a_task_in_the_order_given(tmp_path):
    pool = Pool.synthetic(2, 3, seed=1)
    one = Topology.model_validate_json(json.dumps(record()))
    written = {task.key: one for task in pool.tasks}
    path = tmp_path / "topologies.jsonl"
    write_topologies(path, written)
    assert [json.loads(line)["task"] for line in path.read_text().splitlines()] == [task.key for task in pool.tasks]
    assert read_topologies(path, pool) == written


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{\n", "line 1: invalid JSON"),
        ('{"task": 3, "topology": {}}\n', "expected"),
        ('["t"]\n', "expected"),
    ],
)
def test_a_line_that_is_no_record_is_named(text, words, tmp_path):
    path = tmp_path / "topologies.jsonl"
    path.write_text(text)
    with pytest.raises(StateError, match=words):
        read_topologies(path)


def test_a_task_twice_a_missing_and_an_unknown_task_and_a_missing_file_are_refused(tmp_path):
    pool = Pool.synthetic(1, 2)
    path = tmp_path / "topologies.jsonl"
    line = json.dumps({"task": pool.tasks[0].key, "topology": record()}) + "\n"
    path.write_text(line * 2)
    with pytest.raises(StateError, match=r"line 2.*occurs twice"):
        read_topologies(path)
    path.write_text(line + json.dumps({"task": "stranger", "topology": record()}) + "\n")
    with pytest.raises(StateError, match=r"1 missing .*1 unknown .*'stranger'"):
        read_topologies(path, pool)
    with pytest.raises(StateError, match="No such file"):
        read_topologies(tmp_path / "absent.jsonl")
