"""The graph for other programs: GraphML for anything that draws graphs, a saved ``HeteroData`` for PyTorch Geometric."""

import io
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import torch

from envsched.files import write_atomically
from envsched.graph.observed import ObservedGraph
from envsched.pool import Pool

_KEYS = (
    ("environment", "node", "string"),
    ("observed", "node", "boolean"),
    ("relation", "edge", "string"),
    ("weight", "edge", "double"),
)


def write_graphml(path: Path | str, graph: ObservedGraph, pool: Pool) -> None:
    """Tasks as nodes (by key), edges from source to target with ``relation`` and ``weight``; whole or not at all."""
    observed = set(graph.observed.tolist())
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">']
    lines += [f'<key id="{name}" for="{kind}" attr.name="{name}" attr.type="{type_}"/>' for name, kind, type_ in _KEYS]
    lines.append('<graph id="tasks" edgedefault="directed">')
    for row, task in enumerate(pool.tasks):
        values = _data("environment", task.environment) + _data("observed", str(row in observed).lower())
        lines.append(f"<node id={quoteattr(task.key)}>{values}</node>")
    for name, relation in (("within", graph.within), ("cross", graph.cross)):
        for (source, target), weight in zip(relation.edge_index.T.tolist(), relation.edge_weight.tolist(), strict=True):
            ends = f"source={quoteattr(pool.tasks[source].key)} target={quoteattr(pool.tasks[target].key)}"
            lines.append(f"<edge {ends}>{_data('relation', name)}{_data('weight', repr(weight))}</edge>")
    lines += ["</graph>", "</graphml>", ""]
    write_atomically(path, "\n".join(lines))


def write_hetero(path: Path | str, graph: ObservedGraph) -> None:
    """``torch.save`` of ``graph.to_hetero()``, whole or not at all; read it with ``torch.load(path, weights_only=False)``."""
    buffer = io.BytesIO()
    torch.save(graph.to_hetero(), buffer)
    write_atomically(path, buffer.getvalue())


def _data(key: str, value: str) -> str:
    return f'<data key="{key}">{escape(value)}</data>'
