"""Proxies that TRL takes for environments: the tools of an environment as methods, its code in a worker process.

TRL makes one instance per concurrent rollout, calls ``reset(**row)`` before each episode and offers every public method of the
class as a tool; so a proxy has no public method but ``reset`` and the tools.
"""

from collections.abc import Callable, Mapping
from typing import Any

from envsched.errors import PoolError
from envsched.pool import Pool
from envsched.runtime import EnvironmentRuntime, Episode
from envsched.types import Environment

RESERVED = ("reset", "get_reward")


class EnvironmentProxy:
    """One rollout's environment; subclasses made by ``proxies_of`` carry the tools and the runtime."""

    _runtime: EnvironmentRuntime
    _episode: Episode | None = None
    _actions: list[dict[str, Any]]
    _num_refused: int

    def reset(self, *, task: str, seed: int, episode: Episode | None = None, **_row: Any) -> None:
        """Begin an episode of ``task``, or take over one that was started with others; one that can't start fails this rollout alone."""
        if self._episode is not None:
            self._episode.close()
        self._actions, self._num_refused = [], 0
        self._episode = episode or self._runtime.start(task, seed)

    def _call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """What the policy sees after a tool call. Calls that reached the environment are kept, with what they gave."""
        assert self._episode is not None, "TRL resets an environment before it is used"
        reached = len(self._episode.actions)
        observation = self._episode.call(tool, arguments)
        if len(self._episode.actions) > reached:
            self._actions.append({"name": tool, "arguments": dict(arguments), "ok": observation.ok, "observation": observation.text})
        else:
            self._num_refused += 1
        return observation.text


def proxies_of(pool: Pool, runtime: EnvironmentRuntime) -> dict[str, type[EnvironmentProxy]]:
    """A proxy class per environment that has a task, by environment key.

    Raises:
        PoolError: a tool's name can't be offered through TRL.
    """
    return {key: _proxy_class(pool.environment(key), runtime) for key in _keys(pool)}


def schemas_of(pool: Pool) -> dict[str, list[Mapping[str, Any]]]:
    """The pool's own tool schemas by environment key, for the environments that ``proxies_of`` serves."""
    return {key: [dict(tool) for tool in pool.environment(key).tools] for key in _keys(pool)}


def _keys(pool: Pool) -> list[str]:
    return sorted({task.environment for task in pool.tasks})


def _proxy_class(environment: Environment, runtime: EnvironmentRuntime) -> type[EnvironmentProxy]:
    for name in environment.tool_names:
        if name in RESERVED or name.startswith("_"):
            raise PoolError(
                f"environment {environment.key!r} has a tool named {name!r}; TRL keeps {', '.join(RESERVED)} and names with a leading "
                "underscore for itself: rename the tool"
            )
    tools = {name: _tool(name) for name in environment.tool_names}
    return type(f"Proxy_{environment.key}", (EnvironmentProxy,), {"_runtime": runtime, **tools})


def _tool(name: str) -> Callable[..., str]:
    def tool(self: EnvironmentProxy, /, **arguments: Any) -> str:
        return self._call(name, arguments)

    tool.__name__ = tool.__qualname__ = name
    tool.__doc__ = name
    return tool
