"""Check functions, run as EnvScaler runs them, with what went wrong told per check.

A check is Python source that defines ``check_func(final_state)`` and may read the global ``initial_state``. It passes
only by returning ``True`` itself.
"""

import copy
from types import CodeType
from typing import Any

from .words import describe

RAISED, NOT_BOOLEAN, MISSING, INVALID, MUTATED = "raised", "not_boolean", "no_check_func", "does_not_compile", "mutates_state"


def run_checks(
    codes: list[CodeType | str], chosen: list[int], initial_state: dict[str, Any] | None, live_state: dict[str, Any]
) -> tuple[list[bool], list[list[Any]]]:
    """Run the ``chosen`` checks against copies of ``live_state``.

    Each check sees the state as the episode left it: where one changes it, that is reported and the next gets a fresh copy.

    Returns:
        passed [len(chosen)], and problems as [position, kind, words].
    """
    passed, problems = [], []
    state = copy.deepcopy(live_state)
    comparable = _equal(state, live_state)
    for position in chosen:
        outcome, kind, words = _run(codes[position], initial_state, state)
        passed.append(outcome)
        if kind:
            problems.append([position, kind, words])
        if not comparable:
            state = copy.deepcopy(live_state)
        elif not _equal(state, live_state):
            problems.append([position, MUTATED, "the check changes the state that it judges"])
            state = copy.deepcopy(live_state)
    return passed, problems


def _run(code: CodeType | str, initial_state: dict[str, Any] | None, state: dict[str, Any]) -> tuple[bool, str, str]:
    if isinstance(code, str):
        return False, INVALID, code
    names = {"__builtins__": __builtins__, "initial_state": copy.deepcopy(initial_state)}
    try:
        exec(code, names)
        if "check_func" not in names:
            return False, MISSING, "the source defines no check_func"
        result = names["check_func"](state)
        if not isinstance(result, bool):
            return False, NOT_BOOLEAN, f"returned {type(result).__name__}, not True or False"
        return result, "", ""
    except BaseException as error:  # SystemExit and KeyboardInterrupt too: a check must not end the process
        return False, RAISED, describe(error)


def _equal(left: Any, right: Any) -> bool:
    try:
        return bool(left == right)
    except Exception:
        return False
