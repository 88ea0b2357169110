"""Families of goals: recipes for goals of one shape (find then set, for each, if then else, ...), shared by all domains.

A family draws names and values from a ``World``.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from scripts.bundled_pool.checks import field_check, gone_check, member_check, new_check
from scripts.bundled_pool.goals import Goal, World


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
