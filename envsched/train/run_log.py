"""What a person sees of a run: a line per step, a bar on a terminal, a metrics file, a table at the end."""

import json
import math
import sys
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from transformers import TrainerCallback

from envsched.train.run_directory import read_metrics

COLUMNS = (  # metric, heading, format
    ("step/variance", "variance", ".4f"),
    ("step/hit_rate", "hit rate", ".2f"),
    ("step/environments", "environments", ".0f"),
    ("step/reward", "reward", ".3f"),
    ("step/zero_signal", "zero signal", ".2f"),
    ("bfcl/mean", "BFCL", ".3f"),
    ("scheduler/share", "scheduling", ".1%"),
    ("time/step", "seconds", ".1f"),
)

NARROW: dict[str, Any] = {"box": SIMPLE_HEAD, "padding": (0, 0), "pad_edge": False}  # whole numbers on 80 columns

CAPTION = """variance: mean within-task reward variance; zero signal: share of groups without any;
hit rate: share of exploitation picks among the batch's top quarter by variance; scheduling: share of the step's time"""


class RunLog(TrainerCallback):
    """Follows a run on rank 0.

    Args:
        metrics_file: gets one JSON line per step.
        max_steps: where the bar ends.
    """

    def __init__(self, metrics_file: Path, max_steps: int) -> None:
        self._file = metrics_file
        self._console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=self._console,
            disable=not sys.stderr.isatty(),
        )
        self._row = self._bar.add_task("training", total=max_steps)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._bar.update(self._row, completed=state.global_step)
        self._bar.start()

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        if not state.is_world_process_zero or not logs or "loss" not in logs:
            return
        step = state.global_step - 1
        line = {"step": step, **{name: _plain(value) for name, value in logs.items()}}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with open(self._file, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")
        shown = "  ".join(f"{heading} {_shown(line.get(name), form)}" for name, heading, form in COLUMNS)
        self._console.print(f"step {step:>4}  {shown}", highlight=False, soft_wrap=True)
        self._bar.update(self._row, completed=state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._bar.stop()


def summary_table(metrics_file: Path) -> Table:
    """One row per step."""
    table = Table(title="training", caption=CAPTION, caption_justify="left", **NARROW)
    table.add_column("step", justify="right")
    for _, heading, _ in COLUMNS:
        table.add_column(heading, justify="right")
    for line in read_metrics(metrics_file):
        table.add_row(str(line["step"]), *(_shown(line.get(name), form) for name, _, form in COLUMNS))
    return table


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _plain(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
