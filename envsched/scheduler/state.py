"""The saved state of a scheduler: history, seed, leases and changes of the pool, by task key, with an outline of the pool it belongs to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envsched.config import SchedulerConfig
from envsched.errors import ConfigError, StateError
from envsched.history import History
from envsched.pool import Pool, PoolChange
from envsched.pool.outline import Outline, change_between

_FORMAT = "envsched state 2"
_FIELDS = ("format", "seed", "pool", "history")
MAX_SEED = 2**64 - 1  # a word of the generator's key


@dataclass(frozen=True, slots=True)
class State:
    """What a scheduler goes on from. ``leases``: task keys of batches whose records were still out, by step."""

    seed: int
    history: History
    changes: tuple[PoolChange, ...] = ()
    leases: Mapping[int, Sequence[str]] | None = None


def make_state(state: State) -> dict[str, Any]:
    """JSON-able; grows with the history and the pool's keys, and holds no position."""
    return {
        "format": _FORMAT,
        "seed": state.seed,
        "pool": state.history.pool.outline.to_json(),
        "history": state.history.to_list(),
        "changes": [change.to_json() for change in state.changes],
        "leases": {str(step): list(tasks) for step, tasks in (state.leases or {}).items()},
    }


def read_state(state: Mapping[str, Any], pool: Pool, config: SchedulerConfig) -> State:
    """What ``make_state`` was given.

    Raises:
        StateError: no such state, a record that does not fit, or a state of another pool; names the keys that differ.
    """
    outline = _outline_in(state)
    if outline.fingerprint != pool.fingerprint:
        raise StateError(
            f"this state belongs to another pool: {change_between(outline, pool.outline, 0)} (fingerprint {outline.fingerprint[:12]} "
            f"before, {pool.fingerprint[:12]} now). Give the pool it was made with, or keep what stayed with "
            "envsched.scheduler.carry_over(state, pool, step)"
        )
    history = History.from_list(pool, state["history"], config)
    return State(whole(state["seed"], "seed", MAX_SEED), history, _changes_in(state), _leases_in(state, pool))


def carry_over(state: Mapping[str, Any], pool: Pool, step: int) -> tuple[dict[str, Any], PoolChange]:
    """The same state for a pool that changed: what is known of tasks that stayed is kept, by key.

    Records and leases of tasks that were removed or edited are dropped: under its old key an edited task is a new one, and
    what is known of it is what its neighbours say. A scheduler that goes on from the state equals a fresh one on the new pool
    that observed the records which are left.

    Args:
        state: of ``state_dict``, made with the pool before.
        pool: the pool now.
        step: the first step to be chosen from it.

    Returns:
        A state that ``load_state_dict`` takes with ``pool``, and the change, which the state keeps and the manifest of
        ``step`` shows.

    Raises:
        StateError: no such state, or one of a step later than ``step``.
    """
    outline, changes = _outline_in(state), _changes_in(state)
    change = change_between(outline, pool.outline, whole(step, "step", 2**53))
    latest = max((entry["step"] for entry in state["history"]), default=-1)
    if latest >= step or any(earlier.step > step for earlier in changes):
        raise StateError(f"the pool can't change at step {step}: the state knows records of step {latest}; give the step to be chosen next")
    if change.is_empty:
        return dict(state), change
    gone = {*change.removed, *change.edited}
    leases = {when: [task for task in tasks if task not in gone] for when, tasks in state.get("leases", {}).items()}
    carried = {
        **state,
        "pool": pool.outline.to_json(),
        "history": [entry for entry in state["history"] if entry["task"] not in gone],
        "changes": [*state.get("changes", []), change.to_json()],
        "leases": {when: tasks for when, tasks in leases.items() if tasks},
    }
    return carried, change


def whole(value: Any, name: str, largest: int) -> int:
    """A whole number from 0 to ``largest``.

    Raises:
        ConfigError: anything else; names it.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__") or not 0 <= int(value) <= largest:
        raise ConfigError(f"{name} must be a whole number from 0 to {largest}, came {value!r}")
    return int(value)


def _outline_in(state: Mapping[str, Any]) -> Outline:
    """The state's pool, once its other fields are what they should be."""
    if not isinstance(state, Mapping):
        raise StateError(f"not a scheduler state: came {type(state).__name__}; give what state_dict() returned")
    absent = [name for name in _FIELDS if name not in state]
    if absent or state["format"] != _FORMAT:
        came = f"field {absent[0]!r} is absent" if absent else f"came format {state['format']!r}"
        raise StateError(f"not a scheduler state of {_FORMAT!r}: {came}; give what state_dict() returned")
    if not _is_seed(state["seed"]):
        raise _altered(state, "seed")
    history = state["history"]
    if not isinstance(history, list) or not all(isinstance(entry, Mapping) and {"task", "step"} <= entry.keys() for entry in history):
        raise _altered(state, "history")
    try:
        return Outline.from_json(state["pool"])
    except ValueError:
        raise _altered(state, "pool") from None


def _changes_in(state: Mapping[str, Any]) -> tuple[PoolChange, ...]:
    try:
        return tuple(map(PoolChange.from_json, state.get("changes", ())))
    except (ValueError, TypeError):
        raise _altered(state, "changes") from None


def _leases_in(state: Mapping[str, Any], pool: Pool) -> dict[int, list[str]]:
    try:
        leases = {int(step): list(tasks) for step, tasks in state.get("leases", {}).items()}
    except (ValueError, TypeError, AttributeError):
        raise _altered(state, "leases") from None
    if not all(task in pool for tasks in leases.values() for task in tasks):
        raise _altered(state, "leases")
    return leases


def _altered(state: Mapping[str, Any], name: str) -> StateError:
    return StateError(f"not a scheduler state: field {name!r} was altered, came {str(state[name])[:80]}; give what state_dict() returned")


def _is_seed(value: Any) -> bool:
    try:
        return whole(value, "seed", MAX_SEED) == value
    except ConfigError:
        return False
