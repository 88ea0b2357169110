import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from envsched.audit import read_manifest
from envsched.baselines import build_scheduler
from envsched.cli.cache import cache_folder
from envsched.config import FeatureConfig, SchedulerConfig
from envsched.errors import ConfigError
from envsched.features import build_features
from envsched.history import append_records
from envsched.pool import Pool
from envsched.scheduler import carry_over
from envsched.topology import extract_static, write_topologies
from envsched.types import RolloutRecord, Status
from tests.audit.runs import edit_json, write_pool
from tests.cli.commands import run_command
from tests.scheduler.worlds import rewards_of
from tests.select.worlds import broken_quotas

TFIDF = ("--set", "features.encoder=tfidf")


@pytest.fixture
def pool(tmp_path):
    return write_pool(tmp_path / "pool")


@pytest.fixture
def select(capsys, tmp_path, pool):
    """``envsched select`` on the small pool; gives status, manifest (None on an error), standard error."""

    def call(step, *arguments, batch_size=8):
        out = tmp_path / f"manifest_{step}.json"
        out.unlink(missing_ok=True)
        sizes = () if batch_size is None else ("--batch-size", batch_size)
        status, _, err = run_command(
            capsys, "select", "--pool", pool, "--step", step, "--out", out, "--cache", tmp_path / "cache", *sizes, *TFIDF, *arguments
        )
        return status, read_manifest(out) if out.exists() else None, err

    return call


def test_one_command_per_step_gives_what_one_long_process_gives(select, pool, tmp_path):
    history = tmp_path / "rollouts.jsonl"
    opened = Pool.from_envscaler(pool)
    features = build_features(opened, FeatureConfig(encoder="tfidf"))
    scheduler = build_scheduler("envsched", opened, SchedulerConfig(batch_size=8), 5, features)
    for step in range(6):
        given = ("--history", history) if step else ()
        status, manifest, _ = select(step, "--seed", 5, *given)
        batch = scheduler.select(step)
        assert status == 0
        assert manifest.batch == batch
        assert manifest.digests == scheduler.digests(step)
        records = [rewards_of(task, step) for task in batch.tasks]
        append_records(history, records)
        scheduler.observe(records)
    assert select(3, "--seed", 5, "--history", history)[1].batch.step == 3  # later lines do not count


def test_settings_from_file_and_line_reach_the_manifest(select, tmp_path):
    settings = tmp_path / "settings.yaml"
    settings.write_text(
        yaml.safe_dump({"scheduler": {"batch_size": 9, "coverage_share": 0.0}, "train": {"seed": 7, "scheduler": "random"}})
    )
    _, manifest, _ = select(0, "--config", settings, batch_size=None)
    assert (manifest.seed, manifest.scheduler, len(manifest.batch.picks)) == (7, "random", 9)
    _, manifest, _ = select(0, "--config", settings, "--set", "batch_size=6", "--seed", 1, "--scheduler", "paper", batch_size=None)
    assert (manifest.seed, manifest.scheduler, len(manifest.batch.picks)) == (1, "paper", 6)


@pytest.mark.parametrize("name", sorted(set(SchedulerConfig.model_fields) - {"batch_size"}))
def test_every_setting_can_be_given_by_name(select, name):
    default = SchedulerConfig.model_fields[name].get_default()
    changed = {
        "estimator": "paper",
        "graph_mode": "static",
        "prior": "pooled",
        "own_shrinkage": 1,
        "graph_shrinkage": 1,
        "similarity_penalty": 0.5,
        "num_cross": 5,
        "coverage_explore": 0.5,
        "relations": "[within]",
        "filters": "[progress]",
        "prior_variance": 0.05,
        "ddof": 0,
        "reward_low": -1,
        "calibration_full": 600,
    }.get(name)
    step = (lambda value: not value) if isinstance(default, bool) else (lambda value: value / 2 if isinstance(value, float) else value + 1)
    value = step(default) if changed is None else changed
    _, before, _ = select(0)
    status, after, err = select(0, "--set", f"{name}={value}")
    assert status == 0, err
    assert after.digests["config"] != before.digests["config"]


def test_topologies_from_a_file_change_the_features(select, pool, tmp_path):
    opened = Pool.from_envscaler(pool)
    topologies = extract_static(opened)
    write_topologies(tmp_path / "topologies.jsonl", topologies)
    _, plain, _ = select(0)
    _, given, _ = select(0, "--topologies", tmp_path / "topologies.jsonl")
    assert given == plain  # the static extractor's are what is used without a file
    other = dict(zip(topologies, extract_static(Pool.bundled()).values(), strict=False))
    write_topologies(tmp_path / "other.jsonl", other)
    assert select(0, "--topologies", tmp_path / "other.jsonl")[1].digests["features"] != plain.digests["features"]


