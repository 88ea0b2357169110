"""Goals that tasks are made of, and the world that they are drawn from.

A goal is one sentence of a task, the checks that grade it, and the reference actions that reach it. A ``World`` is one task's
start under construction.
"""

import random
from dataclasses import dataclass, field
from typing import Any

from scripts.bundled_pool.words import IDS

Action = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Thing:
    """A kind of record. ``fields`` gives each field its possible values; ``extra`` its fixed start values."""

    collection: str
    noun: str
    names: tuple[str, ...]
    name_field: str = "name"
    fields: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def find(self) -> str:
        return f"find_{self.noun}"

    @property
    def id_field(self) -> str:
        return f"{self.noun}_id"


@dataclass(frozen=True)
class Goal:
    """One sentence of a task.

    ``checks`` are (question, source) pairs; ``touched`` are the records it changes. ``reads`` names what decides *which*
    records it means, ``changes`` what it changes: fields, "members" for records that come, "removed" for those that go.
    """

    family: str
    text: str
    checks: tuple[tuple[str, str], ...]
    actions: tuple[Action, ...]
    touched: frozenset[str]
    reads: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()


class World:
    """The start of one task: records with fresh ids and names, and which of them goals have taken so far."""

    def __init__(self, main: Thing, second: Thing | None, report: bool, generator: random.Random) -> None:
        self.main, self.second, self.random = main, second, generator
        self.ids = generator.sample(IDS, 12)
        self.names = {main.collection: generator.sample(main.names, 12)}
        if second:
            free = [name for name in second.names if name not in self.names[main.collection]]
            self.names[second.collection] = generator.sample(free, 12)
        self.state: dict[str, Any] = {main.collection: self._records(main, generator.randint(4, 6))}
        if second:
            self.state[second.collection] = self._records(second, generator.randint(2, 3))
        if report:
            self.state["report"] = {}
        self.taken: set[str] = set()

    def _records(self, thing: Thing, count: int) -> dict[str, dict[str, Any]]:
        records = {}
        for _ in range(count):
            values = {name: self.random.choice(values) for name, values in thing.fields.items()}
            extra = {name: list(value) if isinstance(value, list) else value for name, value in thing.extra.items()}
            records[self.ids.pop()] = {thing.name_field: self.names[thing.collection].pop(), **values, **extra}
        return records

    def take(self, thing: Thing) -> tuple[str, dict[str, Any]] | None:
        """A record that no goal has taken, or None."""
        free = [key for key in self.state[thing.collection] if key not in self.taken]
        if not free:
            return None
        key = self.random.choice(free)
        self.taken.add(key)
        return key, self.state[thing.collection][key]

    def group(self, by: str) -> tuple[Any, dict[str, dict[str, Any]]] | None:
        """A value of the field ``by`` that two or three records share, all of them free; and those records."""
        records = self.state[self.main.collection]
        for value in self.random.sample(self.main.fields[by], len(self.main.fields[by])):
            group = {key: record for key, record in records.items() if record[by] == value}
            if 2 <= len(group) <= 3 and not self.taken & set(group):
                return value, group
        return None

    def other(self, name: str, than: Any) -> Any:
        """Another value of a field of the main thing."""
        return self.random.choice([value for value in self.main.fields[name] if value != than])
