import json

import pytest

from envsched.config import SchedulerConfig
from envsched.errors import ConfigError
from envsched.simulate.court import Job, by_first_batch, code_digest, differences, hold_court, run_job, run_jobs, tabulate
from envsched.simulate.runs import Setting

FIGURES = (
    "mean_variance", "median_variance", "median_reward", "environments", "tools", "hit_rate", "zero_signal", "captured_share", "regret",
)  # fmt: skip
CONFIG = SchedulerConfig(batch_size=8, group_size=4)
SETTINGS = [Setting(seed=seed, steps=4, num_environments=12, tasks_per_environment=5) for seed in range(3)]


def test_numbers_do_not_depend_on_the_number_of_processes():
    one = hold_court(["mopps"], SETTINGS, CONFIG, workers=1)
    two = hold_court(["mopps"], SETTINGS, CONFIG, workers=2)
    assert one == two


def test_table_has_every_figure_with_its_interval_and_the_references():
    results = hold_court(["mopps"], SETTINGS, CONFIG)
    table = tabulate(results)
    assert list(table) == ["mopps", "random", "oracle"]
    for figures in table.values():
        assert set(FIGURES) <= set(figures)
        assert figures["mean_variance"]["low"] < figures["mean_variance"]["mean"] < figures["mean_variance"]["high"]
    assert table["random"]["captured_share"]["mean"] == 0.0
    assert table["oracle"]["captured_share"]["mean"] == 1.0
    assert table["oracle"]["regret"]["mean"] == 0.0


def test_differences_are_paired_by_world():
    runs = {"a": [{"figures": {"mean_variance": 2.0, "captured_share": 0.5, "environments": 3}}] * 2,
            "b": [{"figures": {"mean_variance": 1.0, "captured_share": 0.2, "environments": 5}}] * 2}  # fmt: skip
    found = differences(runs, "a")["b"]
    assert found["mean_variance_ratio"]["mean"] == 2.0
    assert found["captured_share"]["mean"] == pytest.approx(0.3)
    assert found["environments"]["high"] == -2.0


def test_an_interrupted_court_goes_on_where_it_stood(tmp_path):
    journal, asked = tmp_path / "runs.jsonl", []
    jobs = [Job("random", setting, CONFIG) for setting in SETTINGS]

    def stop_at_the_third(job):
        if len(asked) == 2:
            raise KeyboardInterrupt
        asked.append(job)
        return run_job(job)

    with pytest.raises(KeyboardInterrupt):
        run_jobs(jobs, stop_at_the_third, 1, journal, "")
    with journal.open("a") as stream:
        stream.write('{"key": "cut of')  # the process died while it wrote
    calls = []
    results = run_jobs(jobs, lambda job: calls.append(job) or run_job(job), 1, journal, "")
    assert calls == [jobs[2]]
    assert results == [run_job(job) for job in jobs]
    assert len([json.loads(line) for line in journal.read_text().splitlines()]) == 3


def test_a_journal_that_is_no_journal_is_refused(tmp_path):
    journal = tmp_path / "runs.jsonl"
    journal.write_text("not json\n")
    with pytest.raises(ConfigError, match="line 1 is not JSON"):
        run_jobs([Job("random", SETTINGS[0], CONFIG)], run_job, 1, journal, "")


def test_changed_settings_are_another_run():
    job = Job("random", SETTINGS[0], CONFIG)
    assert job.key() == Job("random", SETTINGS[0], CONFIG).key()
    assert job.key() != Job("random", SETTINGS[0], CONFIG.model_copy(update={"half_life": 9})).key()
    assert job.key() != Job("random", SETTINGS[1], CONFIG).key()


def test_changed_code_or_calibration_is_another_package(tmp_path):
    (tmp_path / "simulate").mkdir()
    digests = set()
    for name, text in (("rule.py", "x = 1\n"), ("rule.py", "x = 2\n"), ("simulate/slow.json", "{}"), ("notes.txt", "no code")):
        (tmp_path / name).write_text(text)
        digests.add(code_digest(tmp_path))
    assert len(digests) == 3


def test_quarters_by_first_batch():
    runs = [{"steps": {"variance": [float(i), 10.0 - i]}} for i in range(8)]
    found = by_first_batch(runs)
    assert found["lowest_quarter"]["variance"] == [0.5, 9.5]
    assert found["highest_quarter"]["variance"] == [6.5, 3.5]
    assert by_first_batch(runs[:7]) is None
