"""The ``envsched`` command. One module per group of sub-commands; each has ``register(app)``.

Nothing heavy is imported here or at the top of a command's module: ``envsched --help`` answers at once.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import typer

import envsched
from envsched.errors import AuditError, EnvschedError

COMMANDS = (
    "pool",
    "topology",
    "graph",
    "select",
    "audit",
    "simulate",
    "replay",
    "evaluate",
)  # modules of this package, in the order of --help


def build_app() -> typer.Typer:
    """The command with all its sub-commands."""
    app = typer.Typer(
        name="envsched",
        help="An online task scheduler for agentic reinforcement learning.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_options)
    for command in COMMANDS:
        import_module(f"envsched.cli.{command}").register(app)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; an error that the user can mend is one line on standard error and exit status 2, as for a wrong option.

    Exit status 1 is a verdict: the audit found a difference.
    """
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # the text encoder loads in no time; `track` draws the bars that matter
    try:
        build_app()(args=None if arguments is None else list(arguments), prog_name="envsched")
    except AuditError as error:
        _fail(str(error), 1)
    except EnvschedError as error:
        _fail(str(error), 2)
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error), 2)


def _fail(text: str, status: int) -> NoReturn:
    print(f"error: {' '.join(text.splitlines())}", file=sys.stderr)
    sys.exit(status)


def _options(
    version: bool = typer.Option(False, "--version", help="Print the version.", is_eager=True, callback=lambda on: _print_version(on)),
) -> None:
    """An online task scheduler for agentic reinforcement learning."""


def _print_version(wanted: bool) -> None:
    if wanted:
        print(envsched.__version__)
        raise typer.Exit