def test_standard_output_holds_the_manifest_alone(capsys, pool, tmp_path):
    status, out, err = run_command(
        capsys, "select", "--pool", pool, "--step", 0, "--batch-size", 4, "--scheduler", "random", "--out", "-", "--cache", tmp_path
    )
    manifest = json.loads(out)
    assert status == 0
    assert manifest.keys() >= {"step", "picks", "relaxed", "digests", "seed", "version"}
    assert manifest["picks"][0].keys() >= {"task", "environment", "lane", "score", "terms"}
    assert err.startswith("step 0: 4 tasks in ")


def test_relaxations_are_written_and_said(select):
    status, manifest, err = select(0, batch_size=25)
    assert status == 0
    assert [relaxation.quota for relaxation in manifest.batch.relaxed] == ["max_per_environment"]
    assert "relaxed max_per_environment: the quotas leave 20 of 25 picks; raised from 4 to 5" in err


def write_line(path, **fields):
    with open(path, "a") as stream:
        stream.write(json.dumps({"task": "env_0-task_0", "step": 0, "rewards": [0.5, 1.0]} | fields) + "\n")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"rewards": [float("nan"), 1]}, r"step 0.*finite"),
        ({"rewards": [None, 1]}, r"rollout 0: no reward came but the status is 'ok'; only infra_error"),
        ({"rewards": [1.5, 1]}, r"1\.5"),
        ({"rewards": [{"total": 1}, 1]}, r"dict"),
        ({"task": "no-such"}, r"task 'no-such' is not in this pool"),
        ({"rewards": [0.5, 0.75], "policy_version": 0}, r"already has another record"),
    ],
)
def test_bad_lines_are_refused_and_the_old_manifest_stays(select, tmp_path, fields, says):
    history = tmp_path / "rollouts.jsonl"
    write_line(history)
    assert select(1, "--history", history)[0] == 0
    good = (tmp_path / "manifest_1.json").read_bytes()
    write_line(history, **fields)
    (tmp_path / "manifest_2.json").write_bytes(good)
    status, _, err = select(2, "--history", history)
    assert status == 2
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert re.search(says, err)


def test_repeats_disorder_and_a_truncated_last_line_are_survived(select, tmp_path):
    history = tmp_path / "rollouts.jsonl"
    write_line(history, step=1, task="env_1-task_1")
    write_line(history)
    _, plain, _ = select(2, "--history", history)
    write_line(history)
    with open(history, "a") as stream:
        stream.write('{"task": "env_2-task_0", "st')
    status, manifest, err = select(2, "--history", history)
    assert status == 0
    assert manifest == plain
    assert "line 4: truncated after 28 bytes, left out; the 3 records before it are kept" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--batch-size", 26), "the batch needs 26 tasks, the pool has 25"),
        (("--set", "half_live=3"), "did you mean 'half_life'?"),
        (("--scheduler", "papr"), "did you mean 'paper'?"),
        (("--config", "absent.yaml"), "absent.yaml"),
        (("--topologies", "absent.jsonl"), "absent.jsonl"),
        (("--step", 3), "--step 3 needs --history FILE"),
        (("--history", "absent.jsonl"), "absent.jsonl"),
    ],
)
def test_each_mistake_is_one_line_that_names_it(select, arguments, says):
    status, manifest, err = select(0, *arguments)
    assert status == 2
    assert manifest is None
    assert says in err
    assert err.count("\n") == 1


def test_a_manifest_that_cannot_be_written_is_one_line(capsys, pool, tmp_path):
    (tmp_path / "file").write_text("")
    status, _, err = run_command(
        capsys, "select", "--pool", pool, "--step", 0, "--batch-size", 4, "--scheduler", "random", "--out", tmp_path / "file" / "m.json"
    )
    assert status == 2
    assert err.startswith("error: ")


@pytest.fixture
def envscaler():
    folder = os.environ.get("ENVSCHED_TESTDATA")
    if not folder:
        pytest.skip("ENVSCHED_TESTDATA names no folder with the EnvScaler slice")
    return Path(folder) / "envscaler"


