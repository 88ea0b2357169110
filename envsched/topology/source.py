"""Reading an environment's class: what each tool does to which collection of the state. By ``ast`` only; nothing is executed.

A forward pass through each method follows which names stand for the state: ``self.users`` is a collection, an element of it a
record, an element of that a field. Writes are told from where they land:

* a new key of a collection (or a new record in a list) is a *create*, unless a guard has refused absent keys: then it replaces,
  an *update*;
* removing a key or an item of a collection is a *delete*, so is assigning a filtered copy of it;
* every other write, below the level of a record, is an *update*.

A tool that writes nothing is read by what it returns: truth values (or nothing but success) make a *validate*, numbers computed
over items an *aggregate*, anything else a *look_up*. Calls of other methods of the class are followed.
"""

import ast
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from envsched.topology.method import MethodReading, Methods
from envsched.topology.schema import Phase
from envsched.topology.syntax import parse
from envsched.types import Environment

METHODS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Tool:
    """What one tool does. ``kinds`` holds the writes of a writing tool, else the one kind of its reading.

    ``parameters`` are the required ones; ``returns`` the collections whose records its answer shows, ``yields`` the fields it shows.
    """

    name: str
    kinds: frozenset[Phase] = frozenset()
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    effects: frozenset[tuple[str, Phase]] = frozenset()  # (collection, kind of write)
    parameters: tuple[str, ...] = ()
    returns: frozenset[str] = frozenset()
    yields: frozenset[str] = frozenset()
    loops: bool = False
    is_read: bool = True  # its code was found and parsed


@dataclass(frozen=True)
class EnvironmentReading:
    """All tools of an environment by name, the collections of its state, and the fields of their records."""

    tools: dict[str, Tool] = field(default_factory=dict)
    fields: dict[str, tuple[str, ...]] = field(default_factory=dict)  # in the order declared: the first is the key, as a rule
    is_read: bool = True


def read_environment(environment: Environment) -> EnvironmentReading:
    """Read the class of an environment; tools without code keep their schema's parameters and are marked unread."""
    schemas = {tool["function"]["name"]: tool["function"].get("parameters") or {} for tool in environment.tools}
    required = tuple((name, _required(schema)) for name, schema in schemas.items())
    try:
        return _read(environment.source, environment.class_name, required)
    except RecursionError:  # an expression nested deeper than anybody writes
        return _unread(required)


def read_tools(environment: Environment) -> list[Tool]:
    """What each tool of an environment does, in the environment's order."""
    reading = read_environment(environment)
    return [reading.tools[name] for name in environment.tool_names]


def _required(schema: Any) -> tuple[str, ...]:
    names = schema.get("required") if isinstance(schema, dict) else None
    return tuple(map(str, names)) if isinstance(names, list) else ()


def _unread(schemas: tuple[tuple[str, tuple[str, ...]], ...]) -> EnvironmentReading:
    return EnvironmentReading({name: Tool(name, parameters=parameters, is_read=False) for name, parameters in schemas}, is_read=False)


@lru_cache(maxsize=4096)
def _read(source: str, class_name: str, schemas: tuple[tuple[str, tuple[str, ...]], ...]) -> EnvironmentReading:
    tree = parse(source)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)} if tree else {}
    node = classes.get(class_name)
    if node is None:
        return _unread(schemas)
    methods = {item.name: item for base in (*_bases(node, classes), node) for item in base.body if isinstance(item, METHODS)}
    book = _Book(methods, classes)
    return EnvironmentReading({name: book.tool(name, parameters) for name, parameters in schemas}, book.fields)


def _bases(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> list[ast.ClassDef]:
    named = [classes[base.id] for base in node.bases if isinstance(base, ast.Name) and base.id in classes and base.id != node.name]
    return [ancestor for base in named for ancestor in (*_bases(base, {k: v for k, v in classes.items() if v is not node}), base)]


def _record_fields(methods: Methods, classes: dict[str, ast.ClassDef]) -> tuple[dict[str, tuple[str, ...]], set[str]]:
    """Collections that methods set on ``self``, each with the fields of the records its annotation names; and the yes/no fields."""
    fields: dict[str, tuple[str, ...]] = {}
    truths: set[str] = set()
    for node in (node for method in methods.values() for node in ast.walk(method)):
        match node:
            case ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=key), annotation=annotation):
                named = [n.id for n in ast.walk(annotation) if isinstance(n, ast.Name) and n.id in classes]
                declared = [item for name in named for item in classes[name].body if isinstance(item, ast.AnnAssign)]
                fields[key] = tuple(item.target.id for item in declared if isinstance(item.target, ast.Name))
                truths |= {ast.unparse(item.target) for item in declared if ast.unparse(item.annotation) == "bool"}
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=key)]):
                fields.setdefault(key, ())
    return {key: names for key, names in fields.items() if key != "init_config" and not key.startswith("_")}, truths


class _Book:
    """Methods of one class, each read once; recursion among them ends at the method already being read."""

    def __init__(self, methods: Methods, classes: dict[str, ast.ClassDef]) -> None:
        self.methods = methods
        self.fields, self.truths = _record_fields(methods, classes)
        self.readings: dict[str, MethodReading] = {}

    def reading(self, name: str) -> MethodReading:
        if name not in self.readings:
            method = self.readings[name] = MethodReading(self)
            method.walk(self.methods[name].body)
        return self.readings[name]

    def tool(self, name: str, parameters: tuple[str, ...]) -> Tool:
        if name not in self.methods:
            return Tool(name, parameters=parameters, is_read=False)
        method = self.reading(name)
        effects = frozenset(effect for effect in method.effects if effect[0] in self.fields)
        kinds = frozenset(kind for _, kind in effects) or frozenset({method.reading_kind()})
        reads = frozenset(method.reads & self.fields.keys())
        returns = frozenset(part.key for part in method.returned if not part.is_key and part.key in self.fields)
        yields = frozenset(name for key in returns for name in self.fields[key]) | method.shown
        writes = frozenset(key for key, _ in effects)
        return Tool(name, kinds, reads, writes, effects, parameters, returns, yields, method.loops)
