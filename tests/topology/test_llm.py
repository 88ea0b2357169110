"""The extractor by a language model, against a local server that speaks the protocol."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from envsched.errors import StateError
from envsched.pool import Pool
from envsched.topology import extract_static, read_topologies
from envsched.topology.llm import LLMConfig, estimate_llm, extract_llm
from envsched.topology.llm.answer import AnswerError, answer_schema, read_answer
from envsched.topology.llm.endpoint import EndpointError
from envsched.topology.schema import Part
from envsched.types import Check, Environment, Task

from .endpoint import check_endpoint
from .protocol import Say, good_answer, serving

KEY = "sk-a-secret-that-must-not-be-seen"


@pytest.fixture
def pool() -> Pool:
    environments = [Environment("e0"), Environment("e1")]
    tasks = [
        Task(
            f"t{i:02d}", f"e{i % 2}", f"Update thing {i}", {}, tuple(Check("is it so?", f"def check_func(s): return {i}") for _ in range(3))
        )
        for i in range(12)
    ]
    return Pool(environments, tasks)


def config(server, tmp_path: Path, **changes) -> LLMConfig:
    base = {"model": "m", "cache": tmp_path / "cache", "base_url": server.url, "concurrency": 4, "timeout": 5.0}
    return LLMConfig(**{**base, **changes})


def question(body: dict) -> str:
    return re.search(r"Update thing (\d+)", json.dumps(body))[1]


def test_every_task_is_asked_once_with_a_schema_and_answered_in_pool_order(pool, tmp_path):
    with serving(lambda body, _: Say(good_answer(body), delay=0.3)) as server:  # long enough for requests to overlap
        topologies, report = extract_llm(pool, config(server, tmp_path), KEY)
    assert list(topologies) == [task.key for task in pool.tasks]
    assert {topology.source for topology in topologies.values()} == {"llm"}
    assert all(topology.reward.equality == 3 for topology in topologies.values())
    assert sorted(map(question, server.bodies), key=int) == [str(i) for i in range(12)]
    assert all(body["response_format"]["json_schema"]["strict"] for body in server.bodies)
    assert 1 < server.most_running <= 4
    assert (report.asked, report.cached, report.failures) == (12, 0, {})
    assert (report.usage.requests, report.usage.input_tokens, report.usage.output_tokens) == (12, 1200, 240)
    assert server.keys == {f"Bearer {KEY}"}


def test_a_second_run_asks_nothing_and_gives_the_same(pool, tmp_path):
    with serving(lambda body, _: Say(good_answer(body))) as server:
        first, _ = extract_llm(pool, config(server, tmp_path), KEY)
        assert estimate_llm(pool, config(server, tmp_path)).tasks == 0
        second, report = extract_llm(pool, config(server, tmp_path), KEY)
    assert second == first
    assert len(server.bodies) == 12
    assert (report.asked, report.cached, report.usage.requests) == (0, 12, 0)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (Say("I would rather not say."), "no complete JSON object"),
        (Say('{"execution": '), "no complete JSON object"),
        (Say('{"execution": {}, "reward": {}}'), "execution.phases"),
        (Say(None, refusal="I can't help with that"), "the model refused: I can't help with that"),
        (Say('{"execution": {"phases', finish="length"), "cut off"),
        (Say(raw=json.dumps({"id": "c", "object": "x", "created": 0, "model": "m", "choices": []}).encode()), "no complete JSON object"),
    ],
    ids=["prose", "half", "fields", "refusal", "cut", "empty"],
)
def test_an_unusable_answer_is_asked_again_once_and_then_reported(pool, tmp_path, broken, words):
    def script(body, _):
        return broken if question(body) == "3" else Say(good_answer(body))

    with serving(script) as server:
        topologies, report = extract_llm(pool, config(server, tmp_path), KEY)
        asked = [body for body in server.bodies if question(body) == "3"]
        assert len(asked) == 2
        assert words in asked[1]["messages"][-1]["content"]
        assert words in report.failures.pop("t03")
        assert not report.failures
        static = extract_static(pool)["t03"]
        assert topologies["t03"].source == "fallback"
        assert topologies["t03"].unread == tuple(sorted({*static.unread, Part.ANSWER}))
        assert (topologies["t03"].execution, topologies["t03"].reward) == (static.execution, static.reward)
        extract_llm(pool, config(server, tmp_path), KEY)
        assert len(server.bodies) == 13  # the unusable answers are known too


def test_a_second_answer_that_fits_is_taken(pool, tmp_path):
    def script(body, _):
        return Say("no" if len(body["messages"]) == 2 else good_answer(body))

    with serving(script) as server:
        topologies, report = extract_llm(pool, config(server, tmp_path), KEY)
    assert {topology.source for topology in topologies.values()} == {"llm"}
    assert report.usage.requests == 24


def test_a_cut_answer_gets_more_room(pool, tmp_path):
    def script(body, _):
        return Say(good_answer(body)) if body["max_tokens"] == 128 else Say('{"exec', finish="length")

    with serving(script) as server:
        _, report = extract_llm(pool, config(server, tmp_path, answer_tokens=64), KEY)
    assert not report.failures


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_endpoint_is_asked_again_after_the_time_it_names(pool, tmp_path, status):
    seen: set[str] = set()

    def script(body, _):
        if question(body) in seen:
            return Say(good_answer(body))
        seen.add(question(body))
        return Say(status=status, headers={"Retry-After": "0.2"})

    with serving(script) as server:
        start = time.monotonic()
        topologies, report = extract_llm(pool, config(server, tmp_path, concurrency=12), KEY)
    assert {topology.source for topology in topologies.values()} == {"llm"}
    assert report.usage.requests == 24
    assert time.monotonic() - start > 0.4  # the first task alone, then the others together


def test_a_task_that_fails_for_good_does_not_stop_the_others_and_is_asked_again_next_time(pool, tmp_path):
    down = True

    def script(body, _):
        return Say(status=500) if down and question(body) == "5" else Say(good_answer(body))

    with serving(script) as server:
        topologies, report = extract_llm(pool, config(server, tmp_path, attempts=2), KEY)
        assert list(report.failures) == ["t05"]
        assert "2 attempts failed" in report.failures["t05"]
        assert topologies["t05"].source == "fallback"
        down = False
        topologies, report = extract_llm(pool, config(server, tmp_path, attempts=2), KEY)
    assert (report.asked, report.cached, report.failures) == (1, 11, {})
    assert topologies["t05"].source == "llm"


def test_a_slow_answer_times_out_and_is_asked_again(pool, tmp_path):
    def script(body, position):
        return Say(good_answer(body), delay=1.0 if position == 0 else 0.0)

    with serving(script) as server:
        _, report = extract_llm(pool, config(server, tmp_path, timeout=0.3), KEY)
    assert not report.failures
    assert report.usage.requests == 13


@pytest.mark.parametrize(
    ("refused", "final"),
    [
        (("json_schema",), "json_object"),
        (("json_schema", "json_object"), None),
    ],
)
def test_an_endpoint_without_structured_output_is_spoken_to_as_it_can(pool, tmp_path, refused, final):
    def script(body, _):
        wanted = body.get("response_format", {}).get("type")
        return (
            Say("response_format is not supported", status=400) if wanted in refused else Say(f"Sure!\n```json\n{good_answer(body)}\n```")
        )

    with serving(script) as server:
        topologies, report = extract_llm(pool, config(server, tmp_path), KEY)
        assert {topology.source for topology in topologies.values()} == {"llm"}
        assert report.usage.requests == 12 + len(refused)
        assert [body.get("response_format", {}).get("type") for body in server.bodies][-1] == final
        extract_llm(
            Pool(pool.environments, [*pool.tasks, Task("z", "e0", "Update thing 99", {}, pool.tasks[0].checks)]),
            config(server, tmp_path),
            KEY,
        )
        assert len(server.bodies) == 13 + len(refused)  # the dialect is remembered


def test_an_endpoint_with_other_names_for_limits_is_spoken_to_as_it_can(pool, tmp_path):
    def script(body, _):
        if "max_tokens" in body:
            return Say("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", status=400)
        if "temperature" in body:
            return Say("Unsupported value: 'temperature' does not support 0", status=400)
        return Say(good_answer(body))

    with serving(script) as server:
        _, report = extract_llm(pool, config(server, tmp_path), KEY)
    assert not report.failures
    assert report.usage.requests == 14


@pytest.mark.parametrize("concurrency", [1, 4])
def test_the_caps_are_hard(pool, tmp_path, concurrency):
    with serving(lambda body, _: Say(good_answer(body))) as server:
        topologies, report = extract_llm(pool, config(server, tmp_path, max_requests=5, concurrency=concurrency), KEY)
        assert len(server.bodies) == 5
        assert len(report.failures) == 7
        assert all("cap of 5 requests" in reason for reason in report.failures.values())
        assert len(topologies) == 12
        _, report = extract_llm(pool, config(server, tmp_path, max_tokens=2300, concurrency=concurrency), KEY)
        assert report.usage.tokens <= 2300
        assert all("cap of 2300 tokens" in reason for reason in report.failures.values())
        assert 0 < len(report.failures) < 7


def test_the_estimate_is_made_without_asking_and_bounds_what_is_sent(pool, tmp_path):
    with serving(lambda body, _: Say(good_answer(body))) as server:
        estimate = estimate_llm(pool, config(server, tmp_path))
        assert not server.bodies
        extract_llm(pool, config(server, tmp_path), KEY)
    sent = sum(len(message["content"]) for body in server.bodies for message in body["messages"])
    assert (estimate.tasks, estimate.cached) == (12, 0)
    assert sent / 4 < estimate.input_tokens < sent / 2


@pytest.mark.parametrize("status", [401, 403, 404])
def test_an_endpoint_that_can_not_work_stops_the_run_and_shows_no_key(pool, tmp_path, status):
    with serving(lambda body, _: Say(f"bad key {KEY}", status=status)) as server:
        with pytest.raises(EndpointError, match="OPENAI_BASE_URL") as caught:
            extract_llm(pool, config(server, tmp_path), KEY)
        assert len(server.bodies) == 1
    assert KEY not in str(caught.value)
    assert KEY not in "".join(map(str, (caught.value.__cause__, caught.value.args)))


def test_an_unreachable_endpoint_is_named(pool, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(EndpointError, match=r"can't be reached: 2 attempts failed.*0 of 12 tasks are answered and kept"):
        extract_llm(pool, LLMConfig("m", tmp_path / "cache", url, attempts=2), KEY)


def test_a_cache_that_can_not_be_written_is_named(pool, tmp_path):
    (tmp_path / "cache").write_text("a file in the way")
    with serving(lambda body, _: Say(good_answer(body))) as server, pytest.raises(StateError, match="answer cache"):
        extract_llm(pool, config(server, tmp_path), KEY)


def test_the_key_is_in_no_file(pool, tmp_path):
    def script(body, _):
        return Say(f"your key is {KEY}", status=400) if question(body) == "7" else Say(good_answer(body))

    with serving(script) as server:
        _, report = extract_llm(pool, config(server, tmp_path), KEY)
    assert "your key is ***" in report.failures["t07"]
    assert all(KEY not in path.read_text() for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.parametrize("num_checks", [0, 1, 2, 28])
def test_whatever_fits_the_schema_is_a_record(num_checks):
    generator = random.Random(num_checks)
    for _ in range(50):
        content = something_of(answer_schema(num_checks), generator)
        topology = read_answer(json.dumps(content), num_checks, None)
        assert topology.reward.checks == num_checks
        assert topology.reward.absence == content["reward"]["checks"].count("absence")


def something_of(schema: dict, generator: random.Random):
    """A random value that fits a schema of the few words that the answer's has."""
    match schema:
        case {"enum": values}:
            return generator.choice(values)
        case {"type": "object", "properties": properties}:
            return {name: something_of(inner, generator) for name, inner in properties.items()}
        case {"type": "array", "items": items, "maxItems": most}:
            return [something_of(items, generator) for _ in range(generator.randint(schema.get("minItems", 0), most))]
        case {"type": "integer", "minimum": least, "maximum": most}:
            return generator.randint(least, most)
    raise AssertionError(schema)


