"""An immutable, ordered set of environment-task pairs; the only translator between keys and rows.

Letters: N tasks, M environments. Tasks are laid out by (environment key, task key), so one environment is one
contiguous range of rows and the same content gives the same rows whatever order the files had.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path

import numpy as np

from envsched.errors import PoolError, UnknownTaskError
from envsched.files import canonical_json, digest
from envsched.pool.outline import Outline
from envsched.types import Environment, Task

CONTENT_DIGITS = 16  # hexadecimal, of a content's digest in an outline


class Pool:
    """N tasks in M environments.

    Args:
        environments: unique keys; one without tasks stays, with an empty range of rows.
        tasks: unique keys, each of a known environment.

    Raises:
        PoolError: no task, a duplicate key, or a task of an unknown environment.
    """

    def __init__(self, environments: Iterable[Environment], tasks: Iterable[Task]) -> None:
        self.environments: tuple[Environment, ...] = tuple(sorted(environments, key=lambda e: e.key))
        self.tasks: tuple[Task, ...] = tuple(sorted(tasks, key=lambda t: (t.environment, t.key)))
        self._environment_row = _index([e.key for e in self.environments], "environment")
        self._row = _index([t.key for t in self.tasks], "task")
        if not self.tasks:
            raise PoolError("the pool has no task: give at least one task and its environment")
        for task in self.tasks:
            if task.environment not in self._environment_row:
                raise PoolError(
                    f"task {task.key!r} names environment {task.environment!r}, which the pool does not have; "
                    "add the environment or drop the task"
                )

    @classmethod
    def from_envscaler(cls, folder: Path | str) -> "Pool":
        """Read EnvScaler's own JSON; see ``envsched.pool.envscaler``."""
        from envsched.pool.envscaler import read_envscaler

        return cls(*read_envscaler(Path(folder)))

    @classmethod
    def from_jsonl(cls, file: Path | str) -> "Pool":
        """Read a pool as JSON lines; see ``envsched.pool.jsonl``."""
        from envsched.pool.jsonl import read_jsonl

        return read_jsonl(Path(file))

    @classmethod
    def bundled(cls) -> "Pool":
        """The small executable pool that ships with envsched."""
        return cls.from_envscaler(Path(__file__).parent / "bundled")

    @classmethod
    def synthetic(cls, num_environments: int, tasks_per_environment: int, seed: int = 0) -> "Pool":
        """A pool for scheduling alone, of any size; see ``envsched.pool.synthetic``."""
        from envsched.pool.synthetic import make_synthetic

        return cls(*make_synthetic(num_environments, tasks_per_environment, seed))

    def __len__(self) -> int:
        return len(self.tasks)

    def row_of(self, key: str) -> int:
        """Row of a task key.

        Raises:
            UnknownTaskError: the key is not in the pool.
        """
        try:
            return self._row[key]
        except KeyError:
            raise UnknownTaskError(
                f"task {key!r} is not in this pool of {len(self)} tasks (fingerprint {self.fingerprint[:12]}); "
                "was the record made with another pool?"
            ) from None

    def rows_of(self, keys: Sequence[str]) -> np.ndarray:
        """Rows [n] of task keys [n]."""
        return np.fromiter((self.row_of(key) for key in keys), dtype=np.int64, count=len(keys))

    def __contains__(self, key: object) -> bool:
        return key in self._row

    def environment_row_of(self, key: str) -> int:
        """Row of an environment key; a KeyError means the caller made it up."""
        return self._environment_row[key]

    def environment(self, key: str) -> Environment:
        return self.environments[self._environment_row[key]]

    def task(self, key: str) -> Task:
        return self.tasks[self.row_of(key)]

    @cached_property
    def environment_of(self) -> np.ndarray:
        """Environment row of each task, int64 [N], ascending."""
        rows = (self._environment_row[task.environment] for task in self.tasks)
        return np.fromiter(rows, dtype=np.int64, count=len(self.tasks))

    @cached_property
    def offsets(self) -> np.ndarray:
        """Environment e holds rows offsets[e] .. offsets[e + 1], int64 [M + 1]."""
        counts = np.bincount(self.environment_of, minlength=len(self.environments))
        return np.concatenate([[0], np.cumsum(counts)])

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content: any changed text, tool, state or check changes it, file order does not.

        Raises:
            PoolError: an environment or task holds what canonical JSON can't; names its key.
        """
        return digest("envsched pool 1", *(_content(item) for item in (*self.environments, *self.tasks)))

    @cached_property
    def outline(self) -> Outline:
        """Keys, layout and a digest of each content: what tells this pool from another of the same run."""
        environments = [digest(_content(environment)) for environment in self.environments]
        rows = self.environment_of.tolist()
        return Outline(
            fingerprint=self.fingerprint,
            environments=tuple(environment.key for environment in self.environments),
            environment_contents=tuple(content[:CONTENT_DIGITS] for content in environments),
            tasks=tuple(task.key for task in self.tasks),
            environment_of=tuple(rows),
            contents=tuple(digest(environments[row], _content(t))[:CONTENT_DIGITS] for row, t in zip(rows, self.tasks, strict=True)),
        )


class OutlinedPool(Pool):
    """A pool whose content is gone: tasks and environments are keys alone, the fingerprint is the one it had."""

    def __init__(self, outline: Outline) -> None:
        environments = [Environment(key) for key in outline.environments]
        super().__init__(
            environments, [Task(k, outline.environments[e]) for k, e in zip(outline.tasks, outline.environment_of, strict=True)]
        )
        self.fingerprint, self.outline = outline.fingerprint, outline


def _content(item: Environment | Task) -> bytes:
    try:
        return canonical_json(asdict(item)).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise PoolError(
            f"{type(item).__name__.lower()} {item.key!r} holds what canonical JSON can't: {error}; give strings, finite numbers, "
            "lists and objects, nested some hundred deep at most"
        ) from None


def _index(keys: Sequence[str], kind: str) -> dict[str, int]:
    rows: dict[str, int] = {}
    for row, key in enumerate(keys):
        if key in rows:
            raise PoolError(f"{kind} key {key!r} occurs twice; keys must be unique, rename or drop one")
        rows[key] = row
    return rows
