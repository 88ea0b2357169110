import json
import re
import shutil

import numpy as np
import pytest

from envsched.audit import audit_run, write_batch, write_epochs, write_input_audit
from envsched.baselines import SCHEDULERS, build_scheduler
from envsched.config import load_config
from envsched.errors import AuditError, ConfigError
from envsched.features import Features
from envsched.history import append_records, read_records
from envsched.pool.opening import open_pool
from envsched.scheduler import carry_over
from tests.audit.runs import edit_json, make_run, write_pool
from tests.scheduler.worlds import make_features, records_of


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "run", write_pool(tmp_path / "pool"), steps=5)


def refused(layout):
    with pytest.raises(AuditError) as error:
        audit_run(layout.folder)
    return str(error.value)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_an_untouched_run_of_every_scheduler_audits_cleanly(tmp_path, name):
    layout = make_run(tmp_path, "synthetic:8x6", steps=6, scheduler=name)
    report = audit_run(layout.folder)
    assert report.steps == tuple(range(6))
    assert report.num_records == 72
    assert report.notes == ()


def test_a_prepared_run_and_an_empty_one_audit_cleanly(tmp_path):
    prepared = make_run(tmp_path / "prepared", "synthetic:8x6", steps=0, selected=1)
    assert audit_run(prepared.folder).steps == (0,)
    empty = make_run(tmp_path / "empty", "synthetic:8x6", steps=0)
    assert audit_run(empty.folder).steps == ()


