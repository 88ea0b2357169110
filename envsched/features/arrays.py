"""Files of named arrays with a JSON header: no pickle, written whole or not at all."""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from envsched.errors import StateError
from envsched.files import canonical_json, parse_json, write_atomically


def write_arrays(path: Path | str, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write an ``.npz`` file; ``header`` must have ``format``.

    Raises:
        OSError: as the file system gave it; an older file stays whole.
    """
    stream = io.BytesIO()
    np.savez(stream, header=np.frombuffer(canonical_json(header).encode(), dtype=np.uint8), **arrays)
    write_atomically(path, stream.getvalue())


def read_arrays(path: Path | str, expected_format: str, names: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """JSON header and named arrays of a file that ``write_arrays`` wrote.

    Raises:
        StateError: the file is missing, damaged, or of another format; names it.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            header = parse_json(stored["header"].tobytes())
            if not isinstance(header, dict):
                raise ValueError("its header is no object")
            if header.get("format") == expected_format:
                return header, {name: stored[name] for name in names}
    except FileNotFoundError:
        raise StateError(f"{path}: no such file; build and save it first") from None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise StateError(f"{path}: not a whole {expected_format!r} file ({error}); build it again") from None
    raise StateError(f"{path}: expected format {expected_format!r}, came {header.get('format')!r}; build it again")
