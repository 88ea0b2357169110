"""vLLM's own server as the endpoint of ``envsched topology llm``; run by scripts/test_vllm.sh, skipped where vLLM is not installed.

The model is the tiny policy, which has never seen such a question: what fits is the work of the server's structured output.
"""

import json
import os
import random
import subprocess
import sys
import time

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed here; scripts/test_vllm.sh runs these tests")

import xgrammar
from transformers import AutoTokenizer

from envsched.pool import Pool
from envsched.pool.jsonl import write_jsonl
from envsched.topology import extract_static, read_topologies
from envsched.topology.llm.answer import answer_schema, read_answer
from envsched.types import Task
from tests.topology.endpoint import check_endpoint, some_tasks
from tests.train.killing import ROOT
from tests.vllm.greedy import greedy_by_server, greedy_by_transformers, same_prefix
from tests.vllm.prompts import prompts
from tests.vllm.serving import CONTEXT, MODEL

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
MORE = 16  # tokens of an answer


@pytest.mark.parametrize("num_checks", [0, 3])
def test_random_tokens_under_the_servers_grammar_are_a_record(num_checks):
    tokenizer = AutoTokenizer.from_pretrained(ROOT / "models/tiny-policy")
    known = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=len(tokenizer))
    grammar = xgrammar.GrammarCompiler(known).compile_json_schema(json.dumps(answer_schema(num_checks)), any_whitespace=False)
    generator = random.Random(num_checks)
    for _ in range(3):
        matcher, mask, ids = xgrammar.GrammarMatcher(grammar), xgrammar.allocate_token_bitmask(1, known.vocab_size), []
        while not matcher.is_terminated():
            matcher.fill_next_token_bitmask(mask)
            allowed = [i for i in range(known.vocab_size) if int(mask[0, i // 32]) >> (i % 32) & 1]
            ids.append(generator.choice(allowed))
            assert matcher.accept_token(ids[-1])
        assert read_answer(tokenizer.decode(ids, skip_special_tokens=True), num_checks, None).reward.checks == num_checks


def test_the_server_is_an_endpoint_like_any(tmp_path, server):
    topologies = check_endpoint(f"{server.ready().url}/v1", MODEL, "none", tmp_path)
    assert {topology.source for topology in topologies.values()} == {"llm"}, "structured output makes an untrained model's answers fit"


def test_a_question_longer_than_the_policys_own_context_is_answered_right_and_spoils_no_later_answer(server):
    """The two kinds take turns, so that the short ones get blocks of the key-value cache that the long ones had."""
    server.ready()
    policy, short = ROOT / "models/tiny-policy", prompts()
    long = [(ids * CONTEXT)[: CONTEXT - MORE] for ids in short[:2]]
    for questions in (short, long, short, long, short):
        found = greedy_by_server(questions, MORE)
        assert all(same_prefix(a, b) for a, b in zip(found, greedy_by_transformers(policy, questions, MORE), strict=True))


def command(server, pool, folder, *more):
    """``envsched topology llm`` as a person runs it."""
    words = [sys.executable, "-m", "envsched", "topology", "llm", "--pool", str(pool), "--model", MODEL]
    words += ["--out", str(folder / "topologies.jsonl"), "--cache", str(folder / "cache"), "--timeout", "600", *more]
    environment = {**os.environ, "OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "", "HF_HUB_OFFLINE": "1"}
    return subprocess.Popen(words, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)


def test_the_command_asks_once_and_a_task_that_fails_gets_its_static_record(tmp_path, server):
    short = some_tasks(5)
    first = short.tasks[0]
    long = Task("too-long", first.environment, "Sum up this text. " * 4000, first.initial_state, first.checks)
    pool = Pool(short.environments, [*short.tasks, long])
    write_jsonl(pool, tmp_path / "pool.jsonl")
    before = server.ready().requests_done()
    process = command(server, tmp_path / "pool.jsonl", tmp_path)
    _, said = process.communicate(timeout=1500)
    assert process.returncode == 0, said
    assert "5 tasks answered now, 0 before" in said
    assert "fallback too-long: " in said
    assert "context length" in said, "the server's own reason"
    assert server.requests_done() - before == 5
    written = (tmp_path / "topologies.jsonl").read_bytes()
    topologies = read_topologies(tmp_path / "topologies.jsonl", pool)
    assert [topologies[task.key].source for task in short.tasks] == ["llm"] * 5
    assert topologies["too-long"].source == "fallback"
    assert topologies["too-long"].reward == extract_static(pool)["too-long"].reward
    process = command(server, tmp_path / "pool.jsonl", tmp_path)
    _, said = process.communicate(timeout=1500)
    assert "0 tasks answered now, 5 before" in said
    assert server.requests_done() - before == 5, "nothing is asked twice"
    assert (tmp_path / "topologies.jsonl").read_bytes() == written


def test_a_server_killed_in_the_middle_leaves_what_was_had_and_the_rest_is_asked_later(tmp_path, server):
    pool = some_tasks(40)
    write_jsonl(pool, tmp_path / "pool.jsonl")
    before = server.ready().requests_done()
    process = command(server, tmp_path / "pool.jsonl", tmp_path, "--concurrency", "2")
    while process.poll() is None and server.requests_done() - before < 3:
        time.sleep(0.2)
    server.kill()
    _, said = process.communicate(timeout=900)
    assert process.returncode == 2, said
    last = said.strip().splitlines()[-1]
    assert "can't be reached" in last
    assert "Traceback" not in said
    assert not (tmp_path / "topologies.jsonl").exists(), "nothing half-written"
    kept = int(last.split(" of 40 tasks are answered and kept")[0].split("(")[-1])
    assert 0 < kept < 40
    process = command(server.ready(), tmp_path / "pool.jsonl", tmp_path)
    _, said = process.communicate(timeout=1500)
    assert process.returncode == 0, said
    cached = int(said.split(" tasks answered now, ")[1].split(" before")[0])
    assert cached >= kept
    assert server.requests_done() == 40 - cached, "only the rest is asked"
    assert list(read_topologies(tmp_path / "topologies.jsonl", pool)) == [task.key for task in pool.tasks]