def test_step_0_covers_every_environment_that_has_a_task(capsys, envscaler, tmp_path):
    for batch_size, expected in ((16, 16), (22, 22), (40, 22)):
        out = tmp_path / "manifest.json"
        arguments = ("--pool", envscaler, "--step", 0, "--batch-size", batch_size, "--out", out, "--cache", tmp_path, *TFIDF)
        assert run_command(capsys, "select", *arguments)[0] == 0
        assert len({pick.environment for pick in read_manifest(out).batch.picks}) == expected


def test_a_batch_larger_than_the_envscaler_slice_is_refused(capsys, envscaler, tmp_path):
    status, _, err = run_command(capsys, "select", "--pool", envscaler, "--step", 0, "--batch-size", 64, "--out", tmp_path / "m.json")
    assert status == 2
    assert "the batch needs 64 tasks, the pool has 62" in err


def test_fifteen_steps_of_random_rewards_keep_every_quota(envscaler, tmp_path):
    pool = Pool.from_envscaler(envscaler)
    features = build_features(pool, FeatureConfig(encoder="tfidf"), cache=tmp_path)
    for seed in range(4):
        scheduler = build_scheduler("envsched", pool, SchedulerConfig(batch_size=16), seed, features)
        draws, batches = random.Random(seed), []
        for step in range(15):
            batch = scheduler.select(step)
            batches.append((step, pool.rows_of(batch.tasks).tolist()))
            assert batch.relaxed == ()
            scheduler.observe([_random_record(task, step, draws) for task in batch.tasks])
        assert broken_quotas(batches, np.asarray(pool.offsets)) == set()


def _random_record(task, step, draws):
    return RolloutRecord(task, step, tuple(round(draws.random(), 3) for _ in range(8)), (Status.OK,) * 8, step)


def test_a_separate_process_writes_the_same_bytes(select, pool, tmp_path):
    history = tmp_path / "rollouts.jsonl"
    for e in range(5):
        write_line(history, task=f"env_{e}-task_0", rewards=[0.0, 1.0, 0.5])
    assert select(1, "--history", history)[0] == 0
    again = tmp_path / "again.json"
    command = [sys.executable, "-m", "envsched", "select", "--pool", pool, "--history", history, "--step", "1", "--batch-size", "8"]
    subprocess.run([*command, "--out", again, "--cache", tmp_path / "elsewhere", *TFIDF], check=True, capture_output=True)
    assert again.read_bytes() == (tmp_path / "manifest_1.json").read_bytes()


def test_the_manifest_never_replaces_an_input(capsys, pool, tmp_path):
    history = tmp_path / "rollouts.jsonl"
    append_records(history, [RolloutRecord("env_0-task_0", 0, (0.0, 1.0), (Status.OK,) * 2, 0)])
    kept = history.read_bytes()
    status, _, err = run_command(capsys, "select", "--pool", pool, "--history", history, "--step", 1, "--batch-size", 4, "--out", history)
    assert status == 2
    assert re.search(r"--out .*rollouts\.jsonl is the file of --history, which would be lost", err)
    assert history.read_bytes() == kept


def test_a_device_is_written_to_and_stays(capsys, pool):
    command = ("select", "--pool", pool, "--step", 0, "--batch-size", 4, "--scheduler", "random", "--out", "/dev/null")
    assert run_command(capsys, *command)[0] == 0
    assert Path("/dev/null").is_char_device()


def test_a_history_without_an_earlier_step_is_said(select, tmp_path):
    (tmp_path / "rollouts.jsonl").write_text("")
    status, manifest, err = select(3, "--history", tmp_path / "rollouts.jsonl")
    assert status == 0
    assert manifest.batch.picks[0].lane == "cold_start"
    assert "rollouts.jsonl has no record of a step before 3" in err


