"""A policy behind a real HTTP server that speaks the chat-completions protocol."""

import json

import pytest
from typer.testing import CliRunner

from envsched.cli import build_app
from envsched.evaluate.endpoint import EndpointError, EndpointPolicy
from envsched.evaluate.policy import Request
from tests.evaluate.small import write_small
from tests.topology.protocol import Say, serving

CALLS = {  # what the scripted model calls when the user says this
    "Add one and two, read letter 0.": [("add", {"a": 1, "b": 2}), ("read", {"number": 0})],
    "Post it.": [("post", {"text": "3"})],
}


def completion(content, calls):
    listed = [
        {"id": f"c{i}", "type": "function", "function": {"name": name, "arguments": json.dumps(values)}}
        for i, (name, values) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": content} | ({"tool_calls": listed} if listed else {})
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return json.dumps({"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}).encode()


def scripted(body, _number):
    last = body["messages"][-1]
    return Say(raw=completion(None if last["content"] in CALLS else "done", CALLS.get(last["content"], [])))


def run(server, folder, out):
    words = ["evaluate", "--data", str(folder), "--model", "m", "--base-url", server.url, "--subsets", "base,miss_param", "--out", str(out)]
    return CliRunner().invoke(build_app(), words, catch_exceptions=True, env={"OPENAI_API_KEY": "secret"})


def test_a_model_at_an_endpoint_is_scored_and_an_interrupted_command_goes_on(tmp_path):
    folder, out = write_small(tmp_path / "bfcl"), tmp_path / "report.json"
    asked = []

    def failing(body, number):
        asked.append(body)
        return Say("no", status=400) if any("log2" in m["content"] for m in body["messages"] if m["role"] == "user") else posting(body)

    def posting(body):
        said = body["messages"][-1]["content"]
        return Say(raw=completion("", [("post", {"text": "x"})])) if said == "Post x." else scripted(body, 0)

    with serving(failing) as server:
        done = run(server, folder, out)
    assert isinstance(done.exception, EndpointError)
    assert "secret" not in str(done.exception)
    kept = (tmp_path / "report.json.part").read_text().splitlines()
    with serving(scripted) as server:
        done = run(server, folder, out)
        assert done.exit_code == 0, done.output
    report = json.loads(out.read_text())
    assert {name: score["accuracy"] for name, score in report["scores"].items()} == {"base": 0.5, "miss_param": 0.5}
    assert report["mean"] == 0.5
    assert len(kept) >= 1
    sent = asked[0]
    assert sent["temperature"] == 0
    assert sent["tools"][0]["function"]["name"] == "post"


def test_calls_go_back_as_text_and_a_prompt_too_long_is_an_empty_message():
    def answer(body, number):
        if number == 0:
            return Say("maximum context length is 10 tokens", status=400)
        return Say(raw=completion("ok", []))

    call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": {"a": 1}}}
    request = Request(({"role": "user", "content": "x"}, {"role": "assistant", "content": "", "tool_calls": [call]}), ())
    with serving(answer) as server:
        policy = EndpointPolicy("m", server.url, "secret", 8, attempts=1)
        assert policy.reply([request]) == [{"content": ""}]
        assert policy.num_too_long == 1
        assert policy.reply([request])[0]["content"] == "ok"
        assert json.loads(server.bodies[-1]["messages"][1]["tool_calls"][0]["function"]["arguments"]) == {"a": 1}


def test_an_endpoint_that_is_not_there_is_one_error():
    policy = EndpointPolicy("m", "http://127.0.0.1:9/v1", "secret", 8, attempts=1)
    with pytest.raises(EndpointError, match=r"check --base-url, --model and OPENAI_API_KEY"):
        policy.reply([Request(({"role": "user", "content": "x"},), ())])
