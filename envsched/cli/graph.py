"""``envsched graph``: both relations of a pool, counted, explained, exported."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from envsched.cli.cache import DEFAULT_CACHE, cache_folder
from envsched.cli.outputs import new_folder_said
from envsched.wording import counted

PoolName = Annotated[str, typer.Option("--pool", help="A folder in EnvScaler's format, a JSONL file, bundled, or synthetic:MxT.")]
Topologies = Annotated[Path | None, typer.Option("--topologies", help="Topologies from an extractor; else from code alone.")]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="A YAML file of settings.")]
Settings = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="One setting; may be repeated.")]
Cache = Annotated[Path, typer.Option("--cache", envvar="ENVSCHED_CACHE", help="Folder that keeps text vectors by content.")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode=None)
    group.command("build", help=_BUILD_HELP, short_help="Build both relations; count, save, export them.")(build)
    group.command("show", help=_SHOW_HELP, short_help="List one task's neighbours with the reasons.")(show)
    app.add_typer(group, name="graph", short_help="Look at the neighbours that lend each other evidence.")


_HELP = """Look at the neighbours that lend each other evidence: within environments and across them.

Examples:

  envsched graph build --pool bundled --graphml graph.graphml

  envsched graph show --pool bundled --task TASK
"""

_BUILD_HELP = """Build both relations with every task observed, as late in a run, and print what they look like.

Examples:

  envsched graph build --pool data/envscaler --topologies topologies.jsonl --out graph.npz

  envsched graph build --pool bundled --pyg graph.pt --graphml graph.graphml

  envsched graph build --pool bundled --set num_cross=24 --set features.encoder=tfidf
"""

_SHOW_HELP = """List the neighbours of one task, each with the reasons: shared tools, state keys and check words, or alike topologies.

Examples:

  envsched graph show --pool bundled --task TASK
"""


def build(
    pool: PoolName,
    topologies: Topologies = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Save the graph (.npz), to be loaded with the features it was made of.", callback=new_folder_said),
    ] = None,
    pyg: Annotated[
        Path | None, typer.Option("--pyg", help="Save it as PyTorch Geometric's HeteroData (.pt).", callback=new_folder_said)
    ] = None,
    graphml: Annotated[Path | None, typer.Option("--graphml", help="Save it as GraphML.", callback=new_folder_said)] = None,
    config: ConfigFile = None,
    settings: Settings = None,
    cache: Cache = DEFAULT_CACHE,
) -> None:
    opened, graph, _ = _built(pool, topologies, config, settings, cache)
    for line in _described(opened, graph):
        print(line)
    if out is not None:
        graph.save(out)
    if pyg is not None or graphml is not None:
        from envsched.graph.export import write_graphml, write_hetero

        if pyg is not None:
            write_hetero(pyg, graph)
        if graphml is not None:
            write_graphml(graphml, graph, opened)
    for path in (out, pyg, graphml):
        if path is not None:
            print(f"written to {path}", file=sys.stderr)


def show(
    pool: PoolName,
    task: Annotated[str, typer.Option("--task", help="Whose neighbours.", metavar="KEY")],
    topologies: Topologies = None,
    config: ConfigFile = None,
    settings: Settings = None,
    cache: Cache = DEFAULT_CACHE,
) -> None:
    from envsched.graph.reasons import neighbours_of
    from envsched.topology import task_sets

    opened, graph, records = _built(pool, topologies, config, settings, cache)
    row = opened.row_of(task)
    print(f"{task}: {records[task].line()}")
    for neighbour in neighbours_of(graph, row, opened, task_sets(opened), records):
        key = opened.tasks[neighbour.row].key
        print(f"{neighbour.relation:6}  {neighbour.weight:.3f}  {key}: {'; '.join(neighbour.reasons) or 'the text of their prompts'}")


def _built(pool: str, topologies: Path | None, config: Path | None, settings: list[str] | None, cache: Path):
    import numpy as np

    from envsched.config import load_config
    from envsched.features import build_features
    from envsched.graph import ObservedGraph
    from envsched.pool.opening import open_pool
    from envsched.topology import extract_static, read_topologies

    resolved = load_config(config, settings or ())
    opened = open_pool(pool)
    records = extract_static(opened) if topologies is None else read_topologies(topologies, opened)
    features = build_features(opened, resolved.features, records, cache_folder(cache))
    config = resolved.scheduler.settled()
    graph = ObservedGraph(features, opened.environment_of, config.num_within, config.num_cross)
    graph.observe(np.arange(len(opened)))
    return opened, graph, records


def _described(pool, graph) -> list[str]:
    """Degree, similarity and cross-environment figures."""
    import numpy as np

    environments = counted(len(pool.environments), "environment")
    lines = [f"tasks   {len(pool)} in {environments}, every task observed; digest {graph.digest}"]
    for name, relation in (("within", graph.within), ("cross", graph.cross)):
        source, target = relation.edge_index.numpy()
        weight = relation.edge_weight.numpy()
        degree = np.bincount(target, minlength=len(pool))
        span = f"degree {degree.min()} to {degree.max()}, mean {degree.mean():.2f}"
        lines.append(f"{name:6}  {counted(len(weight), 'edge')}; {span}; {(degree == 0).sum()} alone")
        if len(weight):
            marks = ", ".join(f"{np.quantile(weight, q):.3f} ({q:.0%})" for q in (0, 0.25, 0.5, 0.75, 1))
            lends = np.bincount(source, minlength=len(pool))
            lines.append(f"        similarity {marks}; most asked: {pool.tasks[int(lends.argmax())].key} by {lends.max()} tasks")
    return lines + _across(pool, graph)


def _across(pool, graph) -> list[str]:
    import numpy as np

    source, target = graph.cross.edge_index.numpy()
    if not len(source):
        return ["        no edge between environments"]
    pairs = np.stack([pool.environment_of[source], pool.environment_of[target]])
    distinct = [len(np.unique(pairs[0, target == row])) for row in np.unique(target)]
    ends, counts = np.unique(np.sort(pairs, axis=0), axis=1, return_counts=True)
    most = sorted(zip(counts.tolist(), ends.T.tolist(), strict=True), reverse=True)[:3]
    shown = ", ".join(f"{pool.environments[a].key} - {pool.environments[b].key} ({count})" for count, (a, b) in most)
    possible = len(pool.environments) * (len(pool.environments) - 1) // 2
    return [
        f"across  {len(counts)} of {possible} pairs of environments joined; a task hears from {np.mean(distinct):.1f} other environments",
        f"        most joined: {shown}",
    ]