def test_a_cache_that_cannot_be_written_is_said_and_costs_nothing_else(select, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    status, manifest, _ = select(0)
    assert status == 0
    assert len(manifest.batch.picks) == 8


def test_a_user_without_a_home_is_told_to_name_a_cache():
    with pytest.raises(ConfigError, match=r"no home directory; give --cache FOLDER, or set ENVSCHED_CACHE"):
        cache_folder(Path("~no-such-user/cache"))


def write_report(folder, path, masks, floors):
    path.write_text(json.dumps({"fingerprint": Pool.from_envscaler(folder).fingerprint, "masks": masks, "floors": floors}))
    return path


def test_findings_mask_what_can_teach_nothing(select, pool, tmp_path):
    report = write_report(pool, tmp_path / "findings.json", {"env_0-task_0": "all its checks are vacuous"}, {"env_0-task_1": 0.25})
    for given in (("--findings", report), ("--set", f"train.findings={report}")):
        _, manifest, _ = select(0, *given, batch_size=24)
        assert set(manifest.batch.tasks) == {task.key for task in Pool.from_envscaler(pool).tasks} - {"env_0-task_0"}
        assert manifest.batch.masked == {"env_0-task_0": "pool check: all its checks are vacuous"}
        assert next(pick.terms["floor"] for pick in manifest.batch.picks if pick.task == "env_0-task_1") == 0.25
    status, _, err = select(0, "--findings", report, "--scheduler", "random")
    assert status == 2
    assert "takes no findings" in err


def test_batches_whose_records_are_out_hold_leases(select, tmp_path):
    _, first, _ = select(0)
    history = tmp_path / "rollouts.jsonl"
    append_records(history, [rewards_of(task, 0) for task in first.batch.tasks[:5]])
    _, second, _ = select(1, "--history", history, "--selected", tmp_path / "manifest_0.json")
    assert set(second.batch.masked) == set(first.batch.tasks[5:])
    assert not set(second.batch.tasks) & set(first.batch.tasks[5:])


def test_a_batch_of_the_same_or_a_later_step_is_refused_as_selected(select, tmp_path):
    assert select(0)[0] == 0
    manifest = tmp_path / "manifest_0.json"
    kept = manifest.rename(tmp_path / "kept.json")
    status, _, err = select(0, "--selected", kept)
    assert status == 2
    assert f"error: --selected {kept} is a batch of step 0, and --step is 0: only batches of earlier steps keep their tasks out" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("given", "says"),
    [(("--scheduler", "random"), "scheduler 'random' keeps no leases"), (("--set", "lease_steps=0"), "lease_steps is 0, so --selected")],
)
def test_selected_batches_are_refused_where_nothing_holds_a_lease(select, tmp_path, given, says):
    history = tmp_path / "rollouts.jsonl"
    write_line(history)
    assert select(0)[0] == 0
    status, _, err = select(1, "--history", history, "--selected", tmp_path / "manifest_0.json", *given)
    assert status == 2
    assert says in err
    assert err.count("\n") == 1


def test_a_folder_that_is_made_for_the_manifest_is_said(capsys, pool, tmp_path):
    out = tmp_path / "new" / "m.json"
    words = ("select", "--pool", pool, "--step", 0, "--batch-size", 1, "--scheduler", "random", "--out", out)
    _, _, err = run_command(capsys, *words)
    assert err.splitlines() == [
        f"note: the folder {out.parent} is made for m.json",
        f"step 0: 1 task in 1 environment, written to {out}",
    ]
    assert "note" not in run_command(capsys, *words)[2]


def test_a_pool_that_changed_is_told_by_the_one_before(select, pool, tmp_path):
    """One process per step over two changes of the pool gives what a long process gives that carries its state over."""
    history, folders = tmp_path / "rollouts.jsonl", [shutil.copytree(pool, tmp_path / "first"), pool]
    scheduler = _scheduler_on(pool)
    for step in range(5):
        if step == 3:
            edit_json(pool / "tasks.json", lambda tasks: (tasks.pop(3), tasks[7].update(task="Something else"))[0])
            state, change = carry_over(scheduler.state_dict(), Pool.from_envscaler(pool), 3)
            scheduler = _scheduler_on(pool)
            scheduler.load_state_dict(state)
            assert (len(change.removed), len(change.edited)) == (1, 1)
        given = ("--previous-pool", f"{folders[0]}@3") if step >= 3 else ()
        status, manifest, err = select(step, "--seed", 5, *given, *(("--history", history) if step else ()))
        assert status == 0, err
        batch = scheduler.select(step)
        assert manifest.batch == batch
        assert manifest.digests == scheduler.digests(step)
        assert (manifest.pool_change is None) == (step != 3)
        records = [rewards_of(task, step) for task in batch.tasks]
        append_records(history, records)
        scheduler.observe(records)


def _scheduler_on(folder):
    opened = Pool.from_envscaler(folder)
    return build_scheduler("envsched", opened, SchedulerConfig(batch_size=8), 5, build_features(opened, FeatureConfig(encoder="tfidf")))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("pool",), "expected POOL@STEP"),
        (("bundled@3", "bundled@3"), "steps must ascend from 1, came 3, 3"),
        (("nowhere@3",), "nowhere"),
        (("bundled@x",), "expected POOL@STEP"),
    ],
)
def test_a_previous_pool_that_is_none_is_named(select, given, says):
    status, _, err = select(0, *(word for pool in given for word in ("--previous-pool", pool)))
    assert status == 2
    assert says in err
