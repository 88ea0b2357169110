"""How calls depend on each other: which tool's output feeds which argument of another.

A record of collection c is found by a tool that returns records of c. Such a tool may itself need the identifier of another
collection's record, which must be found first:

    steps(c) = min over tools that return c of 1 + max over their identifier arguments p of steps(home(p))

home(p) is the collection whose records are known by p; an argument without a home (a name, a date) is taken from the prompt.
"""

from collections.abc import Iterable
from functools import cached_property

from envsched.topology.schema import WRITES, Phase
from envsched.topology.source import EnvironmentReading, read_environment
from envsched.types import Environment

MAX_DEPTH = 99
IDENTIFIER_ENDINGS = ("_id", "id", "_key", "_code", "_number")


def tool_flows(environment: Environment) -> list[tuple[str, str, str]]:
    """(tool, argument, tool whose output shows it) for every identifier argument in an environment, sorted."""
    return Flow(read_environment(environment)).feeds()


class Flow:
    """Dependencies among the tools of one environment."""

    def __init__(self, reading: EnvironmentReading) -> None:
        self.reading = reading

    def has(self, collection: str, kind: Phase) -> bool:
        """Some tool makes this kind of write to the collection."""
        return any((collection, kind) in tool.effects for tool in self.reading.tools.values())

    @cached_property
    def home(self) -> dict[str, str]:
        """Identifier argument -> the collection whose records are known by it."""
        homes = {names[0]: key for key, names in self.reading.fields.items() if names}
        for key in self.reading.fields:
            for form in (key, key.rstrip("s"), key[:-3] + "y" if key.endswith("ies") else key):
                homes.setdefault(f"{form}_id", key)
        return {name: key for name, key in homes.items() if name.endswith(IDENTIFIER_ENDINGS)}

    @cached_property
    def steps(self) -> dict[str, int]:
        """Calls in a row that it takes to find a record of each collection that some tool returns."""
        steps: dict[str, int] = {}
        readers = [tool for tool in self.reading.tools.values() if tool.returns and not tool.kinds & set(WRITES)]
        for _ in range(len(self.reading.fields)):  # each pass settles at least one more collection
            for tool in readers:
                needed = [self.home[p] for p in tool.parameters if p in self.home]
                for collection in tool.returns:
                    if collection in needed or any(key not in steps for key in needed):
                        continue
                    found = 1 + max((steps[key] for key in needed), default=0)
                    steps[collection] = min(found, steps.get(collection, MAX_DEPTH))
        return steps

    def feeds(self) -> list[tuple[str, str, str]]:
        """(tool, argument, tool that shows it): every edge of the dependency graph, sorted."""
        tools = self.reading.tools.values()
        return sorted(
            (taker.name, parameter, giver.name)
            for taker in tools
            for parameter in taker.parameters
            if parameter.endswith(IDENTIFIER_ENDINGS)
            for giver in tools
            if giver is not taker and parameter in giver.yields and parameter not in giver.parameters
        )

    def depth(self, to_find: Iterable[str], to_create: Iterable[str]) -> int:
        """Longest chain of calls: finding what is hidden, then creating records that need each other, then the last write."""
        finding = max((self.steps.get(collection, 1) for collection in to_find), default=0)
        return min(finding + max(1, self._creating(frozenset(to_create))), MAX_DEPTH)

    def _creating(self, collections: frozenset[str]) -> int:
        """Longest chain of creations in which one needs the identifier of the one before."""
        needs = {key: self._arguments(key) & (collections - {key}) for key in collections}
        depth = dict.fromkeys(collections, 1)
        for _ in collections:
            depth = {key: 1 + max((depth[need] for need in needs[key]), default=0) for key in collections}
        return min(max(depth.values(), default=0), len(collections))

    def _arguments(self, collection: str) -> set[str]:
        """Collections whose identifiers the creation of a record takes."""
        creators = (tool for tool in self.reading.tools.values() if (collection, Phase.CREATE) in tool.effects)
        return {self.home[parameter] for tool in creators for parameter in tool.parameters if parameter in self.home}
