"""``envsched audit``: derive the batches of a run again."""

from pathlib import Path
from typing import Annotated

import typer

from envsched.wording import counted


def register(app: typer.Typer) -> None:
    app.command("audit", help=_HELP, short_help="Derive every batch of a run again, and compare.")(audit)


_HELP = """Derive every batch of a run again from its pool, resolved config, saved features and rollouts alone.

Exit status 0 when every manifest is what its inputs give; 1 with the first step that differs and how; 2 when
there is no run to derive. Stored scores are
compared, never used.

Examples:

  envsched audit runs/demo

  envsched audit copied/run --pool copied/pool
"""


def audit(
    run_dir: Annotated[Path, typer.Argument(help="The directory of a run.", metavar="RUN_DIR")],
    pool: Annotated[str | None, typer.Option("--pool", help="Where the run's pool lies now; else where its config says.")] = None,
) -> None:
    from envsched.audit import audit_run

    report = audit_run(run_dir, pool)
    for note in report.notes:
        print(f"note: {note}")
    if not report.steps:
        print(f"{run_dir}: no batch yet, nothing to compare")
        return
    first, last = report.steps[0], report.steps[-1]
    steps = f"step {first}" if first == last else f"steps {first} to {last}"
    print(f"{run_dir}: all batches follow from their inputs: {steps}, {counted(report.num_records, 'record')}")
