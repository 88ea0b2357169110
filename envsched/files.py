"""Canonical JSON, digests, and writes that either happen whole or not at all."""

import errno
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


def parse_json(text: str | bytes, **options: Any) -> Any:
    """``json.loads`` whose every fault is a ValueError.

    Python raises RecursionError on JSON nested some hundred deep, which a file from elsewhere may hold.
    """
    try:
        return json.loads(text, **options)
    except RecursionError:
        raise ValueError("nested too deep") from None


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

    A device or a pipe (``/dev/stdout``) is written to: renamed over, it would be gone.

    Raises:
        OSError: as the file system gave it; the half-written neighbour is removed.
    """
    path = Path(path)
    raw = content.encode() if isinstance(content, str) else content
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():
        path.write_bytes(raw)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
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
