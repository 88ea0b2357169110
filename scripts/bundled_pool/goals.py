"""Goals that tasks are made of. The shapes (find then set, for each, if then else, ...) are shared by all domains.

A goal is one sentence of a task, the checks that grade it, and the reference actions that reach it. A family is a recipe
for goals of one shape; it draws names and values from a ``World``, which is one task's start under construction.
"""

import random
from dataclasses import dataclass, field
from typing import Any, ClassVar

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


def field_check(collection: str, key: str, name: str, value: Any) -> tuple[str, str]:
    source = f"def check_func(final_state):\n    return final_state[{collection!r}].get({key!r}, {{}}).get({name!r}) == {value!r}"
    return f"Has {key} in {collection} {name} {value}?", source


def member_check(collection: str, key: str, name: str, value: str) -> tuple[str, str]:
    source = f"def check_func(final_state):\n    return {value!r} in final_state[{collection!r}].get({key!r}, {{}}).get({name!r}, [])"
    return f"Does {name} of {key} in {collection} hold {value}?", source


def gone_check(collection: str, key: str) -> tuple[str, str]:
    return f"Is {key} gone from {collection}?", f"def check_func(final_state):\n    return {key!r} not in final_state[{collection!r}]"


def new_check(collection: str, name_field: str, name: str, extra: str | None, value: Any) -> tuple[str, str]:
    also = "" if extra is None else f" and record[{extra!r}] == {value!r}"
    source = (
        f"def check_func(final_state):\n    records = final_state[{collection!r}].values()\n"
        f"    return any(record[{name_field!r}] == {name!r}{also} for record in records)"
    )
    return f"Is {name} in {collection}" + ("?" if extra is None else f" with {extra} {value}?"), source


def untouched_check(collection: str, keys: list[str]) -> tuple[str, str]:
    source = (
        f"def check_func(final_state):\n    before, after = initial_state[{collection!r}], final_state[{collection!r}]\n"
        f"    return all(after.get(key) == before[key] for key in {keys!r})"
    )
    return f"Are {', '.join(keys)} in {collection} as they were?", source


@dataclass(frozen=True)
class Family:
    """Base of the families: a tool of the domain and the wordings of the sentence."""

    name: ClassVar[str]
    tool: str
    texts: tuple[str, ...]

    def make(self, world: World) -> Goal | None:
        """A goal in this world, or None where no free record suits."""
        raise TypeError(f"{type(self).__name__} makes no goals")

    def say(self, world: World, **words: Any) -> str:
        return world.random.choice(self.texts).format(**words)


@dataclass(frozen=True)
class SetById(Family):
    """ "Put book k3 on shelf north": the id is given, one call."""

    name = "set_by_id"
    field: str

    def make(self, world: World) -> Goal | None:
        taken = world.take(world.main)
        if taken is None:
            return None
        key, record = taken
        value = world.other(self.field, record[self.field])
        return Goal(
            self.name,
            self.say(world, id=key, value=value),
            (field_check(world.main.collection, key, self.field, value),),
            ((self.tool, {world.main.id_field: key, self.field: value}),),
            frozenset({key}),
            changes=frozenset({self.field}),
        )


@dataclass(frozen=True)
class FindSet(Family):
    """ "Put the book ember on shelf north": find the id, then set."""

    name = "find_set"
    field: str

    def make(self, world: World) -> Goal | None:
        taken = world.take(world.main)
        if taken is None:
            return None
        key, record = taken
        thing, value = world.main, world.other(self.field, record[self.field])
        return Goal(
            self.name,
            self.say(world, name=record[thing.name_field], value=value),
            (field_check(thing.collection, key, self.field, value),),
            ((thing.find, {thing.name_field: record[thing.name_field]}), (self.tool, {thing.id_field: key, self.field: value})),
            frozenset({key}),
            changes=frozenset({self.field}),
        )


