"""``envsched select``: one batch from a pool and a history file, for any trainer in any language."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from envsched.cli.cache import DEFAULT_CACHE, cache_folder
from envsched.cli.outputs import new_folder_said
from envsched.errors import ConfigError, RecordError, UnknownTaskError
from envsched.wording import counted


def register(app: typer.Typer) -> None:
    app.command("select", help=_HELP)(select)


_HELP = """Choose the batch of one step and write its manifest.

The history file has one JSON object a line with task, step and rewards (and, if known, status, policy_version, tokens,
seconds, trace). Only lines of earlier steps count, so one growing file serves all steps, and one process per step gives the
batches that one long process gives.

Examples:

  envsched select --pool data/envscaler --step 0 --batch-size 16 --out manifest.json

  envsched select --pool data/envscaler --history rollouts.jsonl --step 5 --batch-size 16 --out manifest.json

  envsched select --pool bundled --history rollouts.jsonl --step 5 --set half_life=24 --set coverage_share=0.25 --out -

  envsched select --pool data/now --previous-pool data/before@40 --findings findings.json --selected manifest_41.json
  --history rollouts.jsonl --step 42 --out manifest_42.json
"""


def select(
    pool: Annotated[str, typer.Option("--pool", help="A folder in EnvScaler's format, a .jsonl file, bundled, or synthetic:MxT.")],
    step: Annotated[int, typer.Option("--step", min=0, help="The step to choose for.")],
    out: Annotated[str, typer.Option("--out", help="Where the manifest goes; - is standard output.", callback=new_folder_said)],
    history: Annotated[Path | None, typer.Option("--history", help="Rollout records, one JSON object a line; none at step 0.")] = None,
    batch_size: Annotated[int | None, typer.Option("--batch-size", help="Tasks per step; overrides the config.")] = None,
    config: Annotated[Path | None, typer.Option("--config", help="A YAML file of settings.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="One setting; may be repeated.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Of the run, the same for all its steps; else the config's.")] = None,
    topologies: Annotated[Path | None, typer.Option("--topologies", help="Topologies from an extractor; else from code alone.")] = None,
    findings: Annotated[Path | None, typer.Option("--findings", help="What pool check --json wrote; else the config's.")] = None,
    previous_pool: Annotated[
        list[str] | None, typer.Option("--previous-pool", metavar="POOL@STEP", help="A pool of this run until STEP; may be repeated.")
    ] = None,
    selected: Annotated[
        list[Path] | None,
        typer.Option("--selected", metavar="MANIFEST", help="Of a batch whose records may still be out; may be repeated."),
    ] = None,
    scheduler: Annotated[str | None, typer.Option("--scheduler", help="Which scheduler chooses; else the config's.")] = None,
    cache: Annotated[
        Path, typer.Option("--cache", envvar="ENVSCHED_CACHE", help="Folder that keeps text vectors by content.")
    ] = DEFAULT_CACHE,
) -> None:
    from envsched.audit.manifest import make_manifest, manifest_to_mapping, write_manifest
    from envsched.baselines import build_scheduler, scheduler_entry
    from envsched.config import load_config
    from envsched.files import canonical_json
    from envsched.filters import Findings
    from envsched.pool.opening import open_pool
    from envsched.select import refuse_small_pool

    _refuse_overwriting(out, history=history, config=config, topologies=topologies, pool=pool, findings=findings)
    overrides = [*(settings or ()), *(() if batch_size is None else (f"batch_size={batch_size}",))]
    resolved = load_config(config, overrides)
    opened = open_pool(pool)
    refuse_small_pool(len(opened), resolved.scheduler.batch_size)  # before features take their time
    name = resolved.train.scheduler if scheduler is None else scheduler
    if selected:
        _refuse_without_leases(name, resolved.scheduler.lease_steps)
    features = _features(opened, resolved, topologies, cache) if scheduler_entry(name).uses_features else None
    report = findings or (Path(resolved.train.findings) if resolved.train.findings else None)
    found = None if report is None else Findings.read(report, opened)
    chooser = build_scheduler(name, opened, resolved.scheduler, resolved.train.seed if seed is None else seed, features, found)
    _observe(chooser, history, step, previous_pool or (), selected or ())
    batch = chooser.select(step)
    manifest = make_manifest(batch, chooser)
    if out == "-":
        print(canonical_json(manifest_to_mapping(manifest)))
    else:
        write_manifest(out, manifest)
    for relaxation in batch.relaxed:
        _say(f"relaxed {relaxation.quota}: {relaxation.reason}")
    environments = counted(len({pick.environment for pick in batch.picks}), "environment")
    _say(f"step {step}: {counted(len(batch.picks), 'task')} in {environments}" + ("" if out == "-" else f", written to {out}"))


def _refuse_overwriting(out: str, **inputs: str | Path | None) -> None:
    for name, path in inputs.items():
        if path is not None and out != "-" and Path(path).is_file() and Path(out).exists() and Path(out).samefile(path):
            raise ConfigError(f"--out {out} is the file of --{name}, which would be lost; give the manifest a name of its own")


def _refuse_without_leases(name: str, lease_steps: int) -> None:
    from envsched.baselines import scheduler_entry

    if not scheduler_entry(name).uses_features:
        raise ConfigError(f"scheduler {name!r} keeps no leases, so --selected would change nothing; leave it out")
    if lease_steps == 0:
        raise ConfigError("lease_steps is 0, so --selected would change nothing; leave it out, or set lease_steps")


def _observe(chooser, history: Path | None, step: int, previous_pools: Sequence[str], selected: Sequence[Path]) -> None:
    from envsched.cli.past import load_past

    records = _records(history, step)
    try:
        load_past(chooser, records, previous_pools, selected, step)
    except (RecordError, UnknownTaskError) as error:
        raise type(error)(
            f"history file {history}: {error}; mend or remove its line, or name the pool it was made with: --previous-pool"
        ) from None
    if step > 0 and not any(record.step < step for record in records):
        _say(f"warning: {history} has no record of a step before {step}: chosen as at the start of a run")


def _records(history: Path | None, step: int):
    from envsched.history import read_records

    if history is None:
        if step > 0:
            raise ConfigError(f"--step {step} needs --history FILE with the rollouts of earlier steps; only step 0 has none")
        return []
    records, problems = read_records(history)
    for problem in problems:
        _say(f"warning: {problem}")
    return records


def _features(pool, config, topologies: Path | None, cache: Path):
    from envsched.features import build_features
    from envsched.topology import read_topologies

    given = None if topologies is None else read_topologies(topologies, pool)
    return build_features(pool, config.features, given, cache_folder(cache))


def _say(text: str) -> None:
    print(text, file=sys.stderr)
