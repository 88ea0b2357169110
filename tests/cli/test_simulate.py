"""``envsched simulate`` and ``envsched replay`` as a person runs them."""

import json
import re

import pytest

from tests.cli.commands import run_command
from tests.simulate.test_recorded import row, write

SMALL = ("--steps", "4", "--runs", "2", "--environments", "12", "--tasks", "5", "--set", "batch_size=8")


def test_simulate_prints_a_table_and_writes_the_figures(capsys, tmp_path):
    out, pictures = tmp_path / "court.json", tmp_path / "pictures"
    arguments = ("simulate", "--schedulers", "plr,random", *SMALL, "--json", out, "--figures", pictures)
    status, printed, _ = run_command(capsys, *arguments)
    assert status == 0
    assert re.search(r"^plr +0\.\d+ \[", printed, re.MULTILINE)
    content = json.loads(out.read_text())
    assert list(content["schedulers"]) == ["plr", "random", "oracle"]
    for figure in ("mean_variance", "captured_share", "regret"):
        assert set(content["schedulers"]["plr"][figure]) == {"mean", "low", "high"}
    assert set(content["differences"]["plr"]) == {"random", "oracle"}
    assert {path.name for path in pictures.iterdir()} >= {"variance.png", "coverage_log.png", "hit_rate.png", "calibration.png"}
    assert not list(tmp_path.glob("*.runs.jsonl"))


def test_the_same_command_gives_the_same_file(capsys, tmp_path):
    outs = [tmp_path / name for name in ("one.json", "two.json")]
    for out in outs:
        run_command(capsys, "simulate", "--schedulers", "mopps", *SMALL, "--json", out)
    assert outs[0].read_bytes() == outs[1].read_bytes()


def test_one_world_is_said_to_have_no_interval(capsys):
    small = ("--steps", "1", "--runs", "1", "--environments", "12", "--tasks", "5", "--set", "batch_size=8")
    _, printed, _ = run_command(capsys, "simulate", "--schedulers", "plr", *small)
    assert printed.startswith("1 world, 1 step, slow learner, structure x 1; one run, so no interval\n")
    assert "[" not in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--schedulers", "leeps"), "unknown scheduler 'leeps'"),
        (("--schedulers", "envsched:half_lives=3"), "did you mean 'half_life'"),
        (("--schedulers", "random", "--learner", "quick", *SMALL), "known: slow, fast"),
    ],
)
def test_what_is_unknown_is_refused_with_the_list(capsys, arguments, message):
    status, _, error = run_command(capsys, "simulate", *arguments)
    assert status == 2
    assert message in error


def test_replay_prints_its_tables_and_draws(capsys, tmp_path):
    rows = [row(f"{e}{i}", p, [0, 1, i % 2, 0]) for e in "ab" for i in range(10) for p in ("weak", "strong")]
    rollouts, out, pictures = write(tmp_path / "rollouts.jsonl.gz", rows), tmp_path / "replay.json", tmp_path / "pictures"
    arguments = ("--schedulers", "no_graph,mopps,dps", "--runs", "2", "--set", "features.encoder=tfidf", "--picture", "svg")
    status, printed, _ = run_command(capsys, "replay", "--rollouts", rollouts, *arguments, "--json", out, "--figures", pictures)
    assert status == 0
    assert "2 policies of 3 steps, B 4, G 2, quotas" in printed
    assert "no quotas" in printed
    assert re.search(r"variance of unobserved tasks, Spearman's rho; the noise allows 0\.\d\d", printed)
    tables = json.loads(out.read_text())["replays"]
    assert [table["quotas"] for table in tables] == [True, False]
    assert set(tables[0]["schedulers"]["mopps"]["minus_dps"]) == {"mean", "low", "high"}
    assert list(tables[0]["prediction"]) == ["no_graph"]
    drawn = {str(path.relative_to(pictures)) for path in pictures.rglob("*.svg")}
    both = ("variance", "coverage", "hit_rate", "calibration", "environments_no_graph")
    assert drawn >= {f"rollouts_{table}/{name}.svg" for table in ("quotas", "no_quotas") for name in both}
    assert "rollouts_quotas/prediction.svg" in drawn


def test_replay_says_what_is_wrong_with_a_file(capsys, tmp_path):
    for name, says in (("nowhere.jsonl", "No such file or directory; give JSON lines"), ("bad.jsonl.gz", "Not a gzipped file")):
        rollouts = tmp_path / name
        if name.endswith(".gz"):
            rollouts.write_text("plain")
        status, _, error = run_command(capsys, "replay", "--rollouts", rollouts, "--schedulers", "envsched")
        assert status == 2
        assert error.startswith(f"error: rollouts file {rollouts}: {says}")
        assert "Errno" not in error


def test_replay_refuses_what_it_does_not_know(capsys, tmp_path):
    rollouts = write(tmp_path / "rollouts.jsonl", [row("a1", "p", [0, 1])])
    status, _, error = run_command(capsys, "replay", "--rollouts", rollouts, "--schedulers", "leeps")
    assert status == 2
    assert "unknown scheduler 'leeps'; known: envsched, paper" in error.replace("\n", " ")
