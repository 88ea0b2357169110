"""A whole run with filters on, whose policy guesses an identifier, and the same run on a pool that changed meanwhile."""

import json

import pytest

from envsched.audit import audit_run, read_manifest
from envsched.errors import AuditError
from envsched.history import read_records
from envsched.pool.opening import open_pool
from envsched.runtime.inspection import inspect_pool
from tests.filters.test_identifiers import CHECKS, SHOP, STATE
from tests.runtime.pools import tool
from tests.train.policies import save_steady_policy
from train import main

SETTINGS = """\
scheduler:
  batch_size: 2
  group_size: 2
  filters: [progress, guesses]
  top_visits: 2
  open_batches: 1
  guess_cases: 2
runtime: {num_workers: 1}
features: {encoder: tfidf}
train:
  checkpoint_every: 3
  learning_rate: 1.0e-9
  temperature: 0.3
  max_completion_tokens: 96
  max_turn_tokens: 40
  thinking: false
  system_prompt: none
  precision: fp32
  gradient_checkpointing: false
  device: cpu
  trackers: []
"""
GUESSED = [f"Ship the order of {name}." for name in ("ann", "bea", "cleo", "dora")]
NAMED = ["Ship ORD-7101.", "Please ship ORD-7101 today."]
TOOLS = [tool("find", "owner"), tool("ship", "order_id")]
SHIP = {"type": "function", "function": {"name": "ship", "arguments": {"order_id": "ORD-7101"}}}


def write_pool(folder, prompts):
    folder.mkdir(exist_ok=True)
    environment = {"env_class_name": "Shop", "env_class_code": SHOP, "environment_summary": "A shop", "tools": TOOLS}
    tasks = [
        {
            "task_id": key,
            "env_id": "shop",
            "env_class_name": "Shop",
            "init_config": STATE,
            "task": prompt,
            "checklist_with_func": [{"check_item": "", "check_func": check} for check in CHECKS],
        }
        for key, prompt in prompts.items()
    ]
    (folder / "environments.json").write_text(json.dumps({"shop": environment}))
    (folder / "tasks.json").write_text(json.dumps(tasks))
    return folder


