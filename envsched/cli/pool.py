"""``envsched pool``: what a pool holds, and pools from other formats."""

import difflib
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from envsched.cli.outputs import new_folder_said
from envsched.cli.pool_check import CHECK_HELP, check_pool
from envsched.errors import ConfigError, UnknownTaskError
from envsched.wording import counted

PoolName = Annotated[str, typer.Argument(help="A folder in EnvScaler's format, a JSONL file, bundled, or synthetic:MxT.", metavar="POOL")]


class Format(StrEnum):
    """Formats that ``pool import`` reads."""

    ENVSCALER = "envscaler"
    JSONL = "jsonl"
    BFCL = "bfcl"
    TAU_BENCH = "tau-bench"


def register(app: typer.Typer) -> None:
    group = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode=None)
    group.command("stats", help=_STATS_HELP)(stats)
    group.command("show", help=_SHOW_HELP)(show)
    group.command("import", help=_IMPORT_HELP, short_help="Write a pool as JSON lines from another format.")(import_pool)
    group.command("check", help=CHECK_HELP, short_help="Run every environment and check once; say what is wrong.")(check_pool)
    app.add_typer(group, name="pool", short_help="Look at a pool, check it, make one from another format.")


_HELP = """Look at a pool of tasks, or make one from another format.

Examples:

  envsched pool stats bundled

  envsched pool show data/envscaler --task TASK

  envsched pool import bfcl multi_turn_base.json --out pool.jsonl

  envsched pool check data/envscaler --json findings.json
"""

_STATS_HELP = """Count what a pool holds: environments, tasks, tools, checks.

Examples:

  envsched pool stats bundled

  envsched pool stats data/envscaler --environments
"""

_SHOW_HELP = """List the tasks of a pool, or show one with its checks.

Examples:

  envsched pool show bundled

  envsched pool show data/envscaler --task TASK
"""

_IMPORT_HELP = """Write a pool as JSON lines from another format; nothing in it is run. Such a pool can be scheduled without a runtime.

Examples:

  envsched pool import bfcl multi_turn_base.json --answers possible_answer.json --tools multi_turn_func_doc --out bfcl.jsonl

  envsched pool import tau-bench tasks_test.py --environment airline --tools tools.json --out airline.jsonl
"""


def stats(name: PoolName, environments: Annotated[bool, typer.Option("--environments", help="One line per environment.")] = False) -> None:
    from envsched.pool.opening import open_pool

    opened = open_pool(name)
    sizes = [int(size) for size in opened.offsets[1:] - opened.offsets[:-1]]
    filled = [size for size in sizes if size]
    print(f"tasks         {len(opened)}")
    span = f"{min(filled)} to {max(filled)} tasks" if min(filled) < max(filled) else counted(max(filled), "task")
    print(f"environments  {len(sizes)}, {len(filled)} with a task ({span} each)")
    print(f"tools         {sum(len(environment.tools) for environment in opened.environments)}")
    print(f"checks        {sum(len(one.checks) for one in opened.tasks)}")
    print(f"executable    {sum(bool(environment.source) for environment in opened.environments)} of {len(sizes)} environments have code")
    print(f"fingerprint   {opened.fingerprint}")
    if environments:
        width = max(len(environment.key) for environment in opened.environments)
        for environment, size in zip(opened.environments, sizes, strict=True):
            print(f"{environment.key:{width}}  {size:4} tasks  {len(environment.tools):3} tools  {environment.summary}")


def show(
    name: PoolName,
    task: Annotated[str | None, typer.Option("--task", help="Show one task with its checks.", metavar="KEY")] = None,
) -> None:
    from envsched.pool.opening import open_pool

    opened = open_pool(name)
    if task is None:
        for one in opened.tasks:
            print(f"{one.key}  {one.environment}  {' '.join(one.prompt.split())[:100]}")
        return
    if task not in opened:
        keys = [one.key for one in opened.tasks]
        nearest = difflib.get_close_matches(task, keys, n=1)
        hint = f"did you mean {nearest[0]!r}? " if nearest else ""
        raise UnknownTaskError(f"pool {name} has no task {task!r}; {hint}envsched pool show {name} lists its {counted(len(keys), 'task')}")
    chosen = opened.task(task)
    print(f"task         {chosen.key}")
    print(f"environment  {chosen.environment}")
    print(f"prompt       {chosen.prompt}")
    for check in chosen.checks:
        print(f"check        {check.text}")


def import_pool(
    format: Annotated[Format, typer.Argument(help="What the file is.")],
    file: Annotated[Path, typer.Argument(help="The file of tasks (envscaler: the folder).")],
    out: Annotated[Path, typer.Option("--out", help="The JSONL file to write.", callback=new_folder_said)],
    answers: Annotated[Path | None, typer.Option("--answers", help="bfcl: the file of possible answers.")] = None,
    tools: Annotated[
        Path | None, typer.Option("--tools", help="bfcl: the folder of function documents. tau-bench: a list of schemas.")
    ] = None,
    environment: Annotated[str | None, typer.Option("--environment", help="tau-bench: what to call the domain.", metavar="KEY")] = None,
) -> None:
    from envsched.pool.jsonl import write_jsonl

    if out.suffix != ".jsonl":
        raise ConfigError(f"--out {out}: expected a name that ends in .jsonl, by which the file is known as a pool")
    _refuse_options(format, {"--answers": answers, "--tools": tools, "--environment": environment})
    pool = _read(format, file, answers, tools, environment)
    write_jsonl(pool, out)
    holds = f"{counted(len(pool), 'task')} in {counted(len(pool.environments), 'environment')}"
    print(f"{out}: {holds}, fingerprint {pool.fingerprint}")


def _read(format: Format, file: Path, answers: Path | None, tools: Path | None, environment: str | None):
    from envsched.pool import Pool
    from envsched.pool.bfcl import read_bfcl
    from envsched.pool.tau_bench import read_tau_bench

    match format:
        case Format.ENVSCALER:
            return Pool.from_envscaler(file)
        case Format.JSONL:
            return Pool.from_jsonl(file)
        case Format.BFCL:
            return read_bfcl(file, answers, tools)
        case Format.TAU_BENCH:
            if environment is None:
                raise ConfigError("pool import tau-bench needs --environment KEY: what to call the domain that the tasks are of")
            return read_tau_bench(file, environment, tools)


_TAKES = {
    Format.ENVSCALER: (),
    Format.JSONL: (),
    Format.BFCL: ("--answers", "--tools"),
    Format.TAU_BENCH: ("--tools", "--environment"),
}


def _refuse_options(format: Format, given: dict[str, object]) -> None:
    for option, value in given.items():
        if value is not None and option not in _TAKES[format]:
            raise ConfigError(f"pool import {format} does not take {option}; it takes {', '.join(_TAKES[format]) or 'no option but --out'}")
