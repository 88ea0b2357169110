"""``envsched replay``: schedulers over recorded rollouts."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from envsched.cli.outputs import new_folder_said
from envsched.cli.simulate import Picture
from envsched.wording import counted


def register(app: typer.Typer) -> None:
    app.command("replay", help=_HELP, short_help="Compare schedulers on recorded rollouts.")(replay)


_HELP = """Compare schedulers on recorded rollouts: policies from weak to strong stand for a policy in training.

The file has one JSON object a line: environment, task_id, policy, rewards, and step (a number where policies are checkpoints,
else null); plain or gzip. Every cell of task and policy is split at random: one half answers the schedulers, the other half judges
their picks. A batch has min(16, tasks / 5) tasks, quotas shrink with it, and a second table has none. A third table says how
well variances are predicted: of tasks that were hidden, and of visited tasks under the next policy, beside the environment's mean.
An interrupted command with --json goes on where it stood when it is given again.

Examples:

  envsched replay --rollouts rollouts.jsonl.gz --schedulers envsched,paper,mopps,dps --runs 20 --json replay.json

  envsched replay --rollouts checkpoints.jsonl.gz --prompts prompts.jsonl.gz --schedulers envsched,no_graph --workers 2

  envsched replay --rollouts tiny.jsonl --pool bundled --schedulers envsched,no_graph --json tiny.json --figures pictures
"""


def replay(
    rollouts: Annotated[Path, typer.Option("--rollouts", help="Recorded rollouts, JSON lines.")],
    schedulers: Annotated[str, typer.Option("--schedulers", help="Names, comma-separated; name:setting=value+setting=value.")],
    prompts: Annotated[Path | None, typer.Option("--prompts", help="JSON lines of task_id and prompt, where rollouts lack them.")] = None,
    pool: Annotated[str | None, typer.Option("--pool", help="The pool of these tasks: its texts, tools and topologies join in.")] = None,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Random splits of the cells.")] = 20,
    steps_per_policy: Annotated[int | None, typer.Option("--steps-per-policy", min=1, help="Else by the number of tasks.")] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Show whole cells; they judge first picks under a policy only.")] = False,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes; the numbers do not depend on it.")] = 1,
    config: Annotated[Path | None, typer.Option("--config", help="A YAML file of settings.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="One setting; may be repeated.")] = None,
    json: Annotated[Path | None, typer.Option("--json", help="Where figures with their intervals go.", callback=new_folder_said)] = None,
    figures: Annotated[Path | None, typer.Option("--figures", help="Folder for pictures, one inside it for each table.")] = None,
    picture: Annotated[Picture, typer.Option("--picture", help="Format of the pictures.")] = Picture.PNG,
) -> None:
    from envsched.config import load_config
    from envsched.files import write_json
    from envsched.simulate.court import journal_of
    from envsched.simulate.hearing import Hearing, hold_replays
    from envsched.simulate.line_up import parse_line_up
    from envsched.simulate.protocol import Source

    names = parse_line_up(schedulers)
    resolved = load_config(config, settings or ())
    source = Source(str(rollouts), prompts and str(prompts), pool, resolved.features)
    journal = journal_of(json)
    tables = hold_replays(Hearing(source, tuple(names), resolved.scheduler, runs, whole, steps_per_policy), workers, journal)
    for table in tables:
        _print(table)
    if json is not None:
        write_json(json, {"setting": {"runs": runs, "whole": whole}, "replays": [_flat(table) for table in tables]})
    if figures is not None:
        _draw(tables, figures, picture)
    if journal is not None:
        journal.unlink(missing_ok=True)


def _flat(table: dict[str, Any]) -> dict[str, Any]:
    """As in the file: what it is about at the top, figures under ``schedulers``."""
    rest = {"prediction": table["prediction"]} if "prediction" in table else {}
    return {**table["about"], "schedulers": table["figures"], **rest}


def _print(table: dict[str, Any]) -> None:
    from envsched.simulate.table import PREDICTION_COLUMNS, REPLAY_COLUMNS, legend, render

    about = table["about"]
    print(
        f"\n{about['recording']}: {counted(about['tasks'], 'task')}, {counted(about['environments'], 'environment')}, "
        f"{counted(len(about['policies']), 'policy')} of {counted(about['steps_per_policy'], 'step')}, "
        f"B {about['batch_size']}, G {about['group_size']}, {'quotas' if about['quotas'] else 'no quotas'}; "
        f"judged by {about['judged_by']}; {legend(table['figures'])}"
    )
    print(render(table["figures"], REPLAY_COLUMNS))
    for question in ("unobserved", "observed") if table.get("prediction") else ():
        ceiling = f"; the noise allows {about['ceiling']:.2f}" if about["ceiling"] is not None else ""
        figures = {name: found[question] for name, found in table["prediction"].items()}
        print(f"\n{about['recording']}: predicted variance of {question} tasks, Spearman's rho{ceiling}; {legend(figures)}")
        print(render(figures, PREDICTION_COLUMNS))


def _draw(tables: Sequence[dict[str, Any]], folder: Path, picture: Picture) -> None:
    from envsched.simulate.figures import draw, draw_prediction

    for table in tables:
        about = table["about"]
        name = re.sub(r"[^\w.-]+", "_", about["recording"])
        place = folder / f"{name}_{'quotas' if about['quotas'] else 'no_quotas'}"
        draw(table["runs"], place, picture.value)
        if table.get("prediction"):
            draw_prediction(table["prediction"], place, picture.value)
