"""``envsched pool check``: run a pool's environments and checks once, in the sandbox, and say what is wrong."""

from pathlib import Path
from typing import Annotated

import typer

from envsched.cli.outputs import new_folder_said
from envsched.errors import PoolError

CHECK_HELP = """Run every environment and check of a pool once, in sandboxed workers, and report what is wrong.

Checks run on the start state and on an empty one. What passes at the start is reward for doing nothing; what passes on both is
vacuous. Raising on the empty state is no fault: most checks look into a collection that is not there, and count as not passed.

Exit status: 0 no error found, 1 an error found (with --strict a warning too), 2 nothing that can be run.

Examples:

  envsched pool check bundled

  envsched pool check data/envscaler --json findings.json

  envsched pool check data/envscaler --strict --require-sandbox
"""


def check_pool(
    name: Annotated[str, typer.Argument(help="A folder in EnvScaler's format, a JSONL file, or bundled.", metavar="POOL")],
    json: Annotated[
        Path | None, typer.Option("--json", help="Write the whole report there.", metavar="FILE", callback=new_folder_said)
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail too.")] = False,
    require_sandbox: Annotated[bool, typer.Option("--require-sandbox", help="Run nothing unless every wall stands.")] = False,
) -> None:
    from envsched.config import RuntimeConfig
    from envsched.files import write_json
    from envsched.pool.executable import has_code
    from envsched.pool.opening import open_pool
    from envsched.runtime.inspection import Severity, inspect_pool

    pool = open_pool(name)
    if not has_code(pool):
        raise PoolError(f"pool {name}: its environments have no code, so there is nothing to run; envsched pool stats counts what it holds")
    report = inspect_pool(pool, RuntimeConfig(sandbox="require" if require_sandbox else "on"))
    print(report.table())
    if json is not None:
        write_json(json, report.to_json())
    if report.count(Severity.ERROR) or (strict and report.count(Severity.WARNING)):
        raise typer.Exit(1)