def test_a_killed_run_audits_cleanly_and_notes_the_truncated_line(tmp_path):
    layout = make_run(tmp_path, "synthetic:8x6", steps=3, selected=4)
    whole = layout.rollouts(2).read_text()
    layout.rollouts(3).write_text(whole[: len(whole) // 2].replace('"step":2', '"step":3'))
    report = audit_run(layout.folder)
    assert report.steps == (0, 1, 2, 3)
    assert len(report.notes) == 2
    assert re.search(r"step_3\.jsonl, line \d+: truncated", report.notes[0])
    assert re.search(r"step_3\.jsonl: no later batch or input audit vouches for its \d+ records", report.notes[1])


@pytest.mark.parametrize("step", [0, 2, 4])
def test_one_flipped_reward_is_found_at_the_next_step(run, step):
    lines = run.rollouts(step).read_text().splitlines()
    record = json.loads(lines[3])
    position = next(g for g, reward in enumerate(record["rewards"]) if reward is not None)
    record["rewards"][position] = 1.0 if record["rewards"][position] < 0.5 else 0.0
    lines[3] = json.dumps(record)
    run.rollouts(step).write_text("\n".join(lines) + "\n")
    assert re.match(rf"step {step + 1}: the input audit has history digest .*rollouts of an earlier step changed", refused(run))


def test_a_flipped_reward_is_found_without_the_input_audits(run):
    for step in run.input_audit_steps():
        run.input_audit(step).unlink()
    text = run.rollouts(1).read_text()
    run.rollouts(1).write_text(text.replace("0.5", "0.75", 1))
    assert refused(run).startswith("step 2: the manifest has history digest")


def test_one_changed_text_of_the_pool_is_found_at_the_first_step(run, tmp_path):
    edit_json(tmp_path / "pool" / "tasks.json", lambda tasks: tasks[7].update(task=tasks[7]["task"] + "!"))
    assert re.match(r"step 0: features file .* this pool has", refused(run))


def test_one_changed_text_is_found_where_no_features_are_used(tmp_path):
    layout = make_run(tmp_path / "run", write_pool(tmp_path / "pool"), steps=2, scheduler="random")
    edit_json(tmp_path / "pool" / "tasks.json", lambda tasks: tasks[7].update(task="other"))
    assert re.match(r"step 0: the input audit has pool digest .* of the pool changed", refused(layout))


def test_changed_features_are_found_even_under_a_digest_of_their_own(run, tmp_path):
    pool = open_pool(tmp_path / "pool")
    features = Features.load(run.features, pool)
    within = features.within.copy()
    within[[0, 1]] = within[[1, 0]]
    Features(within, features.cross, features.pool_fingerprint, features.encoder).save(run.features)
    assert re.match(r"step 0: the input audit has features digest .*the features file changed", refused(run))


def test_missing_or_damaged_features_are_named(run):
    content = run.features.read_bytes()
    run.features.write_bytes(content[: len(content) // 2])
    assert re.match(r"step 0: .*features\.npz", refused(run))
    run.features.unlink()
    assert re.match(r"step 0: .*features\.npz", refused(run))


def swap_pick(manifest):
    used = {pick["task"] for pick in manifest["picks"]}
    pick = manifest["picks"][4]
    pick["task"] = next(f"{pick['environment']}-task_{i}" for i in range(5) if f"{pick['environment']}-task_{i}" not in used)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (swap_pick, r"pick 4 differs in task: the manifest has 'env_\d-task_\d', derived is 'env_\d-task_\d'"),
        (lambda m: m["picks"].insert(0, m["picks"].pop(1)), r"pick 0 differs in task"),
        (lambda m: m["picks"].pop(), r"the manifest has 11 picks, derived are 12"),
        (lambda m: m["picks"][11].update(score=m["picks"][11]["score"] + 1e-6), r"pick 11 differs in score"),
        (lambda m: m["picks"][11]["terms"].update(own=0.123), r"pick 11 differs in terms"),
        (lambda m: m["picks"][2].update(lane="exploitation"), r"pick 2 differs in lane"),
        (lambda m: m["picks"][2].update(bound_by=["filters"]), r"pick 2 differs in bound_by"),
        (lambda m: m.update(relaxed=[{"quota": "filters", "reason": "so"}]), r"the manifest has relaxations"),
        (
            lambda m: m["graph"].update(mode="kernel"),
            r"the manifest has the graph \{'mode': 'kernel', 'exact': True, 'prior': 'residual'\}, derived is",
        ),
        (lambda m: m.update(gap=0.01), r"the manifest has gap 0\.01, derived is 0\.0"),
        (lambda m: m.update(seed=4), r"the manifest has seed 4, the run 3"),
        (lambda m: m.update(step=2), r"the manifest says step 2"),
        (lambda m: m["digests"].update(config="0" * 64), r"the manifest has config digest 0{12}"),
        (lambda m: m.pop("picks"), r".*task_manifest\.step_3\.json is no manifest"),
    ],
)
def test_a_changed_manifest_is_found_at_its_step(run, change, says):
    edit_json(run.manifest(3), change)
    assert re.match(f"step 3: {says}", refused(run))


def test_a_changed_setting_is_found(run):
    run.config.write_text(run.config.read_text().replace("half_life: 8.0", "half_life: 9.0", 1))
    assert re.match(r"step 0: the input audit has config digest .*resolved_config\.yaml changed", refused(run))


def test_a_changed_input_audit_is_found(run):
    edit_json(run.input_audit(5), lambda audit: audit["history"].update(records=59))
    assert refused(run).startswith("step 5: the input audit has history {'records': 59")


def test_a_removed_rollouts_file_is_found(run):
    run.rollouts(2).unlink()
    assert refused(run).startswith("step 3: the input audit has history digest")


def test_a_moved_pool_and_a_folder_that_is_no_run_are_named(run, tmp_path):
    shutil.move(tmp_path / "pool", tmp_path / "elsewhere")
    assert re.match(r"step 0: .*pool: no such file or folder", refused(run))
    assert audit_run(run.folder, str(tmp_path / "elsewhere")).steps == (0, 1, 2, 3, 4)
    with pytest.raises(ConfigError, match=r"no run directory: it has no resolved_config\.yaml"):
        audit_run(tmp_path / "elsewhere")


def test_a_config_that_can_not_be_read_is_no_verdict(run):
    run.config.write_text(run.config.read_text() + "selektion: {}\n")
    with pytest.raises(ConfigError, match=r"unknown section 'selektion'"):
        audit_run(run.folder)


def test_records_that_came_in_late_count_from_when_they_came(tmp_path):
    """An asynchronous trainer: two groups of step 1 arrive with the records of step 3."""
    layout = make_run(tmp_path, "synthetic:8x6", steps=1, selected=1)
    config, pool = load_config(layout.config), open_pool("synthetic:8x6")
    scheduler = build_scheduler("envsched", pool, config.scheduler, 3, make_features(pool))
    late = []
    for step in range(5):
        batch = scheduler.select(step)
        write_batch(layout.folder, batch, scheduler)
        records = records_of(batch, missing=0.1)
        if step == 1:
            records, late = records[2:], records[:2]
        if step == 3:
            records = records + late
        layout.rollouts(step).unlink(missing_ok=True)
        append_records(layout.rollouts(step), records)
        scheduler.observe(records)
    layout.input_audit(1).unlink(missing_ok=True)
    write_batch(layout.folder, scheduler.select(5), scheduler)
    report = audit_run(layout.folder)
    assert report.steps == (0, 1, 2, 3, 4, 5)
    assert report.num_records == 60


def drop(*paths):
    for path in paths:
        path.unlink()


def move_first_line(source, target):
    first, *rest = source.read_text().splitlines(keepends=True)
    source.write_text("".join(rest))
    target.write_text(target.read_text() + first)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda run: drop(run.manifest(3)),
            r"step 3: .*manifest\.step_3\.json is missing; step_3\.jsonl or input_audit\.step_3",
        ),
        (lambda run: drop(run.manifest(0), run.input_audit(0)), r"step 0: .*is missing; step_0\.jsonl is there without it"),
        (lambda run: drop(run.manifest(2), run.input_audit(2), run.rollouts(2)), r"step 2: .*is missing; restore"),
        (lambda run: drop(*run.folder.glob("selector/*.json")), r"step 0: .*is missing"),
        (lambda run: run.rollouts(17).write_text(""), r"step 17: .*is missing"),
        (lambda run: move_first_line(run.rollouts(3), run.rollouts(2)), r"step 3: .*step_2\.jsonl has a record of step 3"),
        (lambda run: run.manifest(2).write_text("[" * 100_000), r"step 2: .*not valid JSON: nested too deep"),
        (lambda run: edit_json(run.input_audit(2), lambda audit: audit.update(digests=[])), r"step 2: the input audit has digests \[\]"),
    ],
)
def test_what_is_gone_added_or_moved_is_found(run, change, says):
    change(run)
    assert re.match(says, refused(run))


