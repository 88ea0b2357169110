"""Which place of the final state an expression of a check stands for. By ``ast`` only."""

import ast
from dataclasses import dataclass, replace
from typing import Any

from envsched.topology.schema import CheckKind

ANY = "*"  # one step of a path that a loop or a computed key takes
RECORD_DEPTH = 2  # final_state[collection][record]: shorter paths are records or collections, longer ones fields
WRAPPERS = {"set", "list", "sorted", "tuple", "frozenset", "dict", "reversed", "iter", "enumerate"}
WRAPPERS |= {"str", "int", "float", "bool", "round", "abs"}
MEASURES = {"len", "sum", "min", "max"}

Comprehension = ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp


@dataclass(frozen=True)
class Place:
    """A value of the state: by which path it is reached, by which constants it was found, whether it is a key or a measure."""

    path: tuple[str, ...]
    initial: bool = False
    found_by: tuple[Any, ...] = ()
    is_key: bool = False
    is_measure: bool = False
    is_relation: bool = False  # computed from two values of the state

    def step(self, key: Any) -> "Place":
        return replace(self, path=(*self.path, key if isinstance(key, str) else ANY))

    def found(self, atoms: "list[Atom]") -> "Place":
        """The same place, found by the constants of these comparisons as well."""
        return replace(self, found_by=(*self.found_by, *scalars(atoms)))

    @property
    def is_field(self) -> bool:
        return len(self.path) > RECORD_DEPTH


@dataclass(frozen=True)
class Atom:
    """One comparison: the kind it asserts, the place it speaks of, the constant it compares with."""

    kind: CheckKind
    place: Place | None
    constant: Any = None
    is_negative: bool = False
    keeps: bool = False  # a place equals itself at the start


NEGATED = {CheckKind.PRESENCE: CheckKind.ABSENCE, CheckKind.ABSENCE: CheckKind.PRESENCE}


def negated(atom: Atom) -> Atom:
    return replace(atom, kind=NEGATED.get(atom.kind, atom.kind), is_negative=not atom.is_negative)


def scalars(atoms: list[Atom]) -> tuple[str | int | float, ...]:
    """Constants that can single a record out."""
    return tuple(a.constant for a in atoms if isinstance(a.constant, str | int | float) and not isinstance(a.constant, bool))


class Places:
    """Names of one check function and what they stand for; ``atoms`` (of a subclass) reads the tests inside comprehensions."""

    def __init__(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        names = [argument.arg for argument in function.args.args]
        self.values: dict[str, Any] = {name: Place((), initial="init" in name) for name in names}
        self.values.setdefault("final_state", Place(()))
        self.values.setdefault("initial_state", Place((), initial=True))
        blocks = [function.body, *(node.body for node in function.body if isinstance(node, ast.Try))]
        self.functions = {node.name for block in blocks for node in block if isinstance(node, ast.FunctionDef)}  # the check's own
        self.state_keys: set[str] = set()
        self.reads_initial = False

    def atoms(self, test: ast.expr, holds: bool) -> list[Atom]:
        raise AssertionError("the reader of conditions gives this")

    def place(self, node: ast.expr) -> Place | None:
        """The place of the state that an expression yields (or has at its heart), none for anything else."""
        match node:
            case ast.Name(id=name):
                value = self.values.get(name)
                return value if isinstance(value, Place) else None
            case ast.Subscript(value=inner, slice=ast.Slice()):
                return self.place(inner)
            case ast.Subscript(value=inner, slice=key):
                return self.stepped(self.place(inner), key)
            case ast.Call():
                return self.called(node)
            case ast.GeneratorExp() | ast.ListComp() | ast.SetComp():
                place, atoms = self.matches(node)
                element = self.place(node.elt) or place
                return element and element.found(atoms)
            case ast.DictComp():
                return self.matches(node)[0]
            case ast.BinOp(left=left, right=right):
                one, two = self.place(left), self.place(right)
                return replace(one, is_relation=True) if one and two and one.path != two.path else one or two
            case ast.Attribute(value=inner):
                return self.place(inner)
            case ast.BoolOp(values=values):
                return next((place for value in values if (place := self.place(value)) is not None), None)
            case ast.IfExp(body=body, orelse=other):
                return self.place(body) or self.place(other)
            case ast.NamedExpr(target=ast.Name(id=name), value=inner):
                self.values[name] = self.place(inner)
                return self.values[name]
            case ast.UnaryOp(operand=inner) | ast.Starred(value=inner):
                return self.place(inner)
        return None

    def called(self, node: ast.Call) -> Place | None:
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr="get" | "pop"), args=[key, *_]):
                return self.stepped(self.place(inner), key)
            case ast.Call(func=ast.Attribute(value=inner, attr="count"), args=[_]):
                place = self.place(inner)
                return place and replace(place, is_measure=True)
            case ast.Call(func=ast.Attribute(value=inner), args=arguments):
                return self.place(inner) or (self.place(arguments[0]) if arguments else None)
            case ast.Call(func=ast.Name(id="max" | "min"), args=[inner], keywords=[ast.keyword(arg="key"), *_]):
                return self.place(inner)  # the record that is greatest, not a number
            case ast.Call(func=ast.Name(id=name), args=[inner, *_]) if name in MEASURES:
                place = self.place(inner)
                return place and replace(place, is_measure=True)
            case ast.Call(func=ast.Name(id=name), args=[inner, *_]) if name in WRAPPERS | self.functions or name == "next":
                return self.place(inner)
        return None

    def stepped(self, place: Place | None, key: ast.expr) -> Place | None:
        constant, inner = self.constant(key), self.place(key)
        if place is None:
            return None
        stepped = place.step(constant)
        if len(stepped.path) == 1 and stepped.path[0] != ANY:
            self.state_keys.add(stepped.path[0])
        self.reads_initial |= stepped.initial
        return replace(stepped, found_by=inner.found_by) if inner is not None else stepped

    def constant(self, node: ast.expr) -> Any:
        """The literal an expression stands for, directly or by a name; none where it is none."""
        if isinstance(node, ast.Name):
            value = self.values.get(node.id)
            return None if isinstance(value, Place) else value
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self.functions and node.args:
            return self.constant(node.args[0])
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None

    def bound(self, target: ast.expr, source: ast.expr) -> Place | None:
        """Bind a loop's target to an element of ``source``; the element's place, or none where it is no part of the state."""
        place = self.place(source)
        view = source.func.attr if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) else ""
        if place is None or place.is_measure:
            for name in ast.walk(target):
                if isinstance(name, ast.Name):
                    self.values[name.id] = None
            return None
        element = place.step(None)
        match target:
            case ast.Tuple(elts=[ast.Name(id=first), ast.Name(id=second)]):
                self.values[first] = replace(element, is_key=True) if view == "items" else None
                self.values[second] = element
            case ast.Name(id=name):
                self.values[name] = replace(element, is_key=view == "keys" or (view == "" and len(place.path) == 1))
        return element

    def matches(self, items: Comprehension) -> tuple[Place | None, list[Atom]]:
        """Bind the loops of a comprehension; its element's place and the conditions that pick elements."""
        place, atoms = None, []
        for loop in items.generators:
            bound = self.bound(loop.target, loop.iter)
            place = place or bound
            atoms += [atom for test in loop.ifs for atom in self.atoms(test, True)]
        element = items.value if isinstance(items, ast.DictComp) else items.elt
        if isinstance(element, ast.Compare | ast.BoolOp | ast.UnaryOp):
            atoms += self.atoms(element, True)
        return place, atoms
