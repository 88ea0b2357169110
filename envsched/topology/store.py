"""Topologies on disk: JSONL, a line a task, ``{"task": key, "topology": record}``, in the order of the pool."""

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from envsched.errors import StateError
from envsched.files import canonical_json, parse_json, read_lines, write_atomically
from envsched.pool import Pool
from envsched.topology.schema import Topology


def write_topologies(path: Path | str, topologies: Mapping[str, Topology]) -> None:
    """Write all records at once, whole or not at all, in the mapping's order."""
    lines = (canonical_json({"task": key, "topology": topology.model_dump(mode="json")}) for key, topology in topologies.items())
    write_atomically(path, "".join(f"{line}\n" for line in lines))


def read_topologies(path: Path | str, pool: Pool | None = None) -> dict[str, Topology]:
    """Records by task key.

    Args:
        pool: when given, the file must hold exactly this pool's tasks.

    Raises:
        StateError: unreadable file, a line that is no record (named by number and field), a task twice, or tasks that are not ``pool``'s.
    """
    topologies: dict[str, Topology] = {}
    try:
        for number, line in read_lines(path):
            key, topology = parse_line(line, f"{path}, line {number}")
            if key in topologies:
                raise StateError(f"{path}, line {number}: task {key!r} occurs twice; keep one line for each task")
            topologies[key] = topology
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StateError(f"topologies {path}: {reason}; write them with `envsched topology static`") from None
    if pool is not None:
        check_cover(topologies, pool, str(path))
    return topologies


def parse_line(line: str, where: str) -> tuple[str, Topology]:
    """Task key and record of one line.

    Raises:
        StateError: not JSON, or a field is missing, unknown or out of range; ``where`` and the field are named.
    """
    try:
        entry = parse_json(line)
    except ValueError as error:
        raise StateError(f"{where}: invalid JSON ({error}); write the file again") from None
    if not isinstance(entry, dict) or set(entry) != {"task", "topology"} or not isinstance(entry["task"], str):
        raise StateError(f'{where}: expected {{"task": key, "topology": record}}; came {line.strip()[:80]}')
    try:
        return entry["task"], Topology.model_validate_json(json.dumps(entry["topology"]))
    except ValidationError as error:
        raise StateError(f"{where}: task {entry['task']!r}: {problems(error)}; write the file again with this version") from None


def problems(error: ValidationError) -> str:
    """The fields of a record that do not fit, in one line."""
    return "; ".join(f"{'.'.join(map(str, e['loc'])) or 'record'}: {e['msg']} (came {str(e['input'])[:60]})" for e in error.errors())


def check_cover(topologies: Mapping[str, Topology], pool: Pool, where: str) -> None:
    """Raise StateError unless ``topologies`` holds exactly the tasks of ``pool``."""
    keys = {task.key for task in pool.tasks}
    missing, extra = sorted(keys - topologies.keys()), sorted(topologies.keys() - keys)
    if missing or extra:
        parts = [f"{len(group)} {kind} (first: {group[0]!r})" for kind, group in (("missing", missing), ("unknown", extra)) if group]
        raise StateError(f"{where}: topologies must cover exactly the pool's {len(keys)} tasks; {', '.join(parts)}; extract them again")
