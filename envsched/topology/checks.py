"""Reading a check function: what it asserts of the final state. By ``ast`` only; nothing is executed.

The kind of a check is decided by what must hold for it to pass, read off its return statements:

* conditions that only *find* a record (a loop, ``any``, ``next`` or a comprehension that stops at a match) assert nothing but
  its presence; conditions on a record that was found, or reached by a key, assert what they compare;
* a loop that fails at a match asserts absence, unless the match itself contains a negation (``status != "x"``): then every
  record must satisfy the negated part;
* "at least one" and "none" are presence and absence, any other number of items is a count;
* ``if test: return True`` with ``return False`` in its place is ``return test``;
* what the passing return compares decides; where it compares nothing (``return True``), the guards before it do;
* of several assertions the strongest names the check: count, relation, absence, equality, presence.
"""

import ast
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from envsched.topology.places import ANY, Atom, Place, Places, negated
from envsched.topology.schema import CheckKind
from envsched.topology.syntax import parse

STRENGTH = (CheckKind.COUNT, CheckKind.RELATION, CheckKind.ABSENCE, CheckKind.EQUALITY, CheckKind.PRESENCE)


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
    keeps: bool = False  # asks that things stay as they were at the start, so that nothing is to be done
    strings: frozenset[str] = frozenset()  # every string in it


@lru_cache(maxsize=65_536)
def read_check(source: str) -> CheckReading:
    """Read one check; ``other`` where it can't be told."""
    tree = parse(source)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)] if tree else []
    function = next((f for f in functions if f.name == "check_func"), functions[-1] if functions else None)
    if function is None:
        return CheckReading(CheckKind.OTHER)
    strings = _strings(function)
    reader = _Reader(function)
    try:
        reader.walk(function.body, _Context())
    except RecursionError:  # an expression nested deeper than anybody writes
        return CheckReading(CheckKind.OTHER, strings=strings)
    return replace(reader.reading(), strings=strings)


def _strings(function: ast.AST) -> frozenset[str]:
    """Every string in a function. A third of all the work where ``ast.walk`` does it."""
    found, ahead = set(), [function]
    while ahead:
        node = ahead.pop()
        if isinstance(node, ast.Constant):
            found |= {node.value} if isinstance(node.value, str) else set()
            continue
        for value in vars(node).values():
            if isinstance(value, list):
                ahead += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                ahead.append(value)
    return frozenset(found)


@dataclass(frozen=True)
class _Context:
    """Where a statement stands: the loop over records around it, and the tests around it inside that loop."""

    tests: tuple[tuple[ast.expr, bool], ...] = ()
    loop: Place | None = None

    def under(self, test: ast.expr, holds: bool) -> "_Context":
        return replace(self, tests=(*self.tests, (test, holds)))