@pytest.mark.parametrize(
    ("wrap", "is_read"),
    [
        ("{}", True),
        ("```json\n{}\n```", True),
        ("Here it is: {} I hope it helps", True),
        ("{},", True),
        ("{} {}", False),
        ("", False),
    ],
)
def test_answers_are_mended_where_they_can_be(wrap, is_read):
    text = wrap.replace("{}", good_answer({"messages": [{"role": "user", "content": "## Checks (2)"}]}))
    if is_read:
        assert read_answer(text, 2, 0.5).reward.true_at_start == 0.5
    else:
        with pytest.raises(AnswerError):
            read_answer(text, 2, None)


def test_trailing_commas_and_repeated_phases_are_mended_and_wrong_sums_are_not():
    text = good_answer({"messages": [{"role": "user", "content": "## Checks (2)"}]})
    text = text.replace('["look_up", "update"]', '["look_up", "look_up", "update",]')
    assert [phase.value for phase in read_answer(text, 2, None).execution.phases] == ["look_up", "update"]
    with pytest.raises(AnswerError, match="holds 2 kinds, but there are 3 checks"):
        read_answer(text, 3, None)


RUN = """
import sys
from pathlib import Path
from envsched.pool import Pool
from envsched.topology import write_topologies
from envsched.topology.llm import LLMConfig, extract_llm

url, cache, out = sys.argv[1:]
pool = Pool.synthetic(4, 8, seed=5)
topologies, report = extract_llm(pool, LLMConfig("m", Path(cache), url, concurrency=4), "k")
write_topologies(out, topologies)
assert not report.failures, report.failures
"""


