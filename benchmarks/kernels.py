"""One whole propagation over 18 neighbours by every backend at hand: what maintained sums save."""

import importlib.util
from argparse import Namespace

import numpy as np
import scipy.sparse
import torch
from torch_geometric import EdgeIndex
from torch_geometric.utils import scatter, segment

from benchmarks.measure import Figures, main, medians
from benchmarks.updates import measure_live
from benchmarks.worlds import offsets_of, random_lists
from envsched import ops
from envsched.predict import HistoryPropagation
from kernels import reference, torch_ops


def measure(arguments: Namespace) -> Figures:
    torch.set_num_threads(ops.num_threads())
    live = measure_live(arguments)  # before others have cut memory into small pages
    generator = np.random.default_rng(0)
    offsets = offsets_of(arguments.tasks, arguments.environments, generator)
    lists = random_lists(offsets, 6, 12, generator)
    row = np.concatenate([lists.within_row, lists.cross_row], axis=1)
    weight = np.concatenate([lists.within_weight, lists.cross_weight], axis=1)
    stats = generator.random((arguments.tasks, 2), dtype=np.float32)
    paths, results = _paths(row, weight, stats)
    block, copy = np.zeros(row.nbytes + weight.nbytes, np.uint8), np.zeros(row.nbytes + weight.nbytes, np.uint8)
    paths["copy of lists"] = lambda: np.copyto(copy, block)
    repeats = 3 if arguments.tasks > 100_000 else arguments.repeats
    seconds = medians(paths, repeats)["wall"]
    truth = reference.gather(row, weight, stats)
    figures: Figures = {"milliseconds": {}, "over_native": {}, "largest_error": {}}
    print(f"  {'backend':34} {'ms':>10} {'x native':>9} {'error':>9}")
    for name, value in sorted(seconds.items(), key=lambda item: item[1]):
        figures["milliseconds"][name] = 1e3 * value
        figures["over_native"][name] = value / seconds["native gather"]
        if name in results:
            figures["largest_error"][name] = float(np.abs(np.asarray(results[name]()) - truth).max())
        print(f"  {name:34} {1e3 * value:10.3f} {figures['over_native'][name]:9.2f} {figures['largest_error'].get(name, 0):9.1e}")
    figures["torch_scatter_installed"] = bool(importlib.util.find_spec("torch_scatter"))
    return figures | live | _dense(arguments, repeats)


def _dense(arguments: Namespace, repeats: int) -> Figures:
    """The two dense passes on tensors: by torch here, and where there is a GPU by torch and by Triton there."""
    generator = torch.Generator().manual_seed(0)
    num_tasks, sources = arguments.tasks, min(64, arguments.tasks)
    sums, parent = torch.rand(num_tasks, 4, generator=generator), torch.rand(num_tasks, generator=generator)
    vectors = torch.nn.functional.normalize(torch.rand(num_tasks, 128, generator=generator))
    environment = torch.arange(num_tasks, dtype=torch.int32) * arguments.environments // num_tasks
    source, change = torch.arange(sources, dtype=torch.int32) * (num_tasks // sources), torch.rand(sources, generator=generator)
    figures: Figures = {"dense_milliseconds": {}}
    for device in ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]:
        s, p, v, e, j, c = (x.to(device) for x in (sums, parent, vectors, environment, source, change))
        for module in dict.fromkeys((torch_ops, ops.tensor_ops(s))):
            name = f"{module.__name__.rpartition('.')[2]} {device}"
            passes = {
                f"score, {name}": lambda module=module, s=s, p=p: module.score(s, p, 0.5, 0.3, 2.0).sum().item(),
                f"score, residuals, {name}": lambda module=module, s=s, p=p: (
                    module.score_residual(s, p, 5.0, 0.5, 0.01, 0.2857).sum().item()
                ),
                f"stream, {name}": lambda module=module, s=s, v=v, e=e, j=j, c=c: (module.stream(v, e, j, c, c, s, 0.5), s[0, 3].item()),
            }
            for key, value in medians(passes, repeats)["wall"].items():
                figures["dense_milliseconds"][key] = 1e3 * value
                print(f"  {key:34} {1e3 * value:10.3f}")
    return figures


def _paths(row: np.ndarray, weight: np.ndarray, stats: np.ndarray):
    num_tasks = len(row)
    target, slot = np.nonzero(row >= 0)
    source = torch.from_numpy(row[target, slot].astype(np.int64))
    to = torch.from_numpy(target)
    w, x = torch.from_numpy(weight[target, slot]), torch.from_numpy(stats)
    edge_index = torch.stack([source, to])
    pointer = torch.from_numpy(np.concatenate([[0], np.cumsum(np.bincount(target, minlength=num_tasks))]))
    matrix = scipy.sparse.csr_matrix((w.numpy(), (target, source.numpy())), shape=(num_tasks, num_tasks))
    csr = torch.sparse_csr_tensor(pointer, source, w, size=(num_tasks, num_tasks))
    adjacency = EdgeIndex(torch.stack([to, source]), sparse_size=(num_tasks, num_tasks), sort_order="row")
    layer = HistoryPropagation()
    dense_row, dense_weight = torch.from_numpy(np.maximum(row, 0)).long(), torch.from_numpy(np.where(row >= 0, weight, 0))

    def messages() -> torch.Tensor:
        return w[:, None] * x[source]

    def index_add() -> torch.Tensor:
        return torch.zeros(num_tasks, 2).index_add_(0, to, messages())

    results = {
        "native gather": lambda: ops.gather(row, weight, stats),
        "PyG MessagePassing": lambda: layer.evidence(x[:, 0] / x[:, 1], x[:, 1], edge_index, w).T,
        "PyG EdgeIndex.matmul": lambda: adjacency.matmul(x, w),
        "PyG scatter": lambda: scatter(messages(), to, dim=0, dim_size=num_tasks),
        "PyG segment": lambda: segment(messages(), pointer),
        "torch.sparse CSR": lambda: csr @ x,
        "torch index_add_": index_add,
        "torch gather and sum": lambda: (dense_weight[:, :, None] * x[dense_row]).sum(1),
        "torch embedding_bag": lambda: torch.nn.functional.embedding_bag(dense_row, x, mode="sum", per_sample_weights=dense_weight),
        "scipy CSR": lambda: matrix @ stats,
    }
    if torch.cuda.is_available() and importlib.util.find_spec("triton"):
        from kernels import triton_ops

        on_gpu = [torch.from_numpy(values).cuda() for values in (row, weight, stats)]
        results["Triton gather (GPU, synchronised)"] = lambda: triton_ops.gather(*on_gpu).cpu()
    if importlib.util.find_spec("torch_scatter"):
        from torch_scatter import scatter_add, segment_csr

        results["torch_scatter scatter"] = lambda: scatter_add(messages(), to, dim=0, dim_size=num_tasks)
        results["torch_scatter segment_csr"] = lambda: segment_csr(messages(), pointer)
    return dict(results), results


if __name__ == "__main__":
    with torch.no_grad():
        main("benchmarks.kernels", measure, tasks=25_000, environments=500)
