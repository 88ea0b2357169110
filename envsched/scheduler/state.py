"""The saved state of a scheduler: its history and seed, by task key, with the keys of the pool that it belongs to."""

from collections.abc import Mapping
from typing import Any

from envsched.config import SchedulerConfig
from envsched.errors import ConfigError, StateError
from envsched.history import History
from envsched.pool import Pool

_FORMAT = "envsched state 1"
_FIELDS = ("format", "seed", "pool", "history")
MAX_SEED = 2**64 - 1  # a word of the generator's key
_NAMED = 5  # keys spelled out in a message


def make_state(seed: int, history: History) -> dict[str, Any]:
    """JSON-able; grows with the history and the pool's keys, and holds no position."""
    pool = history.pool
    return {
        "format": _FORMAT,
        "seed": seed,
        "pool": {"fingerprint": pool.fingerprint, "tasks": [task.key for task in pool.tasks]},
        "history": history.to_list(),
    }


def read_state(state: Mapping[str, Any], pool: Pool, config: SchedulerConfig) -> tuple[int, History]:
    """Seed and history of what ``make_state`` gave.

    Raises:
        StateError: no such state, a record that does not fit, or a state of another pool; names the keys that differ.
    """
    _refuse_other_format(state)
    changes = pool_changes(state, pool)
    if changes:
        raise StateError(
            f"this state belongs to another pool: {'; '.join(changes)}. Give the pool it was made with, or keep what "
            "stayed with envsched.scheduler.carry_over(state, pool)"
        )
    return whole(state["seed"], "seed", MAX_SEED), History.from_list(pool, state["history"], config)


def carry_over(state: Mapping[str, Any], pool: Pool) -> tuple[dict[str, Any], list[str]]:
    """The same state for a changed pool: records of tasks that stayed are kept, by key, and those of removed tasks dropped.

    Returns:
        A state that ``load_state_dict`` takes with ``pool``, and in words what changed.

    Raises:
        StateError: no such state.
    """
    _refuse_other_format(state)
    changes = pool_changes(state, pool)
    kept = [entry for entry in state["history"] if entry["task"] in pool]
    dropped = len(state["history"]) - len(kept)
    if dropped:
        changes.append(f"{dropped} records of removed tasks dropped, {len(kept)} kept")
    tasks = [task.key for task in pool.tasks]
    return {**state, "pool": {"fingerprint": pool.fingerprint, "tasks": tasks}, "history": kept}, changes


def pool_changes(state: Mapping[str, Any], pool: Pool) -> list[str]:
    """How ``pool`` differs from the state's, in words; empty when it does not."""
    if state["pool"]["fingerprint"] == pool.fingerprint:
        return []
    before, now = set(state["pool"]["tasks"]), {task.key for task in pool.tasks}
    changes = []
    if before - now:
        changes.append(f"{len(before - now)} of its {len(before)} tasks are missing here: {_some(before - now)}")
    if now - before:
        changes.append(f"{len(now - before)} tasks were added: {_some(now - before)}")
    if not changes:
        changes.append(
            f"the keys are the same, but a text, tool, state or check changed "
            f"(fingerprint {state['pool']['fingerprint'][:12]} before, {pool.fingerprint[:12]} now)"
        )
    return changes


def whole(value: Any, name: str, largest: int) -> int:
    """A whole number from 0 to ``largest``.

    Raises:
        ConfigError: anything else; names it.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__") or not 0 <= int(value) <= largest:
        raise ConfigError(f"{name} must be a whole number from 0 to {largest}, came {value!r}")
    return int(value)


def _refuse_other_format(state: Mapping[str, Any]) -> None:
    if not isinstance(state, Mapping):
        raise StateError(f"not a scheduler state: came {type(state).__name__}; give what state_dict() returned")
    absent = [name for name in _FIELDS if name not in state]
    if absent or state["format"] != _FORMAT:
        came = f"field {absent[0]!r} is absent" if absent else f"came format {state['format']!r}"
        raise StateError(f"not a scheduler state of {_FORMAT!r}: {came}; give what state_dict() returned")
    pool, history = state["pool"], state["history"]
    fits = {
        "seed": _is_seed(state["seed"]),
        "pool": isinstance(pool, Mapping) and isinstance(pool.get("fingerprint"), str) and _is_list_of(str, pool.get("tasks")),
        "history": _is_list_of(Mapping, history) and all("task" in entry for entry in history),
    }
    for name, good in fits.items():
        if not good:
            raise StateError(
                f"not a scheduler state: field {name!r} was altered, came {str(state[name])[:80]}; give what state_dict() returned"
            )


def _is_seed(value: Any) -> bool:
    try:
        return whole(value, "seed", MAX_SEED) == value
    except ConfigError:
        return False


def _is_list_of(kind: type, value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)


def _some(keys: set[str]) -> str:
    named = ", ".join(repr(key) for key in sorted(keys)[:_NAMED])
    return named if len(keys) <= _NAMED else f"{named} and {len(keys) - _NAMED} more"