@dataclass(frozen=True)
class Add(Family):
    """ "Add the book ember on shelf north": create a record; existence and each field are graded."""

    name = "add"
    fields: tuple[str, ...]

    def make(self, world: World) -> Goal | None:
        thing = world.main
        name = world.names[thing.collection].pop()
        values = {field: world.random.choice(thing.fields[field]) for field in self.fields}
        checks = [new_check(thing.collection, thing.name_field, name, None, None)]
        checks += [new_check(thing.collection, thing.name_field, name, field, value) for field, value in values.items()]
        return Goal(
            self.name,
            self.say(world, name=name, **values),
            tuple(checks),
            ((self.tool, {thing.name_field: name, **values}),),
            frozenset(),
            changes=frozenset({"members"}),
        )


@dataclass(frozen=True)
class Remove(Family):
    """ "Remove the book ember": find the id, then delete."""

    name = "remove"

    def make(self, world: World) -> Goal | None:
        taken = world.take(world.main)
        if taken is None:
            return None
        key, record = taken
        thing = world.main
        return Goal(
            self.name,
            self.say(world, name=record[thing.name_field]),
            (gone_check(thing.collection, key),),
            ((thing.find, {thing.name_field: record[thing.name_field]}), (self.tool, {thing.id_field: key})),
            frozenset({key}),
            changes=frozenset({"removed"}),
        )


@dataclass(frozen=True)
class Each(Family):
    """ "Put every book of shelf north on shelf south": list, then set each."""

    name = "each"
    list_tool: str
    by: str
    field: str

    def make(self, world: World) -> Goal | None:
        found = world.group(self.by)
        if found is None:
            return None
        by, group = found
        thing = world.main
        values = [v for v in thing.fields[self.field] if all(record[self.field] != v for record in group.values())]
        if not values:
            return None
        value = world.random.choice(values)
        world.taken |= set(group)
        return Goal(
            self.name,
            self.say(world, by=by, value=value),
            tuple(field_check(thing.collection, key, self.field, value) for key in group),
            ((self.list_tool, {self.by: by}), *((self.tool, {thing.id_field: key, self.field: value}) for key in group)),
            frozenset(group),
            reads=frozenset({self.by, "members"}),
            changes=frozenset({self.field}),
        )


@dataclass(frozen=True)
class Link(Family):
    """ "Lend the book ember to ada": find both ids, then join them. ``holder`` keeps the other's id in ``field``."""

    name = "link"
    holder: str  # "main" or "second"
    field: str
    many: bool = False

    def make(self, world: World) -> Goal | None:
        assert world.second is not None
        first, other = world.take(world.main), world.take(world.second)
        if first is None or other is None:
            return None
        (key, record), (other_key, other_record) = first, other
        thing, second = world.main, world.second
        held, holder = (other_key, (thing.collection, key)) if self.holder == "main" else (key, (second.collection, other_key))
        check = (member_check if self.many else field_check)(*holder, self.field, held)
        return Goal(
            self.name,
            self.say(world, name=record[thing.name_field], other=other_record[second.name_field]),
            (check,),
            (
                (thing.find, {thing.name_field: record[thing.name_field]}),
                (second.find, {second.name_field: other_record[second.name_field]}),
                (self.tool, {thing.id_field: key, second.id_field: other_key}),
            ),
            frozenset({key, other_key}),
            changes=frozenset({self.field}),
        )


@dataclass(frozen=True)
class Amount(Family):
    """ "Load 3 on the truck ember": find, then add an amount to a number."""

    name = "amount"
    field: str

    def make(self, world: World) -> Goal | None:
        taken = world.take(world.main)
        if taken is None:
            return None
        key, record = taken
        thing, amount = world.main, world.random.randint(1, 5)
        return Goal(
            self.name,
            self.say(world, name=record[thing.name_field], amount=amount),
            (field_check(thing.collection, key, self.field, record[self.field] + amount),),
            ((thing.find, {thing.name_field: record[thing.name_field]}), (self.tool, {thing.id_field: key, "amount": amount})),
            frozenset({key}),
            changes=frozenset({self.field}),
        )


