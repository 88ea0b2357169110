import json
import logging
import resource

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.errors import RecordError
from envsched.history import append_records, parse_record, read_records
from envsched.types import RolloutRecord, Status

LINE = {"task": "a0", "step": 3, "rewards": [0.0, 0.5]}


def write(path, *lines: str, end: str = "\n"):
    path.write_text("\n".join(lines) + end, encoding="utf-8")
    return path


def test_three_fields_are_enough():
    assert parse_record(LINE, "here") == RolloutRecord("a0", 3, (0.0, 0.5), (Status.OK, Status.OK), policy_version=3)


def test_all_fields_and_unknown_ones_are_kept():
    line = {
        **LINE,
        "status": ["ok", "infra_error"],
        "rewards": [1, None],
        "policy_version": 2,
        "tokens": [10, 0],
        "seconds": [1.5, 0.0],
        "trace": {"file": "x"},
        "model": "m",
    }
    found = parse_record(line, "here")
    assert found.rewards == (1.0, None)
    assert found.status == (Status.OK, Status.INFRA_ERROR)
    assert (found.policy_version, found.tokens, found.seconds, found.trace) == (2, (10, 0), (1.5, 0.0), {"file": "x"})
    assert found.extra == {"model": "m"}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"task": None}, "task must be a non-empty string, came None"),
        ({"task": ""}, "task must be"),
        ({"step": "3"}, "step must be a whole number from 0 to 2**53, came '3'"),
        ({"step": True}, "came True"),
        ({"step": -1}, "came -1"),
        ({"step": 1.0}, "came 1.0"),
        ({"policy_version": 4}, "policy_version 4 lies after the step"),
        ({"policy_version": -1}, "policy_version must be a whole number from 0 to 2**53, came -1"),
        ({"rewards": 0.5}, "rewards must be a list with one entry per rollout, came float 0.5"),
        ({"rewards": {"a": 1}}, "rewards must be a list"),
        ({"rewards": "11"}, "rewards must be a list"),
        ({"rewards": []}, "0 rewards and 0 statuses"),
        ({"rewards": [0.5, float("nan")]}, "rollout 1: a reward must be finite, came nan"),
        ({"rewards": [0.5, None]}, "rollout 1: no reward came but the status is 'ok'"),
        ({"rewards": [{"r": 1}, 0.5]}, "rollout 0: a reward must be a number, came dict"),
        ({"rewards": [True, 0.5]}, "came bool True"),
        ({"rewards": ["1", 0.5]}, "came str '1'"),
        ({"status": ["ok"]}, "2 rewards and 1 statuses"),
        ({"status": ["ok", "fine"]}, "rollout 1: unknown status 'fine'; known: ok, truncated"),
        ({"status": "ok"}, "status must be a list"),
        ({"tokens": [1]}, "tokens must hold 2 numbers"),
        ({"seconds": ["a", 1]}, "seconds must hold 2 numbers"),
    ],
)
def test_a_field_that_does_not_fit_is_named(change, named):
    with pytest.raises(RecordError) as refused:
        parse_record({**LINE, **change}, "rollouts.jsonl, line 9")
    assert str(refused.value).startswith("rollouts.jsonl, line 9")
    assert named in str(refused.value)


@pytest.mark.parametrize("name", ["task", "step", "rewards"])
def test_an_absent_field_is_named(name):
    with pytest.raises(RecordError, match=f"field '{name}' is absent"):
        parse_record({key: value for key, value in LINE.items() if key != name}, "here")


def test_something_else_than_an_object_is_refused():
    with pytest.raises(RecordError, match="here: expected a JSON object with task, step and rewards, came list"):
        parse_record([1], "here")


@settings(max_examples=30, deadline=None)  # each writes and syncs a file
@given(
    st.lists(
        st.builds(
            lambda task, step, pairs, version, extra: RolloutRecord(
                task, step, tuple(r for r, _ in pairs), tuple(s for _, s in pairs), min(version, step), extra=extra
            ),
            st.text(min_size=1),
            st.integers(0, 10**6),
            st.lists(
                st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(Status))
                | st.tuples(st.none(), st.sampled_from([s for s in Status if s.is_missing])),
                min_size=1,
            ),
            st.integers(0, 10**6),
            st.dictionaries(st.text(min_size=1).map(lambda name: f"x-{name}"), st.integers() | st.text()),
        )
    )
)
def test_what_is_appended_is_read_back_exactly(tmp_path_factory, records):
    path = tmp_path_factory.mktemp("rollouts") / "history.jsonl"
    append_records(path, records[:2])
    append_records(path, records[2:])
    assert read_records(path) == (records, [])


def test_a_truncated_last_line_is_left_out_and_named(tmp_path):
    path = write(tmp_path / "h.jsonl", json.dumps(LINE), json.dumps({**LINE, "step": 4}), '{"task": "a1", "st', end="")
    records, problems = read_records(path)
    assert [record.step for record in records] == [3, 4]
    assert len(problems) == 1
    assert "h.jsonl, line 3: truncated after 18 bytes" in problems[0]


