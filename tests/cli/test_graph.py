import xml.etree.ElementTree as ElementTree

import pytest
import torch

from envsched.pool.opening import open_pool
from tests.cli.commands import run_command

POOL = "synthetic:4x6"


@pytest.fixture
def cached(tmp_path):
    return ("--pool", POOL, "--cache", tmp_path / "cache", "--set", "features.encoder=tfidf")


def test_build_prints_degrees_similarities_and_what_joins_environments(capsys, cached):
    status, out, _ = run_command(capsys, "graph", "build", *cached)
    assert status == 0
    assert "tasks   24 in 4 environments" in out
    assert "within  120 edges; degree 5 to 5" in out  # five others in each environment of six
    assert "cross   432 edges; degree 18 to 18" in out  # all eighteen of other environments
    assert "of 6 pairs of environments joined" in out


def test_exports_hold_every_edge(capsys, cached, tmp_path):
    files = {name: tmp_path / f"graph.{name}" for name in ("npz", "pt", "graphml")}
    arguments = ("--out", files["npz"], "--pyg", files["pt"], "--graphml", files["graphml"])
    status, _, _ = run_command(capsys, "graph", "build", *cached, *arguments)
    assert status == 0
    assert files["npz"].stat().st_size > 0
    data = torch.load(files["pt"], weights_only=False)
    space = "{http://graphml.graphdrawing.org/xmlns}"
    graph = ElementTree.parse(files["graphml"]).getroot().find(f"{space}graph")
    nodes = [node.get("id") for node in graph.iter(f"{space}node")]
    assert nodes == [task.key for task in open_pool(POOL).tasks]
    for relation in ("within", "cross"):
        edges = [
            (edge.get("source"), edge.get("target"), float(edge.findall(f"{space}data")[1].text))
            for edge in graph.iter(f"{space}edge")
            if edge.find(f"{space}data").text == relation
        ]
        stored = data["task", relation, "task"]
        rows = stored.edge_index.T.tolist()
        assert edges == [(nodes[s], nodes[t], w) for (s, t), w in zip(rows, stored.edge_weight.tolist(), strict=True)]


def test_show_gives_reasons_for_both_relations(capsys, tmp_path):
    task = open_pool("bundled").tasks[0].key
    arguments = ("--pool", "bundled", "--task", task, "--cache", tmp_path / "cache", "--set", "features.encoder=tfidf")
    status, out, _ = run_command(capsys, "graph", "show", *arguments)
    assert status == 0
    lines = out.splitlines()
    assert lines[0].startswith(f"{task}: ")
    within = [line for line in lines if line.startswith("within")]
    cross = [line for line in lines if line.startswith("cross")]
    assert (len(within), len(cross)) == (6, 32)
    assert all("tools (" in line and "state keys (" in line and "check words (" in line for line in within)
    assert all("steps" in line and "checks of" in line for line in cross)


def test_an_unknown_task_is_one_line(capsys, cached):
    status, _, err = run_command(capsys, "graph", "show", *cached, "--task", "none")
    assert status == 2
    assert "task 'none' is not in this pool" in err
