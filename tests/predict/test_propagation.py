import subprocess
import sys

import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric.data import HeteroData
from torch_geometric.nn import HeteroConv

from envsched.predict import HistoryPropagation

N = 7  # the last node is isolated


def example(dtype=torch.float64, num_features: int | None = None):
    generator = torch.Generator().manual_seed(3)
    edge_index = torch.tensor([[0, 1, 2, 3, 0, 5, 4], [1, 0, 1, 1, 4, 3, 5]])
    shape = (N,) if num_features is None else (N, num_features)
    x = torch.rand(shape, generator=generator, dtype=dtype)
    mass = 4 * torch.rand(N, generator=generator, dtype=dtype)
    edge_weight = torch.rand(edge_index.size(1), generator=generator, dtype=dtype)
    return x, mass, edge_index, edge_weight


def brute_force(x, mass, edge_index, edge_weight, shrinkage, parent):
    prior, total = [], []
    for i in range(N):
        sources = [(int(j), float(s)) for (j, target), s in zip(edge_index.t(), edge_weight, strict=True) if target == i]
        m = sum(s * float(mass[j]) for j, s in sources)
        prior.append((sum(s * float(mass[j]) * float(x[j]) for j, s in sources) + shrinkage * parent[i]) / (m + shrinkage))
        total.append(m)
    return prior, total


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("wrap", [torch.as_tensor, lambda e: EdgeIndex(e, sparse_size=(N, N))])
def test_equals_brute_force(dtype, wrap):
    x, mass, edge_index, edge_weight = example(dtype)
    parent = torch.linspace(0.1, 0.7, N, dtype=dtype)
    prior, total = HistoryPropagation(shrinkage=1.5)(x, mass, wrap(edge_index), edge_weight, parent)
    expected_prior, expected_total = brute_force(x, mass, edge_index, edge_weight, 1.5, parent.tolist())
    assert prior.dtype == total.dtype == dtype
    torch.testing.assert_close(prior, torch.tensor(expected_prior, dtype=dtype))
    torch.testing.assert_close(total, torch.tensor(expected_total, dtype=dtype))


@pytest.mark.parametrize("sort_order", ["row", "col"])
def test_a_sorted_edge_index_gives_the_same(sort_order):
    x, mass, edge_index, edge_weight = example()
    order = torch.argsort(edge_index[0 if sort_order == "row" else 1], stable=True)
    sorted_index = EdgeIndex(edge_index[:, order], sparse_size=(N, N), sort_order=sort_order).validate()
    layer = HistoryPropagation()
    torch.testing.assert_close(layer(x, mass, sorted_index, edge_weight[order]), layer(x, mass, edge_index, edge_weight))


def test_edge_weights_default_to_one_and_take_the_dtype_of_the_estimates():
    x, mass, edge_index, _ = example(torch.float32)
    layer = HistoryPropagation()
    ones = torch.ones(edge_index.size(1), dtype=torch.float64)
    found = layer(x, mass, edge_index, ones)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, layer(x, mass, edge_index))


def test_counts_may_be_integers():
    x, _, edge_index, edge_weight = example()
    counts = torch.arange(N)
    layer = HistoryPropagation()
    torch.testing.assert_close(layer(x, counts, edge_index, edge_weight), layer(x, counts.double(), edge_index, edge_weight))


def test_an_isolated_node_gets_its_parent():
    x, mass, edge_index, edge_weight = example()
    prior, total = HistoryPropagation()(x, mass, edge_index, edge_weight, parent=0.25)
    assert prior.shape == total.shape == (N,)
    assert (prior[-1], total[-1]) == (0.25, 0)
    prior, total = HistoryPropagation()(x, mass, torch.empty(2, 0, dtype=torch.int64), parent=0.25)
    assert prior.tolist() == [0.25] * N
    assert total.tolist() == [0.0] * N


def test_channels_are_independent():
    x, mass, edge_index, edge_weight = example(num_features=3)
    parent = torch.linspace(0, 1, N, dtype=torch.float64)
    layer = HistoryPropagation()
    prior, total = layer(x, mass, edge_index, edge_weight, parent)
    assert prior.shape == total.shape == (N, 3)
    for f in range(3):
        single = layer(x[:, f], mass, edge_index, edge_weight, parent)
        torch.testing.assert_close(torch.stack([prior[:, f], total[:, f]]), single)


def test_gradients():
    x, mass, edge_index, edge_weight = example()
    parent = torch.full((N,), 0.2, dtype=torch.float64)
    inputs = [t.requires_grad_() for t in (x, mass, edge_weight, parent)]
    layer = HistoryPropagation()
    assert torch.autograd.gradcheck(lambda x, n, s, a: layer(x, n, edge_index, s, a), inputs)


def test_both_relations_through_hetero_conv():
    x, mass, within, within_weight = example()
    cross = within.flip(0).roll(1, 1)
    graph = HeteroData()
    graph["task"].x, graph["task"].mass = x, mass
    graph["task", "within", "task"].edge_index, graph["task", "within", "task"].edge_weight = within, within_weight
    graph["task", "cross", "task"].edge_index, graph["task", "cross", "task"].edge_weight = cross, within_weight**2
    parents = {relation: torch.full((N,), value, dtype=torch.float64) for relation, value in zip(graph.edge_types, (0.1, 0.3), strict=True)}

    layers = HeteroConv({relation: HistoryPropagation(shrinkage=2.0) for relation in graph.edge_types}, aggr=None)
    prior, total = layers(
        graph.collect("x"), graph.collect("mass"), graph.edge_index_dict, edge_weight_dict=graph.collect("edge_weight"), parent_dict=parents
    )["task"]

    assert prior.shape == total.shape == (2, N)
    layer = HistoryPropagation(shrinkage=2.0)
    torch.testing.assert_close(torch.stack([prior[0], total[0]]), layer(x, mass, within, within_weight, 0.1))
    torch.testing.assert_close(torch.stack([prior[1], total[1]]), layer(x, mass, cross, within_weight**2, 0.3))


def test_moves_saves_and_prints_like_a_module():
    layer = HistoryPropagation(shrinkage=3.0)
    assert str(layer) == "HistoryPropagation(shrinkage=3.0)"
    assert list(layer.parameters()) == []
    assert layer.double().shrinkage == 3.0


@pytest.mark.parametrize("shrinkage", [0.0, -1.0, float("nan")])
def test_shrinkage_must_be_positive(shrinkage):
    with pytest.raises(ValueError, match="'shrinkage' must be positive"):
        HistoryPropagation(shrinkage)


def test_the_layer_loads_nothing_else_of_envsched():
    code = (
        "import sys; from envsched.predict import HistoryPropagation; "
        "print(*sorted(name for name in sys.modules if name.startswith('envsched')), 'pydantic' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert out == ["envsched", "envsched.predict", "envsched.predict.propagation", "False"]