def test_a_writer_killed_at_any_byte_loses_its_last_line_at_most(tmp_path):
    path = tmp_path / "h.jsonl"
    records = [parse_record({**LINE, "step": step, "note": "é"}, "") for step in range(3)]
    append_records(path, records)
    content = path.read_bytes()
    ends = [place + 1 for place, byte in enumerate(content) if byte == ord("\n")]
    for cut in range(len(content) + 1):
        path.write_bytes(content[:cut])
        kept, problems = read_records(path)
        whole = sum(end - 1 <= cut for end in ends)  # a line may lack its newline
        assert kept == records[:whole]
        assert len(problems) == (0 if cut in {0, *ends, *(end - 1 for end in ends)} else 1)
        append_records(path, records[whole:])
        assert read_records(path) == (records, [])


def test_a_line_cut_inside_a_character_counts_as_truncated(tmp_path):
    path = tmp_path / "h.jsonl"
    path.write_bytes(json.dumps(LINE).encode() + b"\n" + '{"task": "é'.encode()[:-1])
    records, problems = read_records(path)
    assert len(records) == len(problems) == 1


def test_a_whole_last_line_without_newline_is_kept(tmp_path):
    records, problems = read_records(write(tmp_path / "h.jsonl", json.dumps(LINE), end=""))
    assert len(records) == 1
    assert problems == []


def test_blank_lines_and_an_empty_file_are_fine(tmp_path):
    assert len(read_records(write(tmp_path / "h.jsonl", "", json.dumps(LINE), "", ""))[0]) == 1
    assert read_records(write(tmp_path / "empty.jsonl", end="")) == ([], [])


def test_a_broken_line_amid_others_names_file_and_line(tmp_path):
    path = write(tmp_path / "h.jsonl", json.dumps(LINE), '{"task": "a1", "st', json.dumps(LINE))
    with pytest.raises(RecordError, match=r"h\.jsonl, line 2 is not valid JSON"):
        read_records(path)


def test_a_whole_line_with_a_bad_value_is_never_dropped_in_silence(tmp_path):
    path = write(tmp_path / "h.jsonl", json.dumps(LINE), '{"task": "a1", "step": 3, "rewards": [NaN, 0]}')
    with pytest.raises(RecordError, match=r"h\.jsonl, line 2, task 'a1', step 3, rollout 0: a reward must be finite, came nan"):
        read_records(path)


def test_an_absent_file_is_named(tmp_path):
    with pytest.raises(RecordError, match=r"none\.jsonl: No such file"):
        read_records(tmp_path / "none.jsonl")


def test_appending_cuts_a_truncated_line_and_says_so(tmp_path, caplog):
    path = write(tmp_path / "h.jsonl", json.dumps(LINE), '{"task": "a1", "st', end="")
    with caplog.at_level(logging.WARNING):
        append_records(path, [parse_record({**LINE, "step": 4}, "")])
    assert "truncated (18 bytes)" in caplog.text
    records, problems = read_records(path)
    assert ([record.step for record in records], problems) == ([3, 4], [])


def test_appending_ends_a_last_line_that_lacks_only_its_newline(tmp_path):
    path = write(tmp_path / "h.jsonl", json.dumps(LINE), end="")
    append_records(path, [parse_record({**LINE, "step": 4}, "")])
    assert [record.step for record in read_records(path)[0]] == [3, 4]


@pytest.mark.parametrize("trace", [{1, 2}, float("nan"), "\ud800"])
def test_a_record_that_json_cannot_hold_writes_nothing(tmp_path, trace):
    path = write(tmp_path / "h.jsonl", json.dumps(LINE))
    before = path.read_bytes()
    good, bad = parse_record({**LINE, "step": 4}, ""), parse_record({**LINE, "step": 5, "trace": trace}, "")
    with pytest.raises(RecordError, match="task 'a0', step 5: the record is not JSON"):
        append_records(path, [good, bad])
    assert path.read_bytes() == before


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path):
    path = write(tmp_path / "h.jsonl", json.dumps(LINE))
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, limits[1]))  # ten bytes of the new line still fit
    try:
        with pytest.raises(OSError, match="File too large"):
            append_records(path, [parse_record({**LINE, "step": 4}, "")])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    append_records(path, [parse_record({**LINE, "step": 4}, "")])
    assert len(read_records(path)[0]) == 2


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"task": "a", "step": 9007199254740993, "rewards": [0, 1]}', r"line 1, task 'a': step must be a whole number from 0 to 2\*\*53"),
        ('{"task": "a", "step": 1, "rewards": [1' + "0" * 400 + ", 1]}", r"line 1, task 'a', step 1, rollout 0: a reward must be finite"),
        ("[" * 100_000, r"line 1 is not valid JSON: nested too deep"),
    ],
)
def test_what_no_array_can_hold_is_refused_with_its_line(tmp_path, line, says):
    path = tmp_path / "history.jsonl"
    path.write_text(line + '\n{"task": "a", "step": 0, "rewards": [0, 1]}\n')
    with pytest.raises(RecordError, match=says):
        read_records(path)
