"""A pool without its content: what tells two pools of a run apart, task by task, and what an audit needs of one that is gone.

Letters: N tasks, M environments.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from envsched.files import canonical_json, digest
from envsched.wording import counted

_NAMED = 5  # keys spelled out in words


@dataclass(frozen=True, slots=True)
class Outline:
    """Keys and layout, and a digest of each content; a task's digest holds its environment's too: where the code changes, it changes."""

    fingerprint: str
    environments: tuple[str, ...]  # [M]
    environment_contents: tuple[str, ...]  # [M]
    tasks: tuple[str, ...]  # [N], in the pool's order
    environment_of: tuple[int, ...]  # [N]
    contents: tuple[str, ...]  # [N]

    def to_json(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Outline":
        """What ``to_json`` gave.

        Raises:
            ValueError: anything else.
        """
        if not isinstance(content, Mapping) or {field.name for field in fields(cls)} - content.keys():
            raise ValueError("no outline of a pool")
        given = {field.name: content[field.name] for field in fields(cls)}
        fingerprint, rows = given.pop("fingerprint"), given.pop("environment_of")
        if not isinstance(fingerprint, str) or not all(_is_list_of(str, value) for value in given.values()) or not _is_list_of(int, rows):
            raise ValueError("no outline of a pool")
        made = cls(fingerprint=fingerprint, environment_of=tuple(rows), **{name: tuple(value) for name, value in given.items()})
        fits = len(made.tasks) == len(made.contents) == len(made.environment_of) and len(made.environments) == len(
            made.environment_contents
        )
        if not fits or not all(0 <= row < len(made.environments) for row in made.environment_of):
            raise ValueError("an outline whose parts do not fit together")
        return made


@dataclass(frozen=True, slots=True)
class PoolChange:
    """What differs between the pools before and from ``step`` on, by key; each list sorted.

    A task whose own content or whose environment's differs is *edited*: under its old key it is a new task.
    """

    step: int
    before: str  # fingerprint
    after: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    edited: tuple[str, ...]
    environments_added: tuple[str, ...]
    environments_removed: tuple[str, ...]
    environments_edited: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        return self.before == self.after

    def outdates(self, task: str, step: int) -> bool:
        """Whether a record of ``step`` is about a task that is gone, or was another one then."""
        return step < self.step and (task in self.removed or task in self.edited or task in self.added)

    def to_json(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "PoolChange":
        """What ``to_json`` gave.

        Raises:
            ValueError: anything else.
        """
        names = [field.name for field in fields(cls)]
        if not isinstance(content, Mapping) or set(names) - content.keys():
            raise ValueError("no change of a pool")
        lists = {name: content[name] for name in names[3:]}
        if type(content["step"]) is not int or not all(_is_list_of(str, value) for value in lists.values()):
            raise ValueError("no change of a pool")
        return cls(content["step"], str(content["before"]), str(content["after"]), **{name: tuple(v) for name, v in lists.items()})

    def __str__(self) -> str:
        parts = [f"{counted(len(keys), 'task')} {word}: {_some(keys)}" for word, keys in self._tasks() if keys]
        parts += [f"{counted(len(keys), 'environment')} {word}: {_some(keys)}" for word, keys in self._environments() if keys]
        return "; ".join(parts) or "nothing differs"

    def _tasks(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return ("added", self.added), ("removed", self.removed), ("edited", self.edited)

    def _environments(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return ("added", self.environments_added), ("removed", self.environments_removed), ("edited", self.environments_edited)


def change_between(before: Outline, after: Outline, step: int) -> PoolChange:
    """How ``after``, in force from ``step`` on, differs from ``before``."""
    tasks = _differences(before.tasks, before.contents, after.tasks, after.contents)
    environments = _differences(before.environments, before.environment_contents, after.environments, after.environment_contents)
    return PoolChange(step, before.fingerprint, after.fingerprint, *tasks, *environments)


def digest_of_changes(changes: Sequence[PoolChange]) -> str:
    return digest("envsched pool changes 1", canonical_json([change.to_json() for change in changes]))


def _differences(
    old_keys: Sequence[str], old_contents: Sequence[str], new_keys: Sequence[str], new_contents: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Keys added, removed, edited."""
    old, new = dict(zip(old_keys, old_contents, strict=True)), dict(zip(new_keys, new_contents, strict=True))
    edited = (key for key in old.keys() & new.keys() if old[key] != new[key])
    return tuple(sorted(new.keys() - old.keys())), tuple(sorted(old.keys() - new.keys())), tuple(sorted(edited))


def _is_list_of(kind: type, value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(type(item) is kind for item in value)


def _some(keys: Sequence[str]) -> str:
    named = ", ".join(repr(key) for key in keys[:_NAMED])
    return named if len(keys) <= _NAMED else f"{named} and {len(keys) - _NAMED} more"
