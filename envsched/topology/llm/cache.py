"""Answers on disk, by content of the question: an interrupted run goes on where it stopped and asks nothing twice.

One file an answer, renamed into place whole, so a kill at any moment leaves an answer either there or not.
"""

import json
from pathlib import Path
from typing import Any

from envsched.errors import StateError
from envsched.files import canonical_json, digest, write_atomically


class AnswerCache:
    """Answers under ``folder`` by key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @staticmethod
    def key(*parts: Any) -> str:
        return digest(*(canonical_json(part) for part in parts))

    def get(self, key: str) -> dict[str, Any] | None:
        """The stored value; a file that holds none (a foreign one) counts as absent."""
        try:
            value = json.loads(self._path(key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return value if isinstance(value, dict) else None

    def put(self, key: str, value: dict[str, Any]) -> None:
        try:
            write_atomically(self._path(key), canonical_json(value))
        except OSError as error:
            raise StateError(f"answer cache {self.folder}: {error.strerror}; make room or give another folder") from None

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"