def write_findings(pool_folder, path):
    path.write_text(json.dumps(inspect_pool(open_pool(pool_folder)).to_json()))
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Policy, pool, findings, settings."""
    folder = tmp_path_factory.mktemp("guarded")
    answer = [{"role": "assistant", "content": "", "tool_calls": [SHIP]}, {"role": "tool", "content": "shipped"}]
    talks = [[{"role": "user", "content": p}, *answer, {"role": "assistant", "content": "done"}] for p in (*GUESSED, *NAMED, "Ship it.")]
    save_steady_policy(folder / "policy", talks, TOOLS)
    prompts = {f"t{number}": prompt for number, prompt in enumerate((*GUESSED, *NAMED))}
    write_findings(write_pool(folder / "pool", prompts), folder / "findings.json")
    (folder / "settings.yaml").write_text(SETTINGS)
    return folder


def train(place, *more, findings="findings.json"):
    flags = ["--config", place / "settings.yaml", "--model-path", place / "policy", "--pool", place / "pool", "--run-dir", place / "run"]
    return main([*map(str, flags), "--set", f"train.findings={place / findings}", *more])


def records_of(place):
    return [record for path in sorted((place / "run/rollouts").glob("*.jsonl")) for record in read_records(path)[0]]


def manifest(place, step):
    return read_manifest(place / f"run/selector/task_manifest.step_{step}.json")


def test_guessed_rewards_are_found_kept_as_evidence_and_shut_their_tasks_out(place):
    assert train(place, "--max-steps", "6") == 0
    guessed = {f"t{number}" for number in range(len(GUESSED))}
    records = records_of(place)
    assert {record.rewards for record in records} == {(1.0, 1.0)}, "the policy ships the order, always"
    for record in records:
        cases = record.extra.get("guesses", [])
        assert len(cases) == (2 if record.task in guessed else 0)
        for number, case in enumerate(cases):
            assert (case["task"], case["step"], case["rollout"]) == (record.task, record.step, number)
            assert (case["identifiers"], case["reward"], case["renamed_reward"]) == (["ORD-7101"], 1.0, 0.5)
    assert {record.task for record in records} >= guessed
    masks = {task: words for step in range(6) for task, words in manifest(place, step).batch.masked.items()}
    barred = {task for task, words in masks.items() if "identifiers: " in words}
    assert barred
    assert barred <= guessed
    assert any("progress: 2 visits in a row at the top" in words for words in masks.values())
    assert all(pick.terms["floor"] == 0.5 for step in range(6) for pick in manifest(place, step).batch.picks)
    assert audit_run(place / "run").steps == tuple(range(6))


def test_a_removed_piece_of_evidence_is_found(place):
    path = next(path for path in sorted((place / "run/rollouts").glob("*.jsonl")) if '"guesses"' in path.read_text())
    whole = path.read_text()
    lines = [json.loads(line) for line in whole.splitlines()]
    del next(line for line in lines if "guesses" in line)["guesses"]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with pytest.raises(AuditError, match="rollouts of an earlier step changed"):
        audit_run(place / "run")
    path.write_text(whole)


def test_a_run_goes_on_with_a_pool_that_changed(place, capsys):
    prompts = {f"t{number}": prompt for number, prompt in enumerate((*GUESSED, *NAMED)) if number != 1} | {
        "t0": "Ship it.",
        "new": NAMED[0],
    }
    before = open_pool(place / "pool").fingerprint
    write_pool(place / "pool", prompts)
    assert train(place, "--max-steps", "8", "--resume") == 2
    assert "or go on with the changed one: --accept-pool-change" in capsys.readouterr().err
    accepted = ("--max-steps", "8", "--resume", "--accept-pool-change")
    assert train(place, *accepted) == 2
    assert "findings.json belongs to the pool" in capsys.readouterr().err
    write_findings(place / "pool", place / "findings_2.json")
    assert train(place, *accepted, findings="findings_2.json") == 0
    change = manifest(place, 6).pool_change
    assert (change["step"], change["before"], change["after"]) == (6, before, open_pool(place / "pool").fingerprint)
    assert (change["added"], change["removed"], change["edited"]) == (["new"], ["t1"], ["t0"])
    state = json.loads((place / "run/checkpoint/checkpoint-8/envsched.json").read_text())["scheduler"]
    assert not any(entry["task"] == "t1" or (entry["task"] == "t0" and entry["step"] < 6) for entry in state["history"])
    assert audit_run(place / "run").steps == tuple(range(8))
    whole = [manifest(place, step) for step in (6, 7)]
    (place / "run/checkpoint/checkpoint-8/envsched.json").unlink()  # killed before the first checkpoint with the new pool
    assert train(place, "--max-steps", "8", "--resume", findings="findings_2.json") == 2
    assert train(place, *accepted, findings="findings_2.json") == 0
    assert [manifest(place, step) for step in (6, 7)] == whole
    assert audit_run(place / "run").steps == tuple(range(8))
    assert train(place, "--max-steps", "9", "--resume", findings="findings_2.json") == 0, "from now on the new pool is the run's"
    assert audit_run(place / "run").steps == tuple(range(9))


def test_the_outline_of_the_pool_that_is_gone_vouches_for_its_steps(place):
    ledger = place / "run/selector/pools.json"
    whole = ledger.read_text()
    for change, words in ((lambda c: c["pools"][0].update(until=5), "step 5"), (lambda c: c["pools"].clear(), "step 0")):
        content = json.loads(whole)
        change(content)
        ledger.write_text(json.dumps(content))
        with pytest.raises(AuditError, match=words):
            audit_run(place / "run")
    ledger.write_text(whole)
    assert audit_run(place / "run").steps == tuple(range(9))
