"""Pools from code of one's own: anything that can list its environments and tasks."""

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from envsched.pool.pool import Pool
from envsched.types import Environment, Task


@runtime_checkable
class PoolSource(Protocol):
    """What a pool is made of. Nothing in it needs to be executable here: keys and environments are enough to schedule; prompts,
    tools, states and checks make its features."""

    def environments(self) -> Iterable[Environment]:
        """Unique keys; one without tasks is fine."""
        ...

    def tasks(self) -> Iterable[Task]:
        """Unique keys, each of an environment that ``environments`` lists."""
        ...


def pool_from(source: PoolSource) -> Pool:
    """The pool of a source.

    Raises:
        PoolError: no task, a duplicate key, or a task of an environment that is not listed.
    """
    return Pool(source.environments(), source.tasks())
