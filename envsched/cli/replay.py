"""``envsched replay``: schedulers over recorded rollouts."""

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("replay", help=_HELP)(replay)


_HELP = """Compare schedulers on recorded rollouts: policies from weak to strong stand for a policy in training.

The file has one JSON object a line: environment, task_id, policy, rewards, and step (a number where policies are checkpoints,
else null); plain or gzip. Every cell is split at random: one half answers the schedulers, the other half judges their picks.
A batch has min(16, tasks / 5) tasks, quotas shrink with it, and a second table has none.

Examples:

  envsched replay --rollouts rollouts.jsonl.gz --schedulers envsched,paper,mopps,dps --runs 20 --json replay.json

  envsched replay --rollouts checkpoints.jsonl.gz --prompts prompts.jsonl.gz --schedulers envsched,no_graph --workers 2
"""


def replay(
    rollouts: Annotated[Path, typer.Option("--rollouts", help="Recorded rollouts, JSON lines.")],
    schedulers: Annotated[str, typer.Option("--schedulers", help="Names, comma-separated; name:setting=value+setting=value.")],
    prompts: Annotated[Path | None, typer.Option("--prompts", help="JSON lines of task_id and prompt, where rollouts lack them.")] = None,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Random splits of the cells.")] = 20,
    steps_per_policy: Annotated[int | None, typer.Option("--steps-per-policy", min=1, help="Else by the number of tasks.")] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Show whole cells and judge by them: noise counts as variance.")] = False,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes; the numbers do not depend on it.")] = 1,
    config: Annotated[Path | None, typer.Option("--config", help="A YAML file of settings.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="One setting; may be repeated.")] = None,
    json: Annotated[Path | None, typer.Option("--json", help="Where figures with their intervals go.")] = None,
) -> None:
    from envsched.config import load_config
    from envsched.files import write_json
    from envsched.simulate.court import journal_of
    from envsched.simulate.line_up import parse_line_up
    from envsched.simulate.replay import hold_replays
    from envsched.simulate.table import REPLAY_COLUMNS, render

    names = parse_line_up(schedulers)
    resolved = load_config(config, settings or ()).scheduler
    journal = journal_of(json)
    tables = hold_replays(rollouts, prompts, names, resolved, runs, workers, journal, whole, steps_per_policy)
    for table in tables:
        print(
            f"\n{table['recording']}: {table['tasks']} tasks, {table['environments']} environments, {table['policies']} policies, "
            f"B {table['batch_size']}, G {table['group_size']}, {'quotas' if table['quotas'] else 'no quotas'}; mean [95% interval]"
        )
        print(render(table["schedulers"], REPLAY_COLUMNS))
    if json is not None:
        write_json(json, {"setting": {"runs": runs, "whole": whole}, "replays": tables})
    if journal is not None:
        journal.unlink(missing_ok=True)