class _Conditions(Places):
    """Tests, taken apart into comparisons."""

    def __init__(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        super().__init__(function)
        self.conditions: dict[str, list[Atom]] = {}  # names that hold a truth value

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
                return [atom if holds else negated(atom) for atom in self.conditions[name]]
            case ast.Call(func=ast.Name(id="any"), args=[ast.GeneratorExp() | ast.ListComp() as items]):
                place, atoms = self.matches(items)
                atom = self.existence(place or Place(()), atoms)
                return [atom if holds else negated(atom)]
            case ast.Call(func=ast.Name(id="all"), args=[ast.GeneratorExp() | ast.ListComp() as items]):
                self.matches(items)
                return self.atoms(items.elt, holds)
            case ast.Call(func=ast.Name(id="bool"), args=[inner]):
                return self.atoms(inner, holds)
            case ast.Call(func=ast.Name(id="isinstance"), args=[inner, _]):
                place = self.place(inner)
                return [Atom(CheckKind.PRESENCE if holds else CheckKind.ABSENCE, place, is_negative=not holds)] if place else []
            case ast.Call(func=ast.Attribute(value=inner, attr="startswith" | "endswith"), args=[other]):
                return self.affixed(inner, other, holds)
            case (
                ast.Call(func=ast.Attribute(value=part, attr="issubset"), args=[whole])
                | ast.Call(func=ast.Attribute(value=whole, attr="issuperset"), args=[part])
            ):
                place = self.place(whole)
                if place is None:
                    return self.affixed(part, whole, holds)
                return [Atom(CheckKind.PRESENCE if holds else CheckKind.ABSENCE, place.step(None), is_negative=not holds)]
        return self.truth(self.place(test), holds)

    def existence(self, place: Place, atoms: list[Atom]) -> Atom:
        return Atom(CheckKind.PRESENCE, place.found(atoms))

    def affixed(self, inner: ast.expr, other: ast.expr, holds: bool) -> list[Atom]:
        places = [place for place in (self.place(inner), self.place(other)) if place is not None]
        if not places:
            return []
        kind = CheckKind.RELATION if len(places) == 2 else CheckKind.EQUALITY
        return [Atom(kind, places[0], self.either_constant(other, inner), is_negative=not holds)]

    def truth(self, place: Place | None, holds: bool) -> list[Atom]:
        """A value taken as a truth value: a field is a flag, a record or a number of items is there or not."""
        if place is None:
            return []
        if place.is_field and not place.is_measure:
            return [Atom(CheckKind.EQUALITY, place, is_negative=not holds)]
        return [Atom(CheckKind.PRESENCE if holds else CheckKind.ABSENCE, place, is_negative=not holds)]

    def either_constant(self, *sides: ast.expr) -> Any:
        return next((constant for side in sides if (constant := self.constant(side)) is not None), None)

    def compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr, holds: bool) -> Atom | None:
        a, b = self.place(left), self.place(right)
        constant = self.either_constant(right, left)
        places = [place for place in (a, b) if place is not None]
        if not places:
            return None
        place = places[0]
        differs = isinstance(op, ast.NotEq | ast.NotIn | ast.IsNot) == holds
        if any(one.is_measure and not one.is_relation for one in places):
            return self.measured(place, op, constant, holds) if len(places) == 1 else Atom(CheckKind.RELATION, place, constant)
        if isinstance(op, ast.In | ast.NotIn):
            return self.membership(a, b, constant, differs)
        if any(isinstance(side, ast.Constant) and side.value is None for side in (left, right)):
            kind = CheckKind.EQUALITY if place.is_field else CheckKind.PRESENCE if differs else CheckKind.ABSENCE
            return Atom(kind, place, is_negative=not differs if not place.is_field else differs)
        if a is not None and b is not None and a.path == b.path and a.initial != b.initial and not differs:
            return Atom(CheckKind.RELATION, b if a.initial else a, keeps=isinstance(op, ast.Eq | ast.NotEq))
        if len(places) == 2 or place.is_relation or isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
            return Atom(CheckKind.RELATION, place, constant, is_negative=differs and isinstance(op, ast.Eq | ast.NotEq))
        return Atom(CheckKind.EQUALITY, place, constant, is_negative=differs)

    def measured(self, place: Place, op: ast.cmpop, number: Any, holds: bool) -> Atom:
        """A number of items against a constant."""
        some = (number == 0 and isinstance(op, ast.Gt | ast.NotEq)) or (number == 1 and isinstance(op, ast.GtE))
        none = (number == 0 and isinstance(op, ast.Eq | ast.LtE)) or (number == 1 and isinstance(op, ast.Lt))
        if some or none:
            return self.truth(replace(place, is_measure=True), some == holds)[0]
        return Atom(CheckKind.COUNT, place, number)

    def membership(self, a: Place | None, b: Place | None, constant: Any, differs: bool) -> Atom:
        if b is None:
            return Atom(CheckKind.EQUALITY, a, constant, is_negative=differs)
        place = b.step(constant) if isinstance(constant, str) else replace(b.step(None), found_by=a.found_by if a else ())
        return Atom(CheckKind.ABSENCE if differs else CheckKind.PRESENCE, place, constant, is_negative=differs)