@dataclass(frozen=True)
class Transfer(Family):
    """ "Send 3 from ada to leo": find both, then move an amount between them."""

    name = "transfer"
    field: str

    def make(self, world: World) -> Goal | None:
        first, other = world.take(world.main), world.take(world.main)
        if first is None or other is None or first[1][self.field] < 1 or first[1].get("state") == "frozen":
            return None
        (key, record), (other_key, other_record) = first, other
        thing, amount = world.main, world.random.randint(1, min(5, record[self.field]))
        return Goal(
            self.name,
            self.say(world, name=record[thing.name_field], other=other_record[thing.name_field], amount=amount),
            (
                field_check(thing.collection, key, self.field, record[self.field] - amount),
                field_check(thing.collection, other_key, self.field, other_record[self.field] + amount),
            ),
            (
                (thing.find, {thing.name_field: record[thing.name_field]}),
                (thing.find, {thing.name_field: other_record[thing.name_field]}),
                (self.tool, {thing.id_field: key, "other_id": other_key, "amount": amount}),
            ),
            frozenset({key, other_key}),
            changes=frozenset({self.field}),
        )


@dataclass(frozen=True)
class When(Family):
    """ "If the book ember is torn, put it on shelf west, else on shelf east": find, read, choose, set."""

    name = "when"
    read: str
    field: str

    def make(self, world: World) -> Goal | None:
        taken = world.take(world.main)
        if taken is None:
            return None
        key, record = taken
        thing = world.main
        options = [value for value in thing.fields[self.field] if value != record[self.field]]
        if len(options) < 2:
            return None
        yes, no = world.random.sample(options, 2)
        asked = record[self.read] if world.random.random() < 0.5 else world.other(self.read, record[self.read])
        value = yes if record[self.read] == asked else no
        return Goal(
            self.name,
            self.say(world, name=record[thing.name_field], asked=asked, yes=yes, no=no),
            (field_check(thing.collection, key, self.field, value),),
            ((thing.find, {thing.name_field: record[thing.name_field]}), (self.tool, {thing.id_field: key, self.field: value})),
            frozenset({key}),
            changes=frozenset({self.field}),
        )


@dataclass(frozen=True)
class Count(Family):
    """ "Report how many books shelf north has": list, count, report."""

    name = "count"
    list_tool: str
    by: str

    def make(self, world: World) -> Goal | None:
        by = world.random.choice(world.main.fields[self.by])
        count = sum(record[self.by] == by for record in world.state[world.main.collection].values())
        source = f"def check_func(final_state):\n    return final_state['report'].get('count') == {count}"
        return Goal(
            self.name,
            self.say(world, by=by),
            ((f"Is the reported count {count}?", source),),
            ((self.list_tool, {self.by: by}), (self.tool, {"count": count})),
            frozenset(),
            reads=frozenset({self.by, "members", "removed"}),
            changes=frozenset({"report"}),
        )


@dataclass(frozen=True)
class Most(Family):
    """ "Set the state of the heaviest parcel for zone north to lost": list, compare numbers, set one."""

    name = "most"
    list_tool: str
    by: str
    number: str
    field: str
    least: bool = False

    def make(self, world: World) -> Goal | None:
        found = world.group(self.by)
        if found is None:
            return None
        by, group = found
        ranked = sorted(group, key=lambda key: group[key][self.number], reverse=not self.least)
        if group[ranked[0]][self.number] == group[ranked[1]][self.number]:
            return None
        key, thing = ranked[0], world.main
        value = world.other(self.field, group[key][self.field])
        world.taken |= set(group)
        return Goal(
            self.name,
            self.say(world, by=by, value=value),
            (field_check(thing.collection, key, self.field, value),),
            ((self.list_tool, {self.by: by}), (self.tool, {thing.id_field: key, self.field: value})),
            frozenset({key}),
            reads=frozenset({self.by, self.number, "members"}),
            changes=frozenset({self.field}),
        )
