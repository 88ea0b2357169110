"""Resource limits: memory, CPU seconds, file size, processes, descriptors, core dumps."""

import resource
from typing import Any


def limit_worker(settings: dict[str, Any]) -> list[str]:
    """Limits that the worker and every process under it keep; the names of those that are on."""
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, settings["file_mb"] << 20)
    return ["limits"]


def limit_episode(settings: dict[str, Any]) -> None:
    """Limits of one episode's process."""
    _lower(resource.RLIMIT_AS, settings["memory_mb"] << 20)
    _lower(resource.RLIMIT_CPU, settings["cpu_seconds"])
    _lower(resource.RLIMIT_NOFILE, 32)


def _lower(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))