class _Reader(_Conditions):
    """Statements of one check function: what its returns assert."""

    def __init__(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        super().__init__(function)
        self.asserted: list[Atom] = []  # by returns that pass
        self.guards: list[Atom] = []  # by returns that fail

    def walk(self, body: list[ast.stmt], context: _Context) -> None:
        for position, statement in enumerate(body):
            match statement:
                case ast.Return(value=ast.Constant(value=True)) if context.loop and any(map(_fails, body[:position])):
                    continue  # the guards before it on the record that was found decide
                case ast.Return(value=value):
                    self.returned(value, context, body[:position])
                case ast.If(test=test, body=inner) if context.tests and _answers(inner, True) and _answers(_rest(statement, body), False):
                    self.returned(test, context, [])
                case ast.If(test=test, body=inner, orelse=other):
                    self.place(test)
                    self.walk(inner, context.under(test, True))
                    self.walk(other, context.under(test, False))
                case ast.For(target=target, iter=source, body=inner, orelse=other):
                    place = self.bound(target, source)
                    self.walk(inner, context if place is None else _Context(loop=place))
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
                    self.values[name] = replace(self.place(value) or context.loop or Place(()), is_measure=True)
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "add"), args=[item])):
                    self.values[name] = self.found(self.place(item), context)

    def assigned(self, target: ast.expr, value: ast.expr, context: _Context) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, item in zip(target.elts, value.elts, strict=True):
                self.assigned(one, item, context)
            return
        place = self.place(value)
        if not isinstance(target, ast.Name):
            return
        name = target.id
        if isinstance(value, ast.Constant) and isinstance(value.value, bool):
            if value.value or context.loop is not None:
                self.conditions[name] = self.outcome(context, value.value)
            else:
                self.conditions.setdefault(name, [])
            return
        if isinstance(value, ast.Compare | ast.BoolOp | ast.UnaryOp) or _is_truth_call(value):
            self.conditions[name] = self.atoms(value, True)
        if isinstance(value, ast.Constant) and value.value is None:
            self.values.setdefault(name, None)
        else:
            self.values[name] = self.found(place, context) if place is not None else self.constant(value)

    def found(self, place: Place | None, context: _Context) -> Place | None:
        """The place, with the constants of the tests around it: what found it."""
        return place and place.found([atom for test, holds in context.tests if holds for atom in self.atoms(test, True)])

    def returned(self, value: ast.expr | None, context: _Context, earlier: list[ast.stmt]) -> None:
        """``earlier`` statements of the same block: where one passes, a failure here is only what remains."""
        if value is None or (isinstance(value, ast.Constant) and not value.value):
            self.guards += [] if any(map(_passes, earlier)) else self.outcome(context, False)
        elif isinstance(value, ast.Constant):
            self.asserted += self.outcome(context, True)
        else:
            if context.loop is None:
                self.guards += [atom for test, holds in context.tests for atom in self.atoms(test, holds)]
            found = [replace(atom, place=self.found(atom.place, context)) for atom in self.atoms(value, True)]
            self.asserted += found

    def outcome(self, context: _Context, passes: bool) -> list[Atom]:
        """What must hold for this branch to be taken (``passes``) or not to be taken."""
        if not context.tests:
            return []
        if passes:
            atoms = [atom for test, holds in context.tests for atom in self.atoms(test, holds)]
            return atoms if context.loop is None else [self.existence(context.loop, atoms)]
        test, holds = context.tests[-1]
        if context.loop is None:
            return self.atoms(test, not holds)
        atoms = self.atoms(test, holds)
        demanded = [negated(atom) for atom in atoms if atom.is_negative]
        if demanded or not atoms:
            return demanded
        return [negated(self.existence(context.loop, [a for t, h in context.tests for a in self.atoms(t, h)]))]

    def reading(self) -> CheckReading:
        pool = self.asserted or self.guards
        kinds = {atom.kind for atom in pool}
        kind = next((k for k in STRENGTH if k in kinds), CheckKind.OTHER)
        chosen = [atom for atom in pool if atom.kind == kind and atom.place is not None and atom.place.path]
        place = next((a.place for a in reversed(chosen) if a.place and not a.place.initial), chosen[-1].place if chosen else None)
        place = place or Place(())
        key = place.path[1:2] if len(place.path) > 1 and place.path[1] != ANY else ()
        return CheckReading(
            kind=kind,
            is_negative=any(atom.is_negative for atom in pool),
            reads_initial=self.reads_initial,
            state_keys=frozenset(self.state_keys),
            target=place.path[0] if place.path else min(self.state_keys, default=""),
            identity=tuple(map(str, key or place.found_by)),
            is_field=place.is_field,
            keeps=bool(chosen) and all(atom.keeps for atom in chosen),
        )


def _rest(statement: ast.If, body: list[ast.stmt]) -> list[ast.stmt]:
    """What is run where the test does not hold: the else branch, or what follows in the block."""
    return statement.orelse or body[body.index(statement) + 1 :]


def _answers(body: list[ast.stmt], answer: bool) -> bool:
    """The block is nothing but ``return answer``."""
    match body:
        case [ast.Return(value=ast.Constant(value=value))]:
            return value is answer
    return False


def _fails(statement: ast.stmt) -> bool:
    """A guard: a test under which the check fails."""
    return isinstance(statement, ast.If) and _answers(statement.body[-1:], False)


def _passes(statement: ast.stmt) -> bool:
    """Somewhere inside, a return passes or may pass."""
    returns = (node for node in ast.walk(statement) if isinstance(node, ast.Return) and node.value is not None)
    return any(not isinstance(node.value, ast.Constant) or bool(node.value.value) for node in returns)


def _is_truth_call(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("any", "all")
