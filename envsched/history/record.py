"""Rollout records as JSON lines: one record a line, unknown fields kept, a half-written last line survived.

Letters: G rollouts of one record.
"""

import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from envsched.errors import RecordError
from envsched.files import canonical_json, parse_json
from envsched.history.group import check_reward
from envsched.types import RolloutRecord, Status

logger = logging.getLogger(__name__)

MAX_STEP = 2**53  # ages of records are computed in float64, which counts exactly up to here
_KNOWN = ("task", "step", "rewards", "status", "policy_version", "tokens", "seconds", "trace")


def parse_record(mapping: Mapping[str, Any], where: str) -> RolloutRecord:
    """A record from one JSON object with ``task``, ``step``, ``rewards`` [G] and, if known, the other fields of RolloutRecord.

    ``status`` is all ok and ``policy_version`` is the step where they are not given. The pool's reward range is not
    known here; ``History`` judges it.

    Raises:
        RecordError: a field is absent or does not fit; the message starts with ``where``.
    """
    if not isinstance(mapping, Mapping):
        raise RecordError(f"{where}: expected a JSON object with task, step and rewards, came {type(mapping).__name__}")
    absent = [name for name in ("task", "step", "rewards") if name not in mapping]
    if absent:
        raise RecordError(f"{where}: field {absent[0]!r} is absent; a record needs task, step and rewards")
    step = mapping["step"]
    rewards = _sequence(mapping["rewards"], "rewards", where)
    given = mapping.get("status")
    record = RolloutRecord(
        task=mapping["task"],
        step=step,
        rewards=rewards,
        status=(Status.OK,) * len(rewards) if given is None else _sequence(given, "status", where),
        policy_version=step if mapping.get("policy_version") is None else mapping["policy_version"],
        tokens=_numbers(mapping.get("tokens"), "tokens", len(rewards), where),
        seconds=_numbers(mapping.get("seconds"), "seconds", len(rewards), where),
        trace=mapping.get("trace"),
        extra={name: value for name, value in mapping.items() if name not in _KNOWN},
    )
    return normal_record(record, where)


def normal_record(record: RolloutRecord, where: str = "record") -> RolloutRecord:
    """The same record with plain types: float rewards, ``Status`` members, int step and policy version.

    Raises:
        RecordError: a field has the wrong type, the lengths differ, a reward is unusable whatever the pool's range.
    """
    if not isinstance(record.task, str) or not record.task:
        raise RecordError(f"{where}: task must be a non-empty string, came {record.task!r}")
    step = _count(record.step, "step", f"{where}, task {record.task!r}")
    where = f"{where}, task {record.task!r}, step {step}"
    policy_version = _count(record.policy_version, "policy_version", where)
    if policy_version > step:
        raise RecordError(
            f"{where}: policy_version {policy_version} lies after the step; it is the step of the policy that made the rollouts"
        )
    rewards = _sequence(record.rewards, "rewards", where)
    status = tuple(_status(value, g, where) for g, value in enumerate(_sequence(record.status, "status", where)))
    if not rewards or len(rewards) != len(status):
        raise RecordError(f"{where}: {len(rewards)} rewards and {len(status)} statuses; give one of each per rollout, at least one")
    checked = (check_reward(r, s, f"{where}, rollout {g}") for g, (r, s) in enumerate(zip(rewards, status, strict=True)))
    return RolloutRecord(
        record.task, step, tuple(checked), status, policy_version, record.tokens, record.seconds, record.trace, record.extra
    )


def record_to_mapping(record: RolloutRecord) -> dict[str, Any]:
    """The JSON object of a record; ``parse_record`` gives the record back."""
    fields = {
        "task": record.task,
        "step": record.step,
        "rewards": list(record.rewards),
        "status": [Status(status).value for status in record.status],
        "policy_version": record.policy_version,
        "tokens": None if record.tokens is None else list(record.tokens),
        "seconds": None if record.seconds is None else list(record.seconds),
        "trace": record.trace,
    }
    return {**record.extra, **{name: value for name, value in fields.items() if value is not None}}


