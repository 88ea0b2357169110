"""Canonical JSON, digests, and writes that either happen whole or not at all."""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def canonical_json(value: Any) -> str:
    """Equal values give equal text: sorted keys, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(*parts: bytes | str) -> str:
    """SHA-256 over parts, each led by its length, so that no two lists of parts collide by concatenation."""
    sha = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        sha.update(len(raw).to_bytes(8, "little"))
        sha.update(raw)
    return sha.hexdigest()


def write_atomically(path: Path | str, content: bytes | str) -> None:
    """Write beside ``path`` and rename over it: on a full disk or a crash the old file stays whole.

    Raises:
        OSError: as the file system gave it; the half-written neighbour is removed.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = content.encode() if isinstance(content, str) else content
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(raw)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def write_json(path: Path | str, value: Any) -> None:
    """Readable JSON (two-space indent, keys in the order given), written atomically."""
    write_atomically(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_lines(path: Path | str) -> Iterator[tuple[int, str]]:
    """Line numbers from 1 and non-blank lines of a text file."""
    with open(path, encoding="utf-8") as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                yield number, line


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
