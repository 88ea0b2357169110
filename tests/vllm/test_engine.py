"""The real vLLM engine writes the rollouts; run by scripts/test_vllm.sh, skipped where vLLM is not installed."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed here; scripts/test_vllm.sh runs these tests")

import torch
from transformers import AutoModelForCausalLM

from envsched.audit import audit_run
from envsched.history import read_records
from envsched.train.run_directory import RunDirectory, read_metrics
from tests.train.killing import ROOT
from tests.vllm.prompts import prompts

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
SETTINGS = str(ROOT / "tests/vllm/settings.yaml")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
PORT = 8127


def greedy_by_transformers(checkpoint):
    model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32)
    made = []
    for ids in prompts():
        row = torch.tensor([ids])
        out = model.generate(row, attention_mask=torch.ones_like(row), do_sample=False, max_new_tokens=24)[0, len(ids) :].tolist()
        made.append(out)
    return made


def same_prefix(ours, theirs):
    """Whether two greedy continuations agree up to the shorter one's end (the engines differ in what follows the end mark)."""
    length = min(len(ours), len(theirs))
    return length > 0 and ours[:length] == theirs[:length]


def check_run(folder):
    """Batch, records and manifest are of the same kind as without vLLM."""
    run = RunDirectory(folder)
    assert audit_run(folder).steps == (0, 1, 2)
    for step in range(3):
        for record in read_records(run.layout.rollouts(step))[0]:
            assert all(reward is not None for reward in record.rewards)
            assert all(tokens > 0 for tokens in record.tokens)
    records = [record for step in range(3) for record in read_records(run.layout.rollouts(step))[0]]
    assert any(actions for record in records for actions in record.trace), "tools were called"
    lines = read_metrics(run.metrics_file)
    for line in lines:
        assert line["sampling/importance_sampling_ratio/mean"] == pytest.approx(1, abs=1e-3), "the engine samples from the policy's weights"
        assert 0 <= line["vllm/prefix_cache_hit_rate"] <= 1
    assert lines[-1]["vllm/prefix_cache_hit_rate"] > 0.3, "turns of an episode and rollouts of an environment share prefixes"


def test_colocated_engine_follows_the_policy(tmp_path):
    """Train three steps, push once more, and compare greedy outputs, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.vllm.colocated", SETTINGS, str(tmp_path / "run"), str(tmp_path / "greedy.json")],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=1500,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
    check_run(tmp_path / "run")
    found = json.loads((tmp_path / "greedy.json").read_text())
    assert all(same_prefix(a, b) for a, b in zip(found, greedy_by_transformers(tmp_path / "run/checkpoint/checkpoint-3"), strict=True))


@pytest.fixture
def server(tmp_path):
    words = ["--model", str(ROOT / "models/tiny-policy"), "--port", str(PORT), "--dtype", "float32", "--max-model-len", "768"]
    words += ["--worker-extension-cls", "envsched.train.reload.ReloadingWorker"]
    words += ["--logprobs-mode", "processed_logprobs", "--max-logprobs", "-1"]
    environment = {**ENVIRONMENT, "VLLM_SERVER_DEV_MODE": "1"}
    path = tmp_path / "server.log"
    with path.open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *words], cwd=ROOT, env=environment, stdout=log, stderr=log
        )
        try:
            deadline = time.monotonic() + 900
            while not is_up():
                assert process.poll() is None, path.read_text()[-5000:]
                assert time.monotonic() < deadline, "the server did not come up"
                time.sleep(2)
            yield process
        finally:
            process.terminate()
            process.wait(timeout=60)


def is_up():
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=2).status == 200
    except (urllib.error.URLError, OSError):
        return False


def greedy_by_server():
    body = {"model": str(ROOT / "models/tiny-policy"), "prompt": prompts(), "max_tokens": 24, "temperature": 0, "return_token_ids": True}
    request = urllib.request.Request(
        f"http://127.0.0.1:{PORT}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    return [choice["token_ids"] for choice in json.load(urllib.request.urlopen(request, timeout=300))["choices"]]


def test_two_ranks_share_a_server_turn_by_turn(tmp_path, server):
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "train.py"]
    words += ["--config", SETTINGS, "--run-dir", str(tmp_path / "run"), "--set", "vllm.mode=server", "--set", f"vllm.port={PORT}"]
    done = subprocess.run(words, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
    check_run(tmp_path / "run")
    found = greedy_by_server()  # the last push was before step 2: the policy after two steps
    assert all(same_prefix(a, b) for a, b in zip(found, greedy_by_transformers(tmp_path / "run/checkpoint/checkpoint-2"), strict=True))
    start = greedy_by_transformers(ROOT / "models/tiny-policy")
    assert any(not same_prefix(a, b) for a, b in zip(found, start, strict=True)), "training changed what the policy says"
