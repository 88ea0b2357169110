"""What each environment has given so far, as a table: kept on disk after every step, shown at the end.

Letters: v realised within-task variance of a group.
"""

import csv
import io
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from rich.table import Table

from envsched.config import SchedulerConfig
from envsched.files import write_atomically
from envsched.history import group_statistics
from envsched.pool import Pool
from envsched.train.run_log import NARROW
from envsched.types import RolloutRecord, Status

COLUMNS = {  # name: format
    "environment": "",
    "groups": ".0f",
    "tasks_seen": ".0f",
    "tasks": ".0f",
    "reward": ".3f",
    "variance": ".4f",
    "zero_signal": ".2f",
    "tokens": ".0f",
    "seconds": ".2f",
    "tool_errors": ".2f",
    "missing": ".0f",
    "truncated": ".0f",
}
SHOWN = ("environment", "groups", "tasks_seen", "reward", "variance", "zero_signal", "tool_errors", "missing")


@dataclass
class _Row:
    groups: int = 0
    tasks: set[str] = field(default_factory=set)
    means: list[float] = field(default_factory=list)
    variances: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    calls: int = 0
    failed_calls: int = 0
    missing: int = 0
    truncated: int = 0


class EnvironmentTable:
    """Groups, reward, mean v, share of groups with v = 0, tokens and seconds per rollout, share of failed tool calls, statuses."""

    def __init__(self, pool: Pool, config: SchedulerConfig) -> None:
        self._pool, self._config = pool, config
        self._rows: dict[str, _Row] = defaultdict(_Row)

    def observe(self, records: Iterable[RolloutRecord]) -> None:
        """Take in the records of a step; tasks that the pool no longer has have no row."""
        for record in (record for record in records if record.task in self._pool):
            row, group = self._rows[self._pool.task(record.task).environment], group_statistics(record, self._config)
            row.groups += 1
            row.tasks.add(record.task)
            row.means += [] if group.mean is None else [group.mean]
            row.variances += [] if group.variance is None else [group.variance]
            row.tokens += record.tokens or ()
            row.seconds += record.seconds or ()
            answered = [action["ok"] for actions in record.trace or () for action in actions]
            refused = sum(record.extra.get("refused", ()))
            row.calls += len(answered) + refused
            row.failed_calls += answered.count(False) + refused
            row.missing += sum(status.is_missing for status in record.status)
            row.truncated += record.status.count(Status.TRUNCATED)

    def lines(self) -> list[dict[str, str | float | None]]:
        """One per environment of the pool that has a task, in the pool's order; a mean over nothing is none."""
        sizes: dict[str, int] = defaultdict(int)
        for task in self._pool.tasks:
            sizes[task.environment] += 1
        return [_line(environment, size, self._rows.get(environment, _Row())) for environment, size in sizes.items()]

    def write(self, file: Path) -> None:
        """As CSV."""
        text = io.StringIO()
        table = csv.DictWriter(text, list(COLUMNS), lineterminator="\n")
        table.writeheader()
        table.writerows(self.lines())
        write_atomically(file, text.getvalue())

    def render(self) -> Table:
        """For a person: what fits on a terminal; the file has the rest."""
        table = Table(title="environments", **NARROW)
        for name in SHOWN:
            table.add_column(name.replace("_", " "), justify="left" if name == "environment" else "right")
        for line in self.lines():
            table.add_row(*("-" if line[name] is None else format(line[name], COLUMNS[name]) for name in SHOWN))
        return table


def _line(environment: str, num_tasks: int, row: _Row) -> dict[str, str | float | None]:
    return {
        "environment": environment,
        "groups": row.groups,
        "tasks_seen": len(row.tasks),
        "tasks": num_tasks,
        "reward": _mean(row.means),
        "variance": _mean(row.variances),
        "zero_signal": _mean([v == 0 for v in row.variances]),
        "tokens": _mean(row.tokens),
        "seconds": _mean(row.seconds),
        "tool_errors": row.failed_calls / row.calls if row.calls else None,
        "missing": row.missing,
        "truncated": row.truncated,
    }


def _mean(values: list) -> float | None:
    return sum(values) / len(values) if values else None
