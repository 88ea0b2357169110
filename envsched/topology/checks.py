"""Reading a check function: what it asserts of the final state. By ``ast`` only; nothing is executed.

The kind of a check is decided by what must hold for it to pass, read off its return statements:

* conditions that only *find* a record (a loop, ``any``, ``next`` or a comprehension that stops at a match) assert nothing but
  its presence; conditions on a record that was found, or reached by a key, assert what they compare;
* a loop that fails at a match asserts absence, unless the match itself contains a negation (``status != "x"``): then every
  record must satisfy the negated part;
* of several assertions the strongest names the check: count, relation, absence, equality, presence.
"""

import ast
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from envsched.topology.schema import CheckKind
from envsched.topology.syntax import parse

STRENGTH = (CheckKind.COUNT, CheckKind.RELATION, CheckKind.ABSENCE, CheckKind.EQUALITY, CheckKind.PRESENCE)
ANY = "*"  # one step of a path that a loop or a computed key takes
RECORD_DEPTH = 2  # final_state[collection][record]: shorter paths are records or collections, longer ones fields
VIEWS = {"values", "items", "keys"}
WRAPPERS = {"set", "list", "sorted", "tuple", "frozenset", "dict", "reversed", "iter", "enumerate"}
WRAPPERS |= {"str", "int", "float", "bool", "round", "abs"}
MEASURES = {"len", "sum", "min", "max"}


@dataclass(frozen=True)
class Place:
    """A value of the state: whence, by which path, by which constants it was found, whether it is a key or a measure."""

    path: tuple[str, ...]
    initial: bool = False
    found_by: tuple[Any, ...] = ()
    is_key: bool = False
    is_measure: bool = False

    def step(self, key: Any) -> "Place":
        return replace(self, path=(*self.path, key if isinstance(key, str) else ANY))


@dataclass(frozen=True)
class Atom:
    """One comparison: its kind when it must hold, the place it speaks of, and the constant it compares with."""

    kind: CheckKind
    place: Place | None
    constant: Any = None
    is_negative: bool = False


@dataclass(frozen=True)
class CheckReading:
    """What a check asserts: kind, traits, and where. ``target`` is a collection, ``identity`` what singles a record out in it."""

    kind: CheckKind
    is_negative: bool = False
    reads_initial: bool = False
    state_keys: frozenset[str] = frozenset()
    target: str = ""
    identity: tuple[str, ...] = ()
    is_field: bool = False  # speaks of a field, not of a whole record
    constants: frozenset[str] = frozenset()  # strings it compares with or reaches records by


NEGATED = {CheckKind.PRESENCE: CheckKind.ABSENCE, CheckKind.ABSENCE: CheckKind.PRESENCE}


@lru_cache(maxsize=65_536)
def read_check(source: str) -> CheckReading:
    """Read one check; ``other`` where it can't be told."""
    tree = parse(source)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)] if tree else []
    function = next((f for f in functions if f.name == "check_func"), functions[-1] if functions else None)
    if function is None:
        return CheckReading(CheckKind.OTHER)
    reader = _Reader(function)
    reader.walk(function.body, _Context())
    return reader.reading()


@dataclass(frozen=True)
class _Context:
    """Where a statement stands: tests around it, whether a loop over records is around, constants that found its record."""

    tests: tuple[tuple[ast.expr, bool], ...] = ()  # inside the innermost loop
    loop: Place | None = None

    def under(self, test: ast.expr, holds: bool) -> "_Context":
        return replace(self, tests=(*self.tests, (test, holds)))


