"""Lists against brute force in rational arithmetic, and both builders against each other."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.nn import SimpleConv

from envsched.errors import StateError
from envsched.features import Features
from envsched.graph import ObservedGraph
from tests.graph.worlds import assert_same_graph, brute_force_lists, edges_of, exact_similarity, make_world

SIZES = [7, 1, 0, 12, 3, 20, 1, 2]


def rebuilt(graph):
    other = ObservedGraph(graph.features, graph.environment_of, graph.num_within, graph.num_cross)
    other.observe(graph.observed)
    other.rebuild()
    return other


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6), archetypes=st.sampled_from([None, 1, 3]), slots=st.sampled_from([(6, 12), (1, 2), (0, 3), (3, 0), (50, 99)])
)
def test_both_builders_equal_brute_force(seed, archetypes, slots):
    features, environment_of = make_world(SIZES, seed, num_archetypes=archetypes)
    generator = np.random.default_rng(seed)
    observed = generator.permutation(environment_of.size)[: generator.integers(0, environment_of.size + 1)]
    graph = ObservedGraph(features, environment_of, *slots)
    for rows in np.array_split(observed, 4):
        graph.observe(rows)
    truth = brute_force_lists(features, environment_of, observed.tolist(), *slots)
    for built in (graph, rebuilt(graph)):
        assert edges_of(built.within) == truth["within"]
        assert edges_of(built.cross) == truth["cross"]


def test_incremental_equals_from_scratch_over_200_steps():
    features, environment_of = make_world([50] * 51, num_archetypes=300, within_features=64, cross_features=48)
    graph = ObservedGraph(features, environment_of)
    generator = np.random.default_rng(1)
    for step in range(200):
        graph.observe(generator.integers(environment_of.size, size=64))
        if step < 5 or step % 15 == 0 or step == 199:
            assert_same_graph(graph, rebuilt(graph))
    assert graph.observed.size > 2500


def test_order_and_grouping_of_observations_leave_no_trace():
    features, environment_of = make_world(SIZES, 3, num_archetypes=2)
    rows = np.random.default_rng(0).permutation(environment_of.size)[:30]
    one_by_one, at_once = ObservedGraph(features, environment_of), ObservedGraph(features, environment_of)
    for row in rows:
        one_by_one.observe([row])
        one_by_one.observe([row, row])
    at_once.observe(rows[::-1])
    assert_same_graph(one_by_one, at_once)
    assert one_by_one.observed.tolist() == sorted(rows.tolist())


def test_duplicate_vectors_tie_by_row():
    features, environment_of = make_world([40, 40], num_archetypes=1)
    features = Features(np.repeat(features.within[:1], 80, axis=0), features.cross)
    graph = ObservedGraph(features, environment_of, 6, 12)
    graph.observe(np.arange(79, -1, -1))
    assert_same_graph(graph, rebuilt(graph))
    source, target = graph.cross.edge_index
    assert source[target == 0].tolist() == list(range(40, 52))
    assert source[target == 79].tolist() == list(range(12))
    source, target = graph.within.edge_index
    assert source[target == 3].tolist() == [0, 1, 2, 4, 5, 6]


def test_orthogonal_and_opposite_tasks_are_isolated():
    within = np.eye(4)
    cross = np.array([[1.0, 0], [0, 1.0], [-1.0, 0], [0, 0]])
    graph = ObservedGraph(Features(within, cross), np.array([0, 1, 2, 3]))
    graph.observe([0, 1, 2, 3])
    assert graph.within.edge_index.shape == (2, 0)
    assert graph.cross.edge_index.shape == (2, 0)
    assert_same_graph(graph, rebuilt(graph))


def test_fewer_tasks_than_slots_and_a_lone_task():
    features, environment_of = make_world([1, 2], 5)
    graph = ObservedGraph(features, environment_of, 6, 12)
    assert graph.within.edge_weight.numel() == 0
    graph.observe([1])
    assert_same_graph(graph, rebuilt(graph))
    assert [edge[:2] for edge in edges_of(graph.within)] == [(1, 2)]
    assert all(source == 1 and target == 0 for source, target, _ in edges_of(graph.cross))


def test_reset_forgets():
    features, environment_of = make_world(SIZES)
    graph = ObservedGraph(features, environment_of)
    graph.observe([0, 9, 11])
    graph.reset()
    assert graph.observed.size == 0
    assert graph.cross.edge_weight.numel() == 0


def test_similarity_is_exact_and_picks_the_relation():
    features, environment_of = make_world([3, 4])
    graph = ObservedGraph(features, environment_of)
    rows_a, rows_b = [0, 2, 5], [1, 5, 6, 0]
    got = graph.similarity(rows_a, rows_b)
    for i, a in enumerate(rows_a):
        for j, b in enumerate(rows_b):
            vectors = features.within if environment_of[a] == environment_of[b] else features.cross
            assert got[i, j] == float(exact_similarity(vectors[a], vectors[b]))


def test_pyg_views():
    features, environment_of = make_world(SIZES)
    graph = ObservedGraph(features, environment_of)
    graph.observe(range(0, 46, 2))
    data = graph.to_hetero()
    assert data.validate()
    assert set(data.edge_types) == {("task", "within", "task"), ("task", "cross", "task")}
    assert data["task"].observed.nonzero().flatten().tolist() == list(range(0, 46, 2))
    edge_index = graph.cross.to_edge_index().validate()
    assert edge_index.is_sorted_by_col
    x = torch.rand(len(features), 3, dtype=torch.float64)
    conv = SimpleConv(aggr="sum")
    expected = torch.zeros_like(x).index_add_(0, graph.cross.edge_index[1], x[graph.cross.edge_index[0]] * graph.cross.edge_weight[:, None])
    torch.testing.assert_close(conv(x, graph.cross.edge_index, graph.cross.edge_weight), expected)


def test_save_and_load(tmp_path):
    features, environment_of = make_world(SIZES)
    graph = ObservedGraph(features, environment_of)
    graph.observe([3, 8, 30])
    graph.save(tmp_path / "graph.npz")
    loaded = ObservedGraph.load(tmp_path / "graph.npz", features, environment_of)
    assert_same_graph(loaded, graph)
    for one in (graph, loaded):
        one.observe([4, 9])
    assert_same_graph(loaded, graph)


def test_stale_and_damaged_files_are_refused_by_name(tmp_path):
    features, environment_of = make_world(SIZES)
    path = tmp_path / "graph.npz"
    graph = ObservedGraph(features, environment_of)
    graph.observe([3, 8, 30])
    graph.save(path)
    other, _ = make_world(SIZES, seed=1)
    with pytest.raises(StateError, match=r"graph\.npz is stale: its features"):
        ObservedGraph.load(path, other, environment_of)
    with pytest.raises(StateError, match=r"stale: its num_within is 6, here it is 5"):
        ObservedGraph.load(path, features, environment_of, num_within=5)
    with pytest.raises(StateError, match="no such file"):
        ObservedGraph.load(tmp_path / "absent.npz", features, environment_of)
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(StateError, match=r"graph\.npz: not a whole"):
        ObservedGraph.load(path, features, environment_of)


@pytest.mark.parametrize("sizes", [[*SIZES[:-1], SIZES[-1] + 1], [*SIZES[:-1], SIZES[-1] - 1]], ids=["added", "removed"])
def test_a_graph_saved_before_a_task_was_added_or_removed_is_stale(tmp_path, sizes):
    before, environment_before = make_world(SIZES)
    graph = ObservedGraph(before, environment_before)
    graph.observe([3, 8, 30])
    graph.save(tmp_path / "graph.npz")
    with pytest.raises(StateError, match=r"graph\.npz is stale: its features .* build the graph again"):
        ObservedGraph.load(tmp_path / "graph.npz", *make_world(sizes))


def test_digest_follows_features_and_slots():
    features, environment_of = make_world(SIZES)
    other, _ = make_world(SIZES, seed=1)
    digests = {
        ObservedGraph(features, environment_of).digest,
        ObservedGraph(other, environment_of).digest,
        ObservedGraph(features, environment_of, 5, 12).digest,
        ObservedGraph(features, environment_of, 6, 11).digest,
    }
    assert len(digests) == 4
