"""No message of a policy and no line of a history crashes or hangs its reader: a hundred thousand each in the slow run."""

import contextlib
import json
import os
import time

import pytest

from envsched.errors import RecordError
from envsched.history import read_records
from envsched.runtime import ToolCall, Unparsable, parse_tool_calls
from envsched.runtime.worker import frames
from tests.runtime.mutation import mutants

NUMBERS = [2000, pytest.param(100_000, marks=pytest.mark.slow)]
CALL = {"name": "add", "arguments": {"amount": 2, "words": ["a", None, 1.5, {"deep": [True]}]}}
MESSAGES = [
    f"<think>first</think>I add.\n<tool_call>\n{json.dumps(CALL)}\n</tool_call>",
    f"<tool_call>{json.dumps(CALL)}</tool_call>" * 2,
    json.dumps(CALL),
    json.dumps(
        {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}]}
    ),
    json.dumps([{"function": CALL}]),
]
LINE = {
    "task": "t",
    "step": 3,
    "rewards": [0.5, None],
    "status": ["ok", "aborted"],
    "tokens": [3, 4],
    "seconds": [0.1, 0.2],
    "new": {"a": 1},
}
LINES = [json.dumps(LINE), json.dumps({"task": "t", "step": 0, "rewards": [1, 0]}), "\n".join([json.dumps(LINE)] * 3) + "\n"]
LONGEST = 2.0  # seconds for one input, on a loaded machine


@pytest.mark.parametrize("number", NUMBERS)
def test_tool_calls_are_read_from_anything(number):
    slowest = 0.0
    for mutant in mutants([message.encode() for message in MESSAGES], number, seed=1):
        text = mutant.decode("utf-8", "surrogateescape")
        messages = [text, {"content": text}]
        with contextlib.suppress(ValueError, RecursionError):
            messages.append(json.loads(text))
        for message in messages:
            if not isinstance(message, (str, dict)):
                continue
            began = time.perf_counter()
            calls = parse_tool_calls(message)
            slowest = max(slowest, time.perf_counter() - began)
            assert all(isinstance(call, (ToolCall, Unparsable)) for call in calls)
    assert slowest < LONGEST


@pytest.mark.parametrize("number", NUMBERS)
def test_records_are_read_or_refused_from_anything(number):
    slowest, read = 0.0, 0
    with open(os.memfd_create("history"), "wb", buffering=0) as file:  # in memory: opening a file takes longer than reading it
        path = f"/proc/self/fd/{file.fileno()}"
        for mutant in mutants([line.encode() for line in LINES], number, seed=2):
            file.truncate(0)
            os.pwrite(file.fileno(), mutant, 0)
            began = time.perf_counter()
            with contextlib.suppress(RecordError):  # its words name file and line: tests/history
                records, problems = read_records(path)
                read += bool(records)
                assert all(isinstance(problem, str) for problem in problems)
            slowest = max(slowest, time.perf_counter() - began)
    assert slowest < LONGEST
    assert read > number / 100, "the mutants stay near the valid"


@pytest.mark.parametrize("number", NUMBERS)
def test_frames_of_a_process_are_objects_or_refused(number):
    for mutant in mutants([frames.pack({"ok": True, "number": 3, "text": "x"})[4:]], number, seed=3):
        try:
            assert isinstance(frames.unpack(mutant), dict)
        except frames.FrameError:
            continue