class _Reader:
    def __init__(self, function: ast.FunctionDef) -> None:
        names = [argument.arg for argument in function.args.args]
        self.values: dict[str, Any] = {name: Place((), initial="init" in name) for name in names}
        self.values.setdefault("final_state", Place(()))
        self.values.setdefault("initial_state", Place((), initial=True))
        self.conditions: dict[str, list[Atom]] = {}  # names that hold a truth value
        self.asserted: list[Atom] = []
        self.state_keys: set[str] = set()
        self.constants: set[str] = set()
        self.reads_initial = False

    # -- statements

    def walk(self, body: list[ast.stmt], context: _Context) -> None:
        for statement in body:
            match statement:
                case ast.Return(value=value):
                    self.returned(value, context)
                case ast.If(test=test, body=inner, orelse=other):
                    self.place(test)
                    self.walk(inner, context.under(test, True))
                    self.walk(other, context.under(test, False))
                case ast.For(target=target, iter=source, body=inner, orelse=other):
                    self.walk(inner, self.looped(target, source, context))
                    self.walk(other, context)
                case ast.While(test=test, body=inner):
                    self.walk(inner, context.under(test, True))
                case ast.Try(body=inner, orelse=other):
                    self.walk([*inner, *other], context)
                case ast.With(body=inner):
                    self.walk(inner, context)
                case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=value) if value is not None:
                    self.assigned(target, value, context)
                case ast.AugAssign(target=ast.Name(id=name), value=value):
                    self.place(value)
                    self.values[name] = replace(self.place(value) or context.loop or Place(()), is_measure=True)
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "add"), args=[item])):
                    self.values[name] = self.found(self.place(item), context)

    def looped(self, target: ast.expr, source: ast.expr, context: _Context) -> _Context:
        place = self.bound(target, source)
        if place is None:
            return context
        return _Context(loop=place)

    def bound(self, target: ast.expr, source: ast.expr) -> Place | None:
        """Bind a loop's target to an element of ``source``; the element's place, or none where it is no part of the state."""
        place = self.place(source)
        view = source.func.attr if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) else ""
        names = [n.id for n in target.elts if isinstance(n, ast.Name)] if isinstance(target, ast.Tuple) else []
        if place is None or place.is_measure:
            for name in ast.walk(target):
                if isinstance(name, ast.Name):
                    self.values[name.id] = None
            return None
        element = place.step(None)
        if len(names) == 2:
            self.values[names[0]] = replace(element, is_key=True) if view == "items" else None
            self.values[names[1]] = element
        elif isinstance(target, ast.Name):
            is_key = view == "keys" or (view == "" and len(place.path) == 1)
            self.values[target.id] = replace(element, is_key=is_key)
        return element

    def assigned(self, target: ast.expr, value: ast.expr, context: _Context) -> None:
        if not isinstance(target, ast.Name):
            self.place(value)
            return
        name = target.id
        if isinstance(value, ast.Constant) and isinstance(value.value, bool):
            if value.value or context.loop is not None:
                self.conditions[name] = self.outcome(context, value.value)
            else:
                self.conditions.setdefault(name, [])
            return
        place = self.place(value)
        if isinstance(value, ast.Compare | ast.BoolOp | ast.UnaryOp) or _is_call(value, "any", "all"):
            self.conditions[name] = self.atoms(value, True)
        if isinstance(value, ast.Constant) and value.value is None:
            self.values.setdefault(name, None)
        else:
            self.values[name] = self.found(place, context) if place is not None else self.constant(value)

    def found(self, place: Any, context: _Context) -> Any:
        """The place, with the constants of the tests around it: what found it."""
        if not isinstance(place, Place):
            return place
        atoms = [atom for test, holds in context.tests if holds for atom in self.atoms(test, True)]
        return replace(place, found_by=(*place.found_by, *_scalars(atoms)))

    # -- what a return statement asserts

    def returned(self, value: ast.expr | None, context: _Context) -> None:
        if value is None or (isinstance(value, ast.Constant) and not value.value):
            self.asserted += self.outcome(context, False)
        elif isinstance(value, ast.Constant):
            self.asserted += self.outcome(context, True)
        else:
            if context.loop is None:
                self.asserted += [atom for test, holds in context.tests for atom in self.atoms(test, holds)]
            self.asserted += [_found(atom, self.found(atom.place, context)) for atom in self.atoms(value, True)]

    def outcome(self, context: _Context, passes: bool) -> list[Atom]:
        """What must hold for this branch to be taken (``passes``) or not to be taken."""
        if not context.tests:
            return []
        if passes:
            atoms = [atom for test, holds in context.tests for atom in self.atoms(test, holds)]
            return [self.existence(context.loop, atoms)] if context.loop is not None else atoms
        test, holds = context.tests[-1]
        atoms = self.atoms(test, holds)
        if context.loop is None:
            return self.atoms(test, not holds)
        negations = [atom for atom in atoms if atom.is_negative]
        if negations:
            return self.universal(test, holds)
        return [replace(self.existence(context.loop, atoms), kind=CheckKind.ABSENCE, is_negative=True)] if atoms else []

    def existence(self, place: Place, atoms: list[Atom]) -> Atom:
        constants = _scalars(atoms)
        return Atom(CheckKind.PRESENCE, replace(place, found_by=(*place.found_by, *constants)), constants)

    def universal(self, test: ast.expr, holds: bool) -> list[Atom]:
        """The negated parts of a test that no record may meet."""
        return [atom for atom in self.atoms(test, not holds) if not atom.is_negative] or self.atoms(test, not holds)

    # -- conditions

    def atoms(self, test: ast.expr, holds: bool) -> list[Atom]:
        """Comparisons of ``test``, each as it stands when the test ``holds`` or does not."""
        match test:
            case ast.BoolOp(values=values):
                return [atom for value in values for atom in self.atoms(value, holds)]
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.atoms(operand, not holds)
            case ast.NamedExpr(value=value):
                return self.atoms(value, holds)
            case ast.Compare(left=left, ops=ops, comparators=rights):
                pairs = zip([left, *rights], ops, rights, strict=False)
                return [atom for a, op, b in pairs if (atom := self.compared(a, op, b, holds)) is not None]
            case ast.Name(id=name) if name in self.conditions:
                return [atom if holds else _negated(atom) for atom in self.conditions[name]]
            case ast.Call(func=ast.Name(id="any"), args=[ast.GeneratorExp() | ast.ListComp() as items]):
                place, atoms = self.matches(items)
                atom = self.existence(place or Place(()), atoms)
                return [atom if holds else _negated(atom)]
            case ast.Call(func=ast.Name(id="all"), args=[ast.GeneratorExp() | ast.ListComp() as items]):
                self.matches(items)
                return self.atoms(items.elt, holds)
            case ast.Call(func=ast.Name(id="bool"), args=[inner]):
                return self.atoms(inner, holds)
            case ast.Call(func=ast.Name(id="isinstance"), args=[inner, _]):
                place = self.place(inner)
                return [Atom(CheckKind.PRESENCE, place, is_negative=False)] if isinstance(place, Place) else []
            case ast.Call(func=ast.Attribute(value=inner, attr="startswith" | "endswith" | "issubset" | "issuperset"), args=[other]):
                return self.affixed(inner, other, holds)
        return self.truth(self.place(test), holds)

    def affixed(self, inner: ast.expr, other: ast.expr, holds: bool) -> list[Atom]:
        places = [place for place in (self.place(inner), self.place(other)) if isinstance(place, Place)]
        constant = self.constant(other) if self.constant(other) is not None else self.constant(inner)
        if not places:
            return []
        return [Atom(CheckKind.RELATION if len(places) == 2 else CheckKind.EQUALITY, places[0], constant, is_negative=not holds)]

    def truth(self, place: Any, holds: bool) -> list[Atom]:
        if not isinstance(place, Place):
            return []
        if place.is_measure:
            return [Atom(CheckKind.COUNT, place, is_negative=not holds)]
        if len(place.path) > RECORD_DEPTH:
            return [Atom(CheckKind.EQUALITY, place, is_negative=not holds)]
        return [Atom(CheckKind.PRESENCE if holds else CheckKind.ABSENCE, place, is_negative=not holds)]

    def compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr, holds: bool) -> Atom | None:
        a, b = self.place(left), self.place(right)
        constant = self.constant(right) if self.constant(right) is not None else self.constant(left)
        places = [place for place in (a, b) if isinstance(place, Place)]
        if not places:
            return None
        is_negative = isinstance(op, ast.NotEq | ast.NotIn | ast.IsNot) == holds
        if any(place.is_measure for place in places):
            return Atom(CheckKind.COUNT if len(places) == 1 else CheckKind.RELATION, places[0], constant)
        if isinstance(op, ast.In | ast.NotIn):
            return self.membership(a, b, constant, is_negative)
        if isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq) and (_is_none(left) or _is_none(right)):
            if len(places[0].path) > RECORD_DEPTH:
                return Atom(CheckKind.EQUALITY, places[0], is_negative=is_negative)
            return Atom(CheckKind.ABSENCE if not is_negative else CheckKind.PRESENCE, places[0], is_negative=not is_negative)
        if len(places) == 2 or isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
            return Atom(CheckKind.RELATION, places[0], constant, is_negative=is_negative and isinstance(op, ast.Eq | ast.NotEq))
        return Atom(CheckKind.EQUALITY, places[0], constant, is_negative=is_negative)

    def membership(self, a: Any, b: Any, constant: Any, is_negative: bool) -> Atom:
        if isinstance(b, Place):
            found_by = a.found_by if isinstance(a, Place) else ()
            place = b.step(constant) if isinstance(constant, str) else replace(b.step(None), found_by=found_by)
            return Atom(CheckKind.ABSENCE if is_negative else CheckKind.PRESENCE, place, constant, is_negative=is_negative)
        return Atom(CheckKind.EQUALITY, a, constant, is_negative=is_negative)

    def matches(self, items: ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp) -> tuple[Place | None, list[Atom]]:
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

    # -- values

    def place(self, node: ast.expr) -> Any:
        """The place of the state that an expression yields (or has at its heart), none for anything else."""
        match node:
            case ast.Name(id=name):
                value = self.values.get(name)
                return value if isinstance(value, Place) else None
            case ast.Subscript(value=inner, slice=key):
                return self.stepped(self.place(inner), key)
            case ast.Call(func=ast.Attribute(value=inner, attr="get" | "pop"), args=[key, *_]):
                return self.stepped(self.place(inner), key)
            case ast.Call(func=ast.Attribute(value=inner, attr="count"), args=[_]):
                place = self.place(inner)
                return place and replace(place, is_measure=True)
            case ast.Call(func=ast.Attribute(value=inner)):
                return self.place(inner)
            case ast.Call(func=ast.Name(id=name), args=[inner, *_]) if name in MEASURES:
                place = self.place(inner)
                return place and replace(place, is_measure=True)
            case ast.Call(func=ast.Name(id="next"), args=[inner, *_]):
                return self.place(inner)
            case ast.Call(func=ast.Name(id=name), args=[inner, *_]) if name in WRAPPERS:
                return self.place(inner)
            case ast.GeneratorExp() | ast.ListComp() | ast.SetComp():
                place, atoms = self.matches(node)
                element = self.place(node.elt) or place
                return element and replace(element, found_by=(*element.found_by, *_scalars(atoms)))
            case ast.DictComp():
                return self.matches(node)[0]
            case ast.BinOp(left=left, right=right):
                return self.place(left) or self.place(right)
            case ast.BoolOp(values=values):
                return next((place for value in values if (place := self.place(value)) is not None), None)
            case ast.IfExp(body=body, orelse=other):
                return self.place(body) or self.place(other)
            case ast.UnaryOp(operand=inner) | ast.Starred(value=inner) | ast.NamedExpr(value=inner):
                return self.place(inner)
        return None

    def stepped(self, place: Place | None, key: ast.expr) -> Place | None:
        constant = self.constant(key)
        inner = self.place(key)
        if place is None:
            return None
        stepped = place.step(constant)
        if len(stepped.path) == 1 and stepped.path[0] != ANY:
            self.state_keys.add(stepped.path[0])
        if isinstance(constant, str) and len(stepped.path) == RECORD_DEPTH:
            self.constants.add(constant)
        self.reads_initial |= stepped.initial
        return replace(stepped, found_by=inner.found_by) if isinstance(inner, Place) else stepped

    def constant(self, node: ast.expr) -> Any:
        """The literal an expression stands for, directly or by a name; none where it is none."""
        if isinstance(node, ast.Name):
            value = self.values.get(node.id)
            value = None if isinstance(value, Place) else value
        else:
            try:
                value = ast.literal_eval(node)
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                return None
        for text in value if isinstance(value, list | set | tuple) else [value]:
            if isinstance(text, str):
                self.constants.add(text)
        return value

    def reading(self) -> CheckReading:
        kinds = {atom.kind for atom in self.asserted}
        kind = next((k for k in STRENGTH if k in kinds), CheckKind.OTHER)
        chosen = [atom for atom in self.asserted if atom.kind == kind and atom.place is not None and atom.place.path]
        place = next((a.place for a in reversed(chosen) if not a.place.initial), chosen[-1].place if chosen else Place(()))
        target = place.path[0] if place.path else next(iter(sorted(self.state_keys)), "")
        key = place.path[1:2] if len(place.path) > 1 and place.path[1] != ANY else ()
        return CheckReading(
            kind=kind,
            is_negative=kind == CheckKind.ABSENCE or any(atom.is_negative for atom in chosen),
            reads_initial=self.reads_initial,
            state_keys=frozenset(self.state_keys),
            target=target,
            identity=tuple(map(str, key or place.found_by)),
            is_field=len(place.path) > RECORD_DEPTH,
            constants=frozenset(self.constants),
        )


def _negated(atom: Atom) -> Atom:
    kind = NEGATED.get(atom.kind, atom.kind)
    return replace(atom, kind=kind, is_negative=not atom.is_negative)


def _found(atom: Atom, place: Any) -> Atom:
    return replace(atom, place=place)


def _scalars(atoms: list[Atom]) -> tuple[str | int | float, ...]:
    """Constants that can single a record out."""
    return tuple(a.constant for a in atoms if isinstance(a.constant, str | int | float) and not isinstance(a.constant, bool))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_call(node: ast.expr, *names: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
