"""The real vLLM engine writes the rollouts; run by scripts/test_vllm.sh, skipped where vLLM is not installed."""

import json
import subprocess
import sys
import time

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed here; scripts/test_vllm.sh runs these tests")

from envsched.audit import audit_run
from envsched.history import read_records
from envsched.train.run_directory import RunDirectory, read_metrics
from tests.evaluate.small import write_small
from tests.train.killing import ROOT, records, steps_in
from tests.vllm.greedy import greedy_by_server, greedy_by_transformers, same_prefix
from tests.vllm.prompts import prompts
from tests.vllm.scores import EVAL_TOKENS, check_scores
from tests.vllm.serving import ENVIRONMENT, PORT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
SETTINGS = str(ROOT / "tests/vllm/settings.yaml")


def check_run(folder):
    """Batch, records and manifest are of the same kind as without vLLM."""
    run = RunDirectory(folder)
    assert audit_run(folder).steps == (0, 1, 2)
    made = [record for step in range(3) for record in read_records(run.layout.rollouts(step))[0]]
    for record in made:
        assert all(reward is not None for reward in record.rewards)
        assert all(tokens > 0 for tokens in record.tokens)
    assert any(actions for record in made for actions in record.trace), "tools were called"
    lines = read_metrics(run.metrics_file)
    for line in lines:
        assert line["sampling/importance_sampling_ratio/mean"] == pytest.approx(1, abs=1e-3), "the engine samples from the policy's weights"
        assert 0 <= line["vllm/prefix_cache_hit_rate"] <= 1
    assert max(line["vllm/prefix_cache_hit_rate"] for line in lines) > 0.3, (
        "turns of an episode and rollouts of an environment share prefixes"
    )


@pytest.fixture(scope="module")
def dialogues(tmp_path_factory):
    return write_small(tmp_path_factory.mktemp("bfcl"))


def test_colocated_engine_follows_the_policy(tmp_path, dialogues):
    """Train three steps with scores after the second and the last, push once more, and compare greedy outputs."""
    words = [SETTINGS, str(tmp_path / "run"), str(tmp_path / "greedy.json"), str(dialogues)]
    done = in_a_process("tests.vllm.colocated", *words)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
    check_run(tmp_path / "run")
    check_scores(tmp_path / "run", dialogues, (2, 3))
    found = json.loads((tmp_path / "greedy.json").read_text())
    checkpoints = [tmp_path / f"run/checkpoint/checkpoint-{number}" for number in (2, 3)]
    assert all(same_prefix(a, b) for a, b in zip(found["final"], greedy_by_transformers(checkpoints[1], prompts()), strict=True))
    for checkpoint, said in zip(checkpoints, found["validation"], strict=True):
        questions, answers = zip(*said, strict=True)
        assert all(same_prefix(a, b) for a, b in zip(answers, greedy_by_transformers(checkpoint, questions, EVAL_TOKENS), strict=True))
        assert max(map(len, answers)) <= EVAL_TOKENS


def test_speculation_reaches_the_engine_which_can_not_use_it_on_a_cpu(tmp_path):
    """When the second half fails, this build has learnt it: take the refusal out of ``combinations.py``."""
    done = in_a_process("tests.vllm.speculative")
    assert 'drafts ["ngram", 3, 4]' in done.stdout, done.stdout[-3000:] + done.stderr[-5000:]
    assert "written" not in done.stdout
    assert "rejection_sampler.py" in done.stdout + done.stderr
    settings = ["--set", "vllm.mode=colocate", "--set", "vllm.speculation=ngram"]
    refused = subprocess.run(
        [sys.executable, "train.py", "--config", SETTINGS, "--run-dir", str(tmp_path / "run"), *settings],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert refused.returncode == 2
    assert "error: vllm.speculation ngram needs CUDA" in refused.stderr


def in_a_process(*module_and_words):
    command = [sys.executable, "-m", *module_and_words]
    return subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=1700)


def by_server(folder, dialogues, *more):
    """Words of a run that generates at the server and is scored after two steps and the last."""
    settings = [
        "vllm.mode=server",
        f"vllm.port={PORT}",
        f"train.eval_data={dialogues}",
        "train.eval_tasks=1",
        f"train.eval_tokens={EVAL_TOKENS}",
    ]
    words = [word for setting in settings for word in ("--set", setting)]
    return ["train.py", "--config", SETTINGS, "--run-dir", str(folder), "--eval-every", "2", *words, *more]


def test_two_ranks_share_a_server_turn_by_turn(tmp_path, server, dialogues):
    server.ready()
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    done = subprocess.run(
        [*launcher, *by_server(tmp_path / "run", dialogues)], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=1500
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
    check_run(tmp_path / "run")
    check_scores(tmp_path / "run", dialogues, (2, 3))
    found = greedy_by_server(prompts())  # the last push was for the scores after three steps
    assert all(
        same_prefix(a, b) for a, b in zip(found, greedy_by_transformers(tmp_path / "run/checkpoint/checkpoint-3", prompts()), strict=True)
    )
    start = greedy_by_transformers(ROOT / "models/tiny-policy", prompts())
    assert any(not same_prefix(a, b) for a, b in zip(found, start, strict=True)), "training changed what the policy says"


def test_a_server_that_goes_away_stops_the_run_and_resume_goes_on_with_the_same_batch(tmp_path, server, dialogues):
    server.ready()
    run = tmp_path / "run"
    process = subprocess.Popen([sys.executable, *by_server(run, dialogues)], cwd=ROOT, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and steps_in(run) < 1:  # the next step's batch is decided, its rollouts are not made
        time.sleep(0.1)
    server.kill()
    began = time.monotonic()
    _, said = process.communicate(timeout=600)
    assert process.returncode == 2, said[-3000:]
    assert time.monotonic() - began < 400  # a minute of TRL's attempts, on a machine that may be busy
    last = said.strip().splitlines()[-1]
    assert last.startswith("error: the vLLM server at http://127.0.0.1"), said[-3000:]
    assert "went away" in last
    assert "--resume" in last
    assert "Traceback" not in said
    num_steps = steps_in(run)
    assert 1 <= num_steps < 3
    layout = RunDirectory(run).layout
    kept = {path.name: path.read_bytes() for path in (run / "selector").glob("task_manifest.step_*.json")}
    assert layout.manifest(num_steps).name in kept, "the batch that had no server"
    made = [records(layout.rollouts(step)) for step in range(num_steps)]
    server.ready()
    words = [sys.executable, *by_server(run, dialogues, "--resume")]
    done = subprocess.run(words, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
    check_run(run)
    check_scores(run, dialogues, (2, 3))
    assert {name: (run / "selector" / name).read_bytes() for name in kept} == kept, "the same batches"
    assert [records(layout.rollouts(step)) for step in range(num_steps)] == made, "what was recorded stays"