def read_records(path: Path | str) -> tuple[list[RolloutRecord], list[str]]:
    """All records of a JSON-lines file, and problems in words.

    A last line that is not whole JSON (a writer was killed) is left out and named in the problems; the rest is kept.

    Raises:
        RecordError: the file can't be read, or a line is not a record; names file and line.
    """
    try:
        lines = Path(path).read_bytes().split(b"\n")
    except OSError as error:
        raise RecordError(f"history file {path}: {error.strerror}; give the path of a JSON-lines file of rollout records") from None
    filled = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    records, problems = [], []
    for number, line in filled:
        try:
            mapping = parse_json(line)
        except ValueError as error:
            if number != filled[-1][0]:
                raise RecordError(f"{path}, line {number} is not valid JSON: {error}; mend or remove the line") from None
            problems.append(
                f"{path}, line {number}: truncated after {len(line)} bytes, left out; the {len(records)} records before it are kept"
            )
            continue
        records.append(parse_record(mapping, f"{path}, line {number}"))
    return records, problems


def append_records(path: Path | str, records: Iterable[RolloutRecord]) -> None:
    """Write records at the end of a JSON-lines file, all of them or none; the file is made where absent.

    A half-written last line of a killed writer is cut off first (and logged), so that it never ends up amid whole ones.

    Raises:
        RecordError: a record holds what JSON can't.
        OSError: as the file system gave it; the file is as it was before.
    """
    content = b"".join(_line(record) for record in records)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab+", buffering=0) as stream:
        end = _end_of_whole_lines(stream, path)
        stream.truncate(end)
        try:
            _write_all(stream, content)
            os.fsync(stream.fileno())
        except OSError:
            stream.truncate(end)
            raise


def _line(record: RolloutRecord) -> bytes:
    try:
        return canonical_json(record_to_mapping(record)).encode() + b"\n"
    except (TypeError, ValueError) as error:
        raise RecordError(f"task {record.task!r}, step {record.step}: the record is not JSON: {error}") from None


def _end_of_whole_lines(stream: Any, path: Path) -> int:
    """Where to go on writing: after the last line, ended here if only its newline is absent, else before its rest."""
    end = stream.seek(0, os.SEEK_END)
    if end == 0 or _read_at(stream, end - 1) == b"\n":
        return end
    stream.seek(0)
    content = stream.read()
    start = content.rfind(b"\n") + 1
    try:
        parse_json(content[start:])
    except ValueError:
        logger.warning("%s: the last line was truncated (%d bytes); it is cut off", path, end - start)
        return start
    _write_all(stream, b"\n")
    return end + 1


def _read_at(stream: Any, place: int) -> bytes:
    stream.seek(place)
    return stream.read(1)


def _write_all(stream: Any, content: bytes) -> None:
    while content:
        content = content[stream.write(content) :]


def _sequence(value: Any, name: str, where: str) -> tuple[Any, ...]:
    if isinstance(value, (list, tuple)):
        return tuple(value)
    raise RecordError(f"{where}: {name} must be a list with one entry per rollout, came {type(value).__name__} {value!r}")


def _count(value: Any, name: str, where: str) -> int:
    # operator.index would take numpy integers and bool alike; a bool is a mistake here
    if isinstance(value, bool) or not hasattr(value, "__index__") or not 0 <= value <= MAX_STEP:
        raise RecordError(f"{where}: {name} must be a whole number from 0 to 2**53, came {value!r}")
    return int(value)


def _status(value: Any, rollout: int, where: str) -> Status:
    if type(value) is Status:
        return value
    try:
        return Status(value)
    except ValueError:
        raise RecordError(f"{where}, rollout {rollout}: unknown status {value!r}; known: {', '.join(Status)}") from None


def _numbers(value: Any, name: str, count: int, where: str) -> tuple[Any, ...] | None:
    if value is None:
        return None
    numbers = _sequence(value, name, where)
    if len(numbers) != count or any(isinstance(n, bool) or not isinstance(n, (int, float)) for n in numbers):
        raise RecordError(f"{where}: {name} must hold {count} numbers, one per rollout, came {value!r}")
    return numbers
