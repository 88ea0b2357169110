import csv
import io

import pytest
from rich.console import Console

from envsched.config import SchedulerConfig
from envsched.pool import Pool
from envsched.train.environment_table import EnvironmentTable
from envsched.types import RolloutRecord, Status


@pytest.fixture
def table():
    pool = Pool.bundled()
    table = EnvironmentTable(pool, SchedulerConfig())
    task = next(task.key for task in pool.tasks if task.environment == "kitchen")
    table.observe([RolloutRecord(task, 0, (0.0, 1.0, None), (Status.OK, Status.OK, Status.ABORTED), 0)])
    return table


def test_the_file_has_a_line_per_environment(table, tmp_path):
    table.write(tmp_path / "environments.csv")
    lines = {line["environment"]: line for line in csv.DictReader((tmp_path / "environments.csv").read_text().splitlines())}
    assert len(lines) == len(Pool.bundled().environments)
    kitchen = lines["kitchen"]
    assert (kitchen["groups"], kitchen["tasks_seen"], kitchen["missing"]) == ("1", "1", "1")
    assert (float(kitchen["reward"]), float(kitchen["variance"])) == (0.5, 0.5)
    assert lines["bank"]["groups"] == "0"
    assert lines["bank"]["reward"] == ""


def test_the_table_for_a_person_fits_on_80_columns(table):
    console = Console(width=80, file=io.StringIO())
    console.print(table.render())
    text = console.file.getvalue()
    assert "lighthouse" in text
    assert "0.500" in text
    assert "…" not in text