def test_last_rollouts_must_fit_where_nothing_vouches_for_them(run):
    drop(run.input_audit(5))
    assert len(audit_run(run.folder).notes) == 1
    run.rollouts(4).write_text('{"task": "nobody", "step": 4, "rewards": [0, 1]}\n')
    assert re.match(r"step 4: task 'nobody' is not in this pool", refused(run))


def rewrite_features(run, **changes):
    with np.load(run.features) as stored:
        arrays = {name: stored[name] for name in stored.files}
    with open(run.features, "wb") as stream:
        np.savez(stream, **{name: changes[name](value) if name in changes else value for name, value in arrays.items()})


@pytest.mark.parametrize(
    "changes",
    [
        {"within": lambda rows: rows * 2},
        {"within": lambda rows: rows * np.nan},
        {"cross": np.ravel},
        {"within": lambda rows: rows[:-1]},
        {"header": lambda raw: np.frombuffer(b"[]", dtype=np.uint8)},
        {"header": lambda raw: np.frombuffer(raw.tobytes().replace(b'"encoder"', b'"decoder"'), dtype=np.uint8)},
    ],
)
def test_features_altered_by_hand_are_named(run, changes):
    rewrite_features(run, **changes)
    assert re.match(r"step 0: .*features\.npz", refused(run))


def test_a_relative_pool_is_found_from_any_folder(run, tmp_path, monkeypatch):
    run.config.write_text(run.config.read_text().replace(str(tmp_path / "pool"), "../pool"))
    (tmp_path / "away").mkdir()
    monkeypatch.chdir(tmp_path / "away")
    assert audit_run("../run").steps == (0, 1, 2, 3, 4)


@pytest.mark.parametrize("name", ["envsched", "random", "adarft"])
def test_a_run_over_changed_pools_audits_cleanly_and_what_is_gone_is_vouched_for(tmp_path, name):
    """Two changes in place: the pools before are known by their outlines alone."""
    folder = write_pool(tmp_path / "pool")
    layout = make_run(tmp_path / "run", folder, steps=3, scheduler=name)
    config, state, epochs = load_config(layout.config), None, []
    for step in (3, 5):
        before = open_pool(folder)
        scheduler = build_scheduler(name, before, config.scheduler, 3, make_features(before))
        if state is not None:
            scheduler.load_state_dict(state)
        scheduler.observe([record for earlier in range(step) for record in read_records(layout.rollouts(earlier))[0]])
        edit_json(folder / "tasks.json", lambda tasks, step=step: (tasks.pop(step), tasks[step + 5].update(task=f"Something else {step}")))
        pool = open_pool(folder)
        state, change = carry_over(scheduler.state_dict(), pool, step)
        assert (len(change.removed), len(change.edited)) == (1, 1)
        epochs.append((step, before.outline))
        write_epochs(layout, epochs)
        make_features(pool).save(layout.features_since(step))
        scheduler = build_scheduler(name, pool, config.scheduler, 3, make_features(pool))
        scheduler.load_state_dict(state)
        for following in (step, step + 1):
            batch = scheduler.select(following)
            write_batch(layout.folder, batch, scheduler)
            append_records(layout.rollouts(following), records_of(batch, missing=0.1))
            scheduler.observe(records_of(batch, missing=0.1))
            write_input_audit(layout.folder, following + 1, scheduler)
        state = scheduler.state_dict()
    if name == "adarft":
        assert re.match("step 0: adarft reads the content of tasks, and the pool of the steps before 3 is gone", refused(layout))
        return
    assert audit_run(layout.folder).steps == tuple(range(7))
    edit_json(layout.manifest(5), lambda manifest: manifest["pool_change"]["removed"].pop())
    assert refused(layout).startswith("step 5: the manifest has pool change")
    edit_json(layout.pools, lambda content: content["pools"].pop())
    assert re.match(r"step [0-5]: ", refused(layout))