def run_once(url: str, cache: Path, out: Path) -> subprocess.Popen:
    command = [sys.executable, "-c", RUN, url, str(cache), str(out)]
    return subprocess.Popen(command, cwd=Path(__file__).parents[2], env={**os.environ, "PYTHONPATH": "."})


def distinct(bodies: list[dict]) -> set[str]:
    return {json.dumps(body, sort_keys=True) for body in bodies}


@pytest.mark.slow
def test_five_kills_ask_no_more_than_one_clean_run(tmp_path):
    pool = Pool.synthetic(4, 8, seed=5)
    with serving(lambda body, _: Say(good_answer(body), delay=0.05)) as server:
        assert run_once(server.url, tmp_path / "clean", tmp_path / "clean.jsonl").wait(240) == 0
        clean = distinct(server.bodies)
        assert len(clean) == len(server.bodies) == len(pool)
        url = server.url
        server.bodies.clear()
        server.answered.clear()
        for kill in range(5):
            process = run_once(url, tmp_path / "killed", tmp_path / "killed.jsonl")
            goal = len(server.bodies) + 3
            deadline = time.monotonic() + 120
            while len(server.bodies) < goal and time.monotonic() < deadline:
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert not (tmp_path / "killed.jsonl").exists(), kill
        assert run_once(url, tmp_path / "killed", tmp_path / "killed.jsonl").wait(240) == 0
        assert distinct(server.bodies) == clean
        assert len(server.bodies) <= len(clean) + 5 * 4  # at most what was in flight at each kill is asked again
    assert (tmp_path / "killed.jsonl").read_bytes() == (tmp_path / "clean.jsonl").read_bytes()
    assert list(read_topologies(tmp_path / "killed.jsonl", pool)) == [task.key for task in pool.tasks]


@pytest.mark.slow
def test_a_real_endpoint(tmp_path):
    """Any endpoint; name it by ENVSCHED_TEST_BASE_URL and ENVSCHED_TEST_MODEL. tests/vllm asks vLLM's own server in the same way."""
    url, model = os.environ.get("ENVSCHED_TEST_BASE_URL"), os.environ.get("ENVSCHED_TEST_MODEL")
    if not url or not model:
        pytest.skip("ENVSCHED_TEST_BASE_URL and ENVSCHED_TEST_MODEL name no endpoint to ask")
    check_endpoint(url, model, os.environ.get("ENVSCHED_TEST_KEY", "none"), tmp_path)
