import json

import pytest

from envsched.config import load_config
from envsched.errors import ConfigError, StateError
from envsched.train.checkpoints import drop_old_checkpoints, read_seal, seal_checkpoint, sealed_checkpoints
from envsched.train.run_directory import RunDirectory


def write(path, content="x"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def run_with(tmp_path, steps, checkpoint_at=None):
    run = RunDirectory(tmp_path / "run")
    for step in range(steps):
        write(run.layout.rollouts(step), f"rollouts {step}")
        write(run.folder / f"selector/task_manifest.step_{step}.json", f"manifest {step}")
        write(run.folder / f"selector/input_audit.step_{step}.json", f"audit {step}")
    write(run.metrics_file, "".join(json.dumps({"step": step}) + "\n" for step in range(steps)))
    if checkpoint_at is not None:
        add_checkpoint(run, checkpoint_at)
    return run


def add_checkpoint(run, step, sealed=True):
    folder = run.checkpoints / f"checkpoint-{step}"
    write(folder / "trainer_state.json", json.dumps({"global_step": step}))
    if sealed:
        seal_checkpoint(folder, step, {"history": []}, {"pool": "p"})
    return folder


def test_a_used_directory_needs_resume(tmp_path):
    run = RunDirectory(tmp_path)
    config = load_config()
    run.begin(config, resume=False)
    with pytest.raises(ConfigError, match=r"holds a run.*--resume"):
        run.begin(config, resume=False)
    run.begin(config, resume=True)
    assert load_config(run.layout.config) == config


def test_resuming_refuses_settings_that_decide_batches_and_takes_the_others(tmp_path):
    run = RunDirectory(tmp_path)
    run.begin(load_config(), resume=False)
    with pytest.raises(ConfigError, match=r"scheduler.half_life was 8.0, now 24.0"):
        run.begin(load_config(overrides=["half_life=24"]), resume=True)
    longer = load_config(overrides=["train.max_steps=500"])
    run.begin(longer, resume=True)
    assert load_config(run.layout.config) == longer


def test_rewind_sets_aside_what_the_checkpoint_does_not_know(tmp_path):
    run = run_with(tmp_path, steps=5, checkpoint_at=3)
    cut = add_checkpoint(run, 5, sealed=False)
    assert run.rewind() == (3, run.checkpoints / "checkpoint-3")
    kept = sorted(path.name for path in (run.folder / "rollouts").iterdir())
    assert kept == ["step_0.jsonl", "step_1.jsonl", "step_2.jsonl"]
    shelf = run.folder / "superseded" / "1"
    assert (shelf / "rollouts/step_4.jsonl").read_text() == "rollouts 4"
    assert (shelf / "selector/task_manifest.step_3.json").read_text() == "manifest 3"
    assert (shelf / "selector/input_audit.step_4.json").exists()
    assert (run.folder / "selector/input_audit.step_3.json").exists(), "written with the checkpoint"
    assert (shelf / "checkpoint/checkpoint-5").is_dir()
    assert not cut.exists()
    assert [json.loads(line)["step"] for line in run.metrics_file.read_text().splitlines()] == [0, 1, 2]


def test_a_second_resume_has_its_own_shelf_and_an_idle_one_has_none(tmp_path):
    run = run_with(tmp_path, steps=2, checkpoint_at=1)
    run.rewind()
    run.rewind()
    assert [path.name for path in (run.folder / "superseded").iterdir()] == ["1"]
    write(run.layout.rollouts(1), "again")
    run.rewind()
    assert (run.folder / "superseded/2/rollouts/step_1.jsonl").read_text() == "again"


def test_without_a_checkpoint_everything_begins_again(tmp_path):
    run = run_with(tmp_path, steps=2)
    assert run.rewind() == (0, None)
    assert not list((run.folder / "rollouts").iterdir())
    assert run.metrics_file.read_text() == ""


def test_a_metrics_line_cut_short_is_dropped(tmp_path):
    run = run_with(tmp_path, steps=2, checkpoint_at=2)
    with open(run.metrics_file, "a") as stream:
        stream.write('{"step": 2, "rew')
    run.rewind()
    assert [json.loads(line)["step"] for line in run.metrics_file.read_text().splitlines()] == [0, 1]


def test_a_half_written_neighbour_of_a_killed_write_is_swept_away(tmp_path):
    run = run_with(tmp_path, steps=2, checkpoint_at=2)
    left = run.folder / "selector/.input_audit.step_2.json.gt_oe3fk"
    write(left, "{")
    run.rewind()
    assert not left.exists()


def test_lost_rollouts_before_the_checkpoint_stop_the_resume(tmp_path):
    run = run_with(tmp_path, steps=3, checkpoint_at=3)
    run.layout.rollouts(1).unlink()
    with pytest.raises(StateError, match=r"step_1.jsonl is missing"):
        run.rewind()


def test_trainer_and_scheduler_must_be_at_the_same_step(tmp_path):
    run = run_with(tmp_path, steps=3, checkpoint_at=3)
    folder = run.checkpoints / "checkpoint-3"
    assert read_seal(folder)["step"] == 3
    write(folder / "trainer_state.json", json.dumps({"global_step": 2}))
    with pytest.raises(StateError, match="trainer is at step 2, the scheduler at step 3"):
        read_seal(folder)


def test_only_the_newest_checkpoints_stay(tmp_path):
    run = run_with(tmp_path, steps=9)
    for step in (2, 4, 10):
        add_checkpoint(run, step)
    drop_old_checkpoints(run.checkpoints, keep=2)
    assert list(sealed_checkpoints(run.checkpoints)) == [4, 10]
