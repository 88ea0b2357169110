import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.runtime import EnvironmentRuntime, Outcome, ToolCall, Unparsable, act, parse_tool_calls
from tests.runtime.pools import counter_pool

CALL = {"name": "add", "arguments": {"amount": 2}}
EXPECTED = [ToolCall("add", {"amount": 2})]


@pytest.mark.parametrize(
    "message",
    [
        f"<tool_call>{json.dumps(CALL)}</tool_call>",
        f"I will add.\n<tool_call>\n{json.dumps(CALL, indent=1)}\n</tool_call>\n<|im_end|>",
        f"<think>maybe <tool_call>not this</tool_call></think>\n<tool_call>{json.dumps(CALL)}</tool_call>",
        json.dumps(CALL),
        json.dumps({"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function", "function": CALL}]}),
        {"content": "", "tool_calls": [{"type": "function", "function": CALL}]},
        {"tool_calls": [{"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"amount": 2}'}}]},
        {"content": f"<tool_call>{json.dumps(CALL)}</tool_call>", "tool_calls": None},
        f'<tool_call>{{"function": {json.dumps(CALL)}}}</tool_call>',
    ],
)
def test_each_style_gives_the_same_call(message):
    assert parse_tool_calls(message) == EXPECTED


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("<tool_call>{'name': 'add'}</tool_call>", "not valid JSON"),
        ("<tool_call>{}</tool_call>", "no name"),
        ("<tool_call>[1]</tool_call>", "no name"),
        ('<tool_call>{"name": "add", "arguments": [2]}</tool_call>', "must be an object, came list"),
        ('<tool_call>{"name": "add"', "never closed"),
        ({"tool_calls": [{"function": {"name": "add", "arguments": "{"}}]}, "not valid JSON"),
        ({"tool_calls": "add"}, "no list"),
        ("<tool_call>" + "[" * 100_000 + "</tool_call>", "nested too deep"),
        ("<tool_call>" + "9" * 10_000 + "</tool_call>", "not valid JSON"),
    ],
)
def test_what_can_not_be_read_says_why(message, words):
    (call,) = parse_tool_calls(message)
    assert isinstance(call, Unparsable)
    assert words in call.reason


@pytest.mark.parametrize(
    "message", ["Done.", "", {}, {"content": None}, "<think>never ends <tool_call>{}</tool_call>", '{"answer": 3}', "[]"]
)
def test_a_message_without_a_call_is_the_end(message):
    assert parse_tool_calls(message) == []


def test_arguments_may_be_absent():
    assert parse_tool_calls('<tool_call>{"name": "mark"}</tool_call>') == [ToolCall("mark", {})]


TWO = "<tool_call>" + json.dumps(CALL) + "</tool_call>"


@pytest.fixture(scope="module")
def runtime():
    with EnvironmentRuntime(counter_pool(), num_workers=1) as runtime:
        yield runtime


def test_all_calls_of_a_message_run(runtime):
    with runtime.start("task") as episode:
        texts = [observation.text for observation in act(episode, TWO + TWO)]
    assert texts == ["{'count': 3}", "{'count': 5}"]


def test_under_envscalers_semantics_only_the_first_runs(runtime):
    with runtime.start("task") as episode:
        first, second = act(episode, TWO + TWO, semantics="envscaler")
        assert first.text == "{'count': 3}"
        assert second.outcome is Outcome.SKIPPED
        assert episode.score().reward == 0.5


def test_under_envscalers_semantics_a_raise_ends_the_episode_with_nothing(runtime):
    bad = '<tool_call>{"name": "add", "arguments": {"amount": "two"}}</tool_call>'
    with runtime.start("task") as episode:
        act(episode, TWO, semantics="envscaler")
        (observation,) = act(episode, bad, semantics="envscaler")
        assert observation.outcome is Outcome.RAISED
        assert episode.score().reward == 0.0
        assert episode.call("add", {"amount": 1}).outcome is Outcome.ENDED
    with runtime.start("task") as episode:
        act(episode, TWO)
        (observation,) = act(episode, bad)
        assert observation.outcome is Outcome.BAD_ARGUMENTS
        assert episode.score().reward == 0.5


def test_an_unparsable_call_is_told_and_the_episode_goes_on(runtime):
    with runtime.start("task") as episode:
        (observation,) = act(episode, "<tool_call>{</tool_call>")
        assert observation.outcome is Outcome.UNPARSABLE
        assert observation.text.startswith("Error: the call is not valid JSON")
        assert act(episode, TWO)[0].ok


PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            ["<tool_call>", "</tool_call>", "<think>", "</think>", '{"name":', '"arguments":', "{", "}", "[", "]", '"', ",", "null"]
        ),
        st.text(max_size=12),
        st.just(json.dumps(CALL)),
    ),
    max_size=12,
).map("".join)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "arguments", "parameters", "function", "tool_calls", "content", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=400, deadline=None)
@given(PIECES | VALUES.map(json.dumps) | st.dictionaries(st.sampled_from(["tool_calls", "content", "role"]), VALUES, max_size=3))
def test_any_message_is_read_without_a_crash(message):
    for call in parse_tool_calls(message):
        assert isinstance(call, (ToolCall, Unparsable))
        assert isinstance(call, Unparsable) or isinstance(call.name, str)
