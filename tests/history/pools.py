"""A small pool and records of it."""

from envsched.pool import Pool
from envsched.types import Environment, RolloutRecord, Status, Task


def small_pool() -> Pool:
    """Three environments with 3, 1 and 2 tasks: a0 a1 a2 b0 c0 c1."""
    keys = ("a0", "a1", "a2", "b0", "c0", "c1")
    return Pool([Environment(key=key) for key in "abc"], [Task(key=key, environment=key[0]) for key in keys])


def record(task: str, step: int, *rewards, status: list[str] | None = None, policy_version: int | None = None) -> RolloutRecord:
    status = ["ok"] * len(rewards) if status is None else status
    version = step if policy_version is None else policy_version
    return RolloutRecord(task, step, rewards, tuple(Status(s) for s in status), version)
