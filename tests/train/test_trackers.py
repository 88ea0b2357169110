"""Metrics where a user looks for them: each tracker that is installed gets them, one that is not is refused by name."""

import os
import sqlite3
import subprocess
import sys
from importlib.util import find_spec

import pytest

from envsched.config import load_config
from envsched.errors import MissingExtraError
from envsched.train.combinations import refuse_impossible
from tests.train.killing import ROOT

WANTED = {
    *("step/reward", "step/variance", "step/zero_signal", "step/environments", "status/ok", "status/infra_error"),
    *("scheduler/seconds", "scheduler/share", "time/rollouts", "time/update", "num_tokens", "tools/failure_frequency", "loss"),
}
TRACKERS = ("tensorboard", "wandb", "trackio")


def needs(tracker):
    return pytest.mark.skipif(find_spec(tracker) is None, reason=f"needs {tracker}: pip install 'envsched[{tracker}]'")


def run(tmp_path, run_flags, tracker):
    """The logs folder of a run of two steps."""
    words = [sys.executable, "train.py", "--run-dir", str(tmp_path / "run"), *run_flags, "--max-steps", "2"]
    words += ["--set", f"train.trackers=[{tracker}]"]
    offline = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(words, cwd=ROOT, env={**os.environ, **offline}, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return tmp_path / "run/logs"


@pytest.mark.parametrize("tracker", TRACKERS)
def test_a_tracker_that_is_not_installed_is_refused_with_its_extra(tracker):
    if find_spec(tracker) is not None:
        pytest.skip(f"{tracker} is installed")
    config = load_config(overrides=["train.model=some", f"train.trackers=[{tracker}]"])
    with pytest.raises(MissingExtraError, match=rf"{tracker}, which is not installed: pip install 'envsched\[{tracker}\]'"):
        refuse_impossible(config, 1, "none")


@pytest.mark.slow
@needs("tensorboard")
def test_tensorboard_gets_every_figure(tmp_path, run_flags):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run(tmp_path, run_flags, "tensorboard"))).Reload()
    tags = set(events.Tags()["scalars"])
    assert {f"train/{name}" for name in WANTED} <= tags
    assert [event.step for event in events.Scalars("train/step/reward")] == [1, 2]


@pytest.mark.slow
@needs("wandb")
def test_wandb_gets_every_figure_offline(tmp_path, run_flags):
    (file,) = run(tmp_path, run_flags, "wandb").glob("wandb/offline-run-*/*.wandb")
    written = file.read_bytes()  # records of protocol buffers, whose strings stand as they are
    assert [name for name in WANTED if f"train/{name}".encode() not in written] == []


@pytest.mark.slow
@needs("trackio")
def test_trackio_gets_every_figure(tmp_path, run_flags):
    (file,) = run(tmp_path, run_flags, "trackio").rglob("envsched.db")
    rows = sqlite3.connect(file).execute("select metrics from metrics").fetchall()
    text = " ".join(str(row[0]) for row in rows)
    assert all(name in text for name in WANTED)
