"""Recorded actions, run again."""

from collections.abc import Mapping, Sequence
from typing import Any

from envsched.runtime.runtime import EnvironmentRuntime


def replay_actions(
    runtime: EnvironmentRuntime, task: str, actions: Sequence[Mapping[str, Any]], seed: int | None = 0
) -> list[float | None]:
    """The reward before any action, then after each one: [1 + len(actions)], unrounded, None where the verifier failed.

    An action is ``{"name": ..., "arguments": {...}}``. Arguments go to the tool as they were recorded, unchecked, and
    an action that raises is followed by the next.

    Raises:
        UnknownTaskError: the pool has no such task.
    """
    with runtime.start(task, seed) as episode:
        rewards = [episode.score().reward]
        for action in actions:
            episode.call(action["name"], action.get("arguments") or {}, validate=False)
            rewards.append(episode.score().reward)
    return rewards
