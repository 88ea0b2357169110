"""A forward pass through one method of an environment's class; ``source.py`` has the rules that it follows."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from envsched.topology.schema import Phase

ADDERS = {"append", "add", "insert", "extend", "appendleft"}
REMOVERS = {"remove", "discard", "pop", "popitem", "clear", "popleft"}
COPIES = {"list", "sorted", "tuple", "set", "reversed", "enumerate", "filter", "iter"}
SNAPSHOTS = {"dict", "copy", "deepcopy"}
MEASURES = {"len", "sum", "min", "max", "round", "Counter", "mean", "median"}
TRUTHS = {"bool", "any", "all", "isinstance", "startswith", "endswith"}
OUTCOME_FIELDS = {"success", "message", "error"}
RESULT_FIELD = "data"


@dataclass(frozen=True)
class Part:
    """A value that is, holds or derives from a part of the state: its collection and how far below it lies."""

    key: str
    depth: int
    is_copy: bool = False  # the container is a copy, its elements are not
    is_filtered: bool = False  # a copy without some of the elements
    is_key: bool = False  # a key of the collection, not an element
    is_holder: bool = False  # a fresh value that holds the part

    def below(self) -> "Part":
        if self.is_holder:
            return replace(self, is_holder=False)
        return replace(self, depth=self.depth + 1, is_copy=False, is_filtered=False)


FRESH = "fresh"  # a dict or list made here
Value = Part | str | None


Methods = dict[str, ast.FunctionDef | ast.AsyncFunctionDef]


class Book(Protocol):
    """What a method may ask about its class."""

    methods: Methods
    truths: set[str]  # fields that hold yes or no

    def reading(self, name: str) -> "MethodReading": ...


class MethodReading:
    """A forward pass through one method."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.values: dict[str, Value] = {}
        self.natures: dict[str, Phase] = {}  # names that hold a truth value or a measure
        self.guarded: set[tuple[str, str]] = set()  # (collection, key expression) whose absence was refused
        self.effects: set[tuple[str, Phase]] = set()
        self.reads: set[str] = set()
        self.returned: set[Part] = set()
        self.shown: set[str] = set()  # fields of the answer's own making
        self.fields_of: dict[str, set[str]] = {}  # name -> fields of the dicts that it holds
        self.answers: list[Phase] = []
        self.loops = False

    # -- statements

    def walk(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            match statement:
                case ast.Assign(targets=targets, value=value):
                    found = self.value(value)
                    for target in targets:
                        self.assign(target, found, value)
                case ast.AnnAssign(target=target, value=value) if value is not None:
                    self.assign(target, self.value(value), value)
                case ast.AugAssign(target=target, value=value):
                    self.value(value)
                    self.augment(target, value)
                case ast.Delete(targets=targets):
                    for target in targets:
                        self.remove(target)
                case ast.Return(value=value) if value is not None:
                    self.answer(value)
                case ast.Expr(value=value):
                    self.value(value)
                case ast.If(test=ast.UnaryOp(op=ast.Not(), operand=ast.Call(func=ast.Name(id="hasattr")))):
                    continue  # makes a collection on first use: no change of the state
                case ast.If(test=test, body=inner, orelse=other):
                    self.value(test)
                    self.guard(test, inner)
                    self.walk(inner)
                    self.walk(other)
                case ast.For(target=target, iter=source, body=inner, orelse=other):
                    self.bind(target, source)
                    self.loops |= isinstance(self.value(source), Part)
                    self.walk(inner)
                    self.walk(other)
                case ast.While(test=test, body=inner):
                    self.value(test)
                    self.walk(inner)
                case ast.Try(body=inner, handlers=handlers, orelse=other, finalbody=last):
                    self.walk([*inner, *(s for handler in handlers for s in handler.body), *other, *last])
                case ast.With(items=items, body=inner):
                    for item in items:
                        self.value(item.context_expr)
                    self.walk(inner)
                case ast.FunctionDef(body=inner):
                    self.walk(statement for statement in inner if not isinstance(statement, ast.Return))

    def guard(self, test: ast.expr, inner: list[ast.stmt]) -> None:
        """``if key not in self.x: return ...``, or a looked-up record that is none: from here on the key is there."""
        if not (inner and isinstance(inner[-1], ast.Return | ast.Raise)):
            return
        for part in test.values if isinstance(test, ast.BoolOp) else [test]:
            match part:
                case ast.Compare(left=left, ops=[ast.NotIn()], comparators=[right]):
                    collection = self.value(right)
                    if isinstance(collection, Part):
                        self.guarded.add((collection.key, ast.unparse(left)))
                case ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)) | ast.Compare(left=ast.Name(id=name), ops=[ast.Is()]):
                    self.guarded |= {(key, text) for key, text, holder in self.looked_up if holder == name}

    looked_up: frozenset[tuple[str, str, str]] = frozenset()

    def assign(self, target: ast.expr, found: Value, value: ast.expr) -> None:
        match target:
            case ast.Name(id=name):
                self.values[name] = found
                self.fields_of[name] = self.fields_in(value)
                nature = self.nature(value)
                if nature is None:
                    self.natures.pop(name, None)
                else:
                    self.natures[name] = nature
                self.looked_up |= {(key, text, name) for key, text in _lookups(value, self)}
            case ast.Tuple(elts=targets) if isinstance(value, ast.Tuple) and len(value.elts) == len(targets):
                for one, item in zip(targets, value.elts, strict=True):
                    self.assign(one, self.value(item), item)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                for one in targets:
                    self.assign(one, found, value)
            case ast.Subscript(value=container, slice=key):
                self.value(key)
                self.store(self.value(container), key, found, value)
            case ast.Attribute(value=ast.Name(id="self"), attr=attribute):
                self.effects.add((attribute, _reassignment(found, value)))
            case ast.Attribute(value=container):
                self.touch(self.value(container), Phase.UPDATE)

    def store(self, container: Value, key: ast.expr, found: Value, value: ast.expr) -> None:
        """``container[key] = value``."""
        if not isinstance(container, Part) or container.is_copy or container.is_key or container.is_holder:
            return
        if container.depth > 0:
            self.touch(container, Phase.UPDATE)
            return
        is_known = (container.key, ast.unparse(key)) in self.guarded
        is_back = isinstance(found, Part) and found.key == container.key
        if isinstance(found, Part) and found.key == container.key and found.is_filtered:
            self.touch(container, Phase.DELETE)
            return
        self.touch(container, Phase.UPDATE if is_known or is_back else Phase.CREATE)

    def augment(self, target: ast.expr, value: ast.expr) -> None:
        match target:
            case ast.Name(id=name):
                part = self.values.get(name)
                if isinstance(part, Part) and not part.is_copy and part.depth == 0 and isinstance(value, ast.List):
                    self.touch(part, Phase.CREATE)
                if isinstance(value, ast.Constant | ast.BinOp | ast.Name | ast.Subscript | ast.Call) and not isinstance(part, Part):
                    self.natures[name] = Phase.AGGREGATE
            case ast.Subscript(value=container):
                self.touch(self.value(container), Phase.UPDATE)
            case ast.Attribute(value=ast.Name(id="self"), attr=attribute):
                self.effects.add((attribute, Phase.UPDATE))

    def remove(self, target: ast.expr) -> None:
        if isinstance(target, ast.Subscript):
            container = self.value(target.value)
            self.value(target.slice)
            if isinstance(container, Part):
                self.touch(container, Phase.DELETE if container.depth == 0 else Phase.UPDATE)

    def touch(self, part: Value, kind: Phase) -> None:
        if isinstance(part, Part) and not part.is_copy and not part.is_key and not part.is_holder:
            self.effects.add((part.key, kind))

    def bind(self, target: ast.expr, source: ast.expr) -> None:
        """Loop names stand for elements of the source."""
        found = self.value(source)
        view = source.func.attr if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) else ""
        wrapped = source.args[0] if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.args else None
        if isinstance(wrapped, ast.Call) and isinstance(wrapped.func, ast.Attribute):
            view = wrapped.func.attr
        if not isinstance(found, Part):
            for name in ast.walk(target):
                if isinstance(name, ast.Name):
                    self.values[name.id] = None
            return
        element = found.below()
        match target:
            case ast.Tuple(elts=[ast.Name(id=first), second]):
                self.values[first] = replace(element, is_key=True) if view == "items" else None
                for name in ast.walk(second):
                    if isinstance(name, ast.Name):
                        self.values[name.id] = element
            case ast.Name(id=name):
                self.values[name] = replace(element, is_key=True) if view == "keys" else element

    # -- expressions

    def value(self, node: ast.expr) -> Value:
        """What part of the state an expression stands for; on the way, its effects and reads are taken down."""
        match node:
            case ast.Name(id=name):
                return self.values.get(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=attribute):
                self.reads.add(attribute)
                return Part(attribute, 0)
            case ast.Attribute(value=inner):
                found = self.value(inner)
                return found.below() if isinstance(found, Part) else None
            case ast.Subscript(value=inner, slice=key):
                found = self.value(inner)
                self.value(key)
                return (found if isinstance(key, ast.Slice) else found.below()) if isinstance(found, Part) else None
            case ast.Call():
                return self.call(node)
            case ast.GeneratorExp() | ast.ListComp() | ast.SetComp() | ast.DictComp():
                return self.comprehension(node)
            case ast.BoolOp(values=values) | ast.List(elts=values) | ast.Tuple(elts=values) | ast.Set(elts=values):
                found = [self.value(value) for value in values]
                part = next((one for one in found if isinstance(one, Part)), None)
                if isinstance(node, ast.BoolOp):
                    return part
                return replace(part, is_holder=True) if part else FRESH
            case ast.Dict(keys=keys, values=values):
                found = [self.value(value) for value in (*values, *(key for key in keys if key is not None))]
                part = next((one for one in found if isinstance(one, Part) and not one.is_key), None)
                return replace(part, is_holder=True) if part and part.depth <= 1 else FRESH
            case ast.IfExp(test=test, body=body, orelse=other):
                self.value(test)
                one, two = self.value(body), self.value(other)
                return one if isinstance(one, Part) else two
            case ast.Lambda(body=body) | ast.Starred(value=body) | ast.UnaryOp(operand=body) | ast.FormattedValue(value=body):
                return self.value(body)
            case ast.NamedExpr(target=target, value=inner):
                found = self.value(inner)
                self.assign(target, found, inner)
                return found
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)
        return None

    def call(self, node: ast.Call) -> Value:
        arguments = [self.value(argument) for argument in (*node.args, *(keyword.value for keyword in node.keywords))]
        match node.func:
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if name in self.book.methods:
                return self.followed(self.book.reading(name))
            case ast.Attribute(value=owner, attr=name):
                return self.method_call(self.value(owner), name, node, arguments)
            case ast.Name(id="next") | ast.Name(id="min") | ast.Name(id="max") if arguments and isinstance(arguments[0], Part):
                return arguments[0].below()
            case ast.Name(id=name) if name in COPIES and arguments and isinstance(arguments[-1], Part):
                return replace(arguments[-1], is_copy=True)
            case ast.Name(id=name) if name in SNAPSHOTS:
                return FRESH
        return None

    def method_call(self, owner: Value, name: str, node: ast.Call, arguments: list[Value]) -> Value:
        if name in ADDERS and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            held = self.fields_of.setdefault(node.func.value.id, set())
            held.update(*(self.fields_in(argument) for argument in node.args))
        if name in ("copy", "deepcopy") and (isinstance(owner, Part) or arguments):
            return FRESH
        if not isinstance(owner, Part):
            return None
        if name in ("values", "items"):
            return owner
        if name == "keys":
            return replace(owner, is_key=False)
        if name in ("get", "setdefault"):
            return owner.below()
        if name in ADDERS:
            is_record = bool(arguments) and (arguments[-1] == FRESH or (isinstance(arguments[-1], Part) and arguments[-1].is_holder))
            self.touch(owner, Phase.CREATE if owner.depth == 0 or is_record else Phase.UPDATE)
        elif name in REMOVERS:
            item = arguments[0] if arguments else None
            is_record = isinstance(item, Part) and item.key == owner.key and item.depth > owner.depth
            self.touch(owner, Phase.DELETE if owner.depth == 0 or is_record else Phase.UPDATE)
            return owner.below()
        elif name in ("update", "sort", "reverse"):
            self.touch(owner, Phase.UPDATE)
        return None

    def followed(self, method: "MethodReading") -> Value:
        """A call of another method of the class: its effects are ours, its answer stands for what it returns."""
        self.effects |= method.effects
        self.reads |= method.reads
        return next((part for part in sorted(method.returned, key=lambda p: (p.key, p.depth)) if not part.is_key), None)

    def comprehension(self, node: ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp) -> Value:
        source: Value = None
        for loop in node.generators:
            self.bind(loop.target, loop.iter)
            found = self.value(loop.iter)
            source = source if isinstance(source, Part) else found
            self.loops |= isinstance(found, Part)
            for test in loop.ifs:
                self.value(test)
        is_filtered = any(loop.ifs for loop in node.generators)
        elements = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        found = [self.value(element) for element in elements][-1]
        if isinstance(found, Part):
            return replace(found, depth=max(found.depth - 1, 0), is_copy=True, is_filtered=is_filtered, is_key=False, is_holder=False)
        return replace(source, is_copy=True) if isinstance(source, Part) and isinstance(node, ast.ListComp | ast.GeneratorExp) else FRESH

    # -- what is returned

    def answer(self, value: ast.expr) -> None:
        found = self.value(value)
        if isinstance(found, Part):
            self.returned.add(found)
        if not isinstance(value, ast.Dict):
            self.answers += [nature] if (nature := self.nature(value)) else []
            return
        self.shown |= self.fields_in(value) - OUTCOME_FIELDS - {RESULT_FIELD}
        for key, item in zip(value.keys, value.values, strict=True):
            name = key.value if isinstance(key, ast.Constant) else None
            if name in OUTCOME_FIELDS:
                continue
            if isinstance(part := self.value(item), Part):
                self.returned.add(part)
            self.answers.append(self.nature(item) or Phase.LOOK_UP)

    def fields_in(self, value: ast.expr) -> set[str]:
        """Fields of the dicts made in an expression, and of those that its names hold."""
        fields: set[str] = set()
        for node in ast.walk(value):
            if isinstance(node, ast.Dict):
                fields |= {key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
            elif isinstance(node, ast.Name):
                fields |= self.fields_of.get(node.id, set())
        return fields

    def nature(self, node: ast.expr) -> Phase | None:
        """Whether an expression is a truth value, a measure over items, or neither."""
        match node:
            case ast.Name(id=name):
                return self.natures.get(name)
            case ast.Constant(value=bool()) | ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return Phase.VALIDATE
            case ast.BoolOp(values=values):
                natures = {self.nature(value) for value in values}
                return Phase.VALIDATE if Phase.VALIDATE in natures else None
            case ast.Call(func=ast.Name(id="max" | "min"), keywords=[ast.keyword(arg="key"), *_]):
                return None  # the record that is greatest, not a number
            case (
                ast.Subscript(slice=ast.Constant(value=str(name)))
                | ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str(name)), *_])
            ) if name in self.book.truths:
                return Phase.VALIDATE
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                return Phase.VALIDATE if name in TRUTHS else Phase.AGGREGATE if name in MEASURES else None
            case ast.BinOp(left=left, right=right):
                return Phase.AGGREGATE if Phase.AGGREGATE in (self.nature(left), self.nature(right)) else None
            case ast.IfExp(body=body, orelse=other):
                return self.nature(body) or self.nature(other)
            case ast.Dict(values=values):
                natures = [self.nature(value) for value in values]
                return next((kind for kind in (Phase.AGGREGATE, Phase.VALIDATE) if kind in natures), None)
        return None

    def reading_kind(self) -> Phase:
        if not self.answers and not self.returned:
            return Phase.VALIDATE  # it says no more than whether the call went well
        return next((kind for kind in (Phase.AGGREGATE, Phase.VALIDATE) if kind in self.answers), Phase.LOOK_UP)


def _reassignment(found: Value, value: ast.expr) -> Phase:
    """``self.x = value``: a filtered copy deletes, anything else updates."""
    is_filtered = isinstance(found, Part) and found.is_filtered
    is_emptied = isinstance(value, ast.List | ast.Dict) and not ast.unparse(value).strip("[]{}")
    return Phase.DELETE if is_filtered or is_emptied else Phase.UPDATE


def _lookups(value: ast.expr, method: MethodReading) -> set[tuple[str, str]]:
    """(collection, key expression) pairs that ``name = self.x.get(key)`` or ``self.x[key]`` looks up."""
    match value:
        case ast.Call(func=ast.Attribute(value=owner, attr="get"), args=[key, *_]) | ast.Subscript(value=owner, slice=key):
            part = method.value(owner)
            return {(part.key, ast.unparse(key))} if isinstance(part, Part) and part.depth == 0 else set()
    return set()
