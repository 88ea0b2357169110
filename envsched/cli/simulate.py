"""``envsched simulate``: schedulers on synthetic learners, compared at equal rollouts."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from envsched.cli.outputs import new_folder_said
from envsched.wording import counted


class Picture(StrEnum):
    """Formats of pictures."""

    PNG = "png"
    SVG = "svg"


def register(app: typer.Typer) -> None:
    app.command("simulate", help=_HELP, short_help="Compare schedulers on synthetic learners.")(simulate)


_HELP = """Compare schedulers on synthetic learners that are calibrated to the published Random row.

Every scheduler meets the same worlds (seeds from --first-world on). Random and the oracle are always run: captured share is
(x - random) / (oracle - random) in the same world. A scheduler may carry settings of its own: envsched:half_life=24+num_cross=0.
An interrupted command goes on where it stood when it is given again.

Examples:

  envsched simulate --schedulers envsched,paper,random --steps 60 --runs 3

  envsched simulate --schedulers envsched,paper,no_graph,dps,mopps --steps 200 --runs 20 --workers 2 --json court.json

  envsched simulate --schedulers envsched --steps 7 --runs 100 --json seven.json --figures pictures
"""


def simulate(
    schedulers: Annotated[str, typer.Option("--schedulers", help="Names, comma-separated; name:setting=value+setting=value.")],
    first_world: Annotated[int, typer.Option("--first-world", min=0, help="Seed of the first world.")] = 0,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Steps of a run.")] = 200,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Worlds.")] = 20,
    learner: Annotated[str, typer.Option("--learner", help="slow or fast.")] = "slow",
    strength: Annotated[float, typer.Option("--strength", min=0, help="Factor on how far structure predicts variance.")] = 1.0,
    persistence: Annotated[float, typer.Option("--persistence", min=0.01, help="Factor on how long a task's own traits last.")] = 1.0,
    environments: Annotated[int, typer.Option("--environments", min=1, help="Environments of a world.")] = 51,
    tasks: Annotated[int, typer.Option("--tasks", min=1, help="Tasks of an environment.")] = 50,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes; the numbers do not depend on it.")] = 1,
    config: Annotated[Path | None, typer.Option("--config", help="A YAML file of settings.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="One setting; may be repeated.")] = None,
    json: Annotated[Path | None, typer.Option("--json", help="Where figures with their intervals go.", callback=new_folder_said)] = None,
    figures: Annotated[Path | None, typer.Option("--figures", help="Folder for pictures.")] = None,
    picture: Annotated[Picture, typer.Option("--picture", help="Format of the pictures.")] = Picture.PNG,
) -> None:
    from envsched.config import load_config
    from envsched.files import write_json
    from envsched.simulate.court import by_first_batch, differences, hold_court, journal_of, tabulate
    from envsched.simulate.line_up import parse_line_up
    from envsched.simulate.runs import Setting
    from envsched.simulate.table import COURT_COLUMNS, legend, render

    names = parse_line_up(schedulers)
    resolved = load_config(config, settings or ()).scheduler
    seeds = range(first_world, first_world + runs)
    worlds = [Setting(learner, seed, steps, strength, environments, tasks, persistence) for seed in seeds]
    journal = journal_of(json)
    results = hold_court(names, worlds, resolved, workers, journal)
    table = tabulate(results)
    changed = f"structure x {strength:g}" + (f", persistence x {persistence:g}" if persistence != 1 else "")
    print(f"{counted(runs, 'world')}, {counted(steps, 'step')}, {learner} learner, {changed}; {legend(table)}")
    print(render(table, COURT_COLUMNS))
    if json is not None:
        setting = {"learner": learner, "steps": steps, "runs": runs, "first_world": first_world, "strength": strength}
        setting |= {"persistence": persistence, "environments": environments, "tasks": tasks}
        write_json(
            json,
            {
                "setting": setting,
                "schedulers": table,
                "differences": {names[0]: differences(results, names[0])},
                "by_first_batch": {name: by_first_batch(runs_of) for name, runs_of in results.items()},
            },
        )
    if figures is not None:
        from envsched.simulate.figures import draw

        draw(results, figures, picture.value)
    if journal is not None:
        journal.unlink(missing_ok=True)
