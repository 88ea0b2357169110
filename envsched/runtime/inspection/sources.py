"""What an environment's source reads that differs between runs; found with ``ast``, nothing is executed."""

import ast

_CLOCK = {"now", "utcnow", "today", "time", "time_ns", "monotonic", "perf_counter", "localtime", "gmtime", "strftime", "ctime"}
_MODULES = {"datetime", "date", "time", "dt", "_datetime", "_dt", "_time"}


def reads(source: str) -> tuple[str, ...]:
    """Of ``clock``, ``uuid`` and ``chance``, those that the source calls; empty where it does not parse."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    imported = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    kinds = {kind for node in ast.walk(tree) if isinstance(node, ast.Call) for kind in _kinds(node.func, imported)}
    return tuple(sorted(kinds))


def _kinds(function: ast.expr, imported: dict[str, tuple[str | None, str]]) -> set[str]:
    if isinstance(function, ast.Name):
        module, name = imported.get(function.id, (None, function.id))
        owner = module or ""
    elif isinstance(function, ast.Attribute):
        owner = ast.unparse(function.value).rpartition(".")[2]
        owner, name = imported.get(owner, (None, owner))[1], function.attr
    else:
        return set()
    if owner in ("random", "secrets") or name == "urandom":
        return {"chance"}
    if name.startswith("uuid") and name[4:] in ("1", "4"):
        return {"uuid"}
    if owner in _MODULES and name in _CLOCK:
        return {"clock"}
    return set()
