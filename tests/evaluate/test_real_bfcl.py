"""The real 4 x 200 dialogues, against BFCL's own checker. ``ENVSCHED_BFCL`` names the wheel of bfcl-eval that data/manifest.json pins:

pip download --no-deps bfcl-eval==2026.3.23 && ENVSCHED_BFCL=$PWD/bfcl_eval-2026.3.23-py3-none-any.whl pytest tests/evaluate -m slow
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from envsched.evaluate.bfcl import SUBSETS, BfclSuite
from scripts.prepare_data import main
from tests.evaluate.playing import play, without_last

WHEEL = os.environ.get("ENVSCHED_BFCL", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(2400),
    pytest.mark.skipif(not WHEEL, reason="needs BFCL's files: set ENVSCHED_BFCL to the wheel of bfcl-eval (docs/evaluation.md)"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("data")
    assert main(["--from-package", "bfcl-eval", "--source-dir", WHEEL, "--out", str(out)]) == 0
    return out / "bfcl"


@pytest.fixture(scope="module")
def suite(folder):
    with BfclSuite(folder, num_workers=2) as made:
        yield made


def judged_by_bfcl(folder, suite, changes):
    """What BFCL's checker says of the reference calls of each task after its change."""
    entries = {item["id"]: item for subset in SUBSETS for item in _lines(folder / f"BFCL_v4_multi_turn_{subset}.json")}
    cases = []
    for task, change in zip(suite.tasks, changes, strict=True):
        turns = [[turn] if turn else [] for turn in change([list(turn) for turn in task.truth])]
        cases.append(json.dumps({"entry": entries[task.key], "truth": [list(turn) for turn in task.truth], "turns": turns}))
    command = [sys.executable, str(Path(__file__).with_name("bfcl_oracle.py")), WHEEL]
    done = subprocess.run(command, input="\n".join(cases), capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def _lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def scores(suite, changes):
    return [play(suite, task, change).score == 1.0 for task, change in zip(suite.tasks, changes, strict=True)]


def changed(seed):
    """Drop, repeat or swap calls of one turn: the same places for calls as text and as values."""

    def change(turns):
        draw = random.Random(seed)
        filled = [i for i, calls in enumerate(turns) if calls]
        i = draw.choice(filled)
        calls = list(turns[i])
        kind, place = draw.randrange(3), draw.randrange(len(calls))
        if kind == 0:
            del calls[place]
        elif kind == 1:
            calls.insert(place, calls[place])
        else:
            draw.shuffle(calls)
        return [calls if j == i else turn for j, turn in enumerate(turns)]

    return change


def test_reference_calls_of_all_800_dialogues_score_one(suite):
    assert len(suite.tasks) == 800
    assert all(scores(suite, [list] * 800))


def test_a_dropped_last_call_scores_as_by_bfcls_own_checker(folder, suite):
    ours, theirs = scores(suite, [without_last] * 800), judged_by_bfcl(folder, suite, [without_last] * 800)
    assert ours == theirs
    print(f"without the last call {ours.count(False)} of 800 score 0")


def test_changed_calls_score_as_by_bfcls_own_checker(folder, suite):
    changes = [changed(seed) for seed in range(800)]
    ours, theirs = scores(suite, changes), judged_by_bfcl(folder, suite, changes)
    differing = [task.key for task, a, b in zip(suite.tasks, ours, theirs, strict=True) if a != b]
    assert differing == []
    assert 0 < ours.count(True) < 800
