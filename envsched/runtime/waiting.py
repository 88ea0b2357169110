"""Many answers on their way: whichever comes first is taken first, and nobody waits beyond its time."""

import select
import time
from collections.abc import Iterator

from envsched.runtime.process import EpisodeProcess


class Waiting:
    """Processes that were asked something, each known by a number."""

    def __init__(self) -> None:
        self._events = select.epoll()
        self._waiting: dict[int, tuple[int, float]] = {}  # descriptor -> number, deadline
        self._earliest = float("inf")  # no deadline lies before

    def add(self, number: int, process: EpisodeProcess) -> None:
        """``process`` was asked."""
        descriptor = process.fileno()
        assert descriptor not in self._waiting, "two questions to one episode can't be in flight"
        self._waiting[descriptor] = number, process.deadline
        self._earliest = min(self._earliest, process.deadline)
        self._events.register(descriptor, select.EPOLLIN | select.EPOLLONESHOT)

    def ready(self) -> Iterator[int]:
        """Numbers of processes with an answer, or whose time is up, until all had their turn."""
        with self._events:
            while self._waiting:
                for descriptor in self._next():
                    number, _ = self._waiting.pop(descriptor)
                    yield number

    def _next(self) -> list[int]:
        found = self._events.poll(max(0.0, self._earliest - time.monotonic()), len(self._waiting))
        if found:
            return [descriptor for descriptor, _ in found]
        now = time.monotonic()
        self._earliest = min(deadline for _, deadline in self._waiting.values())
        return [descriptor for descriptor, (_, deadline) in self._waiting.items() if deadline <= now]
