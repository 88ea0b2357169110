"""Executable environments in worker processes.

Letters: N tasks, W workers.
"""

import itertools
import json
import logging
import os
import select
import socket
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from envsched.config import RuntimeConfig
from envsched.pool import Pool
from envsched.runtime.arguments import ToolBox
from envsched.runtime.channel import Channel
from envsched.runtime.episode import Episode
from envsched.runtime.outcome import CheckReport, Observation, Outcome
from envsched.runtime.workers import Worker
from envsched.types import Status, Task

logger = logging.getLogger(__name__)

SEEDED_START = 1_750_000_000.0  # 2025-06-15 15:06:40 UTC: where the clock of a seeded episode starts
_MAX_REPLY = 16 << 20


class EnvironmentRuntime:
    """W persistent workers that run the pool's environments; a context manager.

    Environment and check code runs only there: the caller's process compiles, imports and unpickles nothing of it.

    Args:
        pool: whose tasks can be started.
        config: limits and protections; the defaults otherwise.
        settings: single fields of the config, laid over it (``num_workers=4``).

    Raises:
        WorkerError: a worker did not start.
    """

    def __init__(self, pool: Pool, config: RuntimeConfig | None = None, **settings: Any) -> None:
        self.pool = pool
        self.config = RuntimeConfig(**((config or RuntimeConfig()).model_dump() | settings))
        self.counts: Counter[Outcome] = Counter()
        self._numbers = itertools.count(1)
        self._toolboxes: dict[str, ToolBox] = {}
        self._workers = [Worker(self.config) for _ in range(self.config.num_workers)]
        reports = [worker.greet() for worker in self._workers]
        self.protections = reports[0]

    def start(self, task: str, seed: int | None = None) -> Episode:
        """A fresh instance of the task's environment.

        Args:
            task: its key.
            seed: clock, ``uuid`` and ``random`` follow from it; without one they start from now and from chance.

        Raises:
            UnknownTaskError: the pool has no such task.
        """
        return self.start_many([task], [seed])[0]

    def start_many(self, tasks: Sequence[str], seeds: Sequence[int | None] | None = None) -> list[Episode]:
        """Episodes for ``tasks``, started side by side; one that fails has the status ``infra_error``."""
        seeds = [None] * len(tasks) if seeds is None else seeds
        episodes = []
        for key, seed in zip(tasks, seeds, strict=True):
            episode = self._new_episode(self.pool.task(key), seed)
            self._launch(episode)
            episodes.append(episode)
        for episode in episodes:
            episode.collect_start()
            if episode.status is not Status.OK:
                logger.warning("task %s did not start: %s", episode.task.key, episode.problem)
        return episodes

    def call_many(self, calls: Sequence[tuple[Episode, str, Mapping[str, Any]]]) -> list[Observation]:
        """Run calls of different episodes side by side, in any order; observations in the order of ``calls``."""
        observations: list[Observation | None] = [None] * len(calls)
        waiting: dict[int, int] = {}
        poll = select.poll()
        for position, (episode, tool, arguments) in enumerate(calls):
            observations[position] = episode.post_call(tool, arguments)
            if observations[position] is not None:
                continue
            if episode.fileno() < 0:
                observations[position] = episode.collect_call()
                continue
            assert episode.fileno() not in waiting, "two calls of one episode can't be in flight"
            waiting[episode.fileno()] = position
            poll.register(episode.fileno(), select.POLLIN)
        while waiting:
            due = min(calls[position][0].deadline for position in waiting.values())
            ready = [descriptor for descriptor, _ in poll.poll(max(0.0, due - time.monotonic()) * 1000)]
            now = time.monotonic()
            late = [] if ready else [descriptor for descriptor, position in waiting.items() if calls[position][0].deadline <= now]
            for descriptor in ready or late:
                position = waiting.pop(descriptor)
                poll.unregister(descriptor)
                observations[position] = calls[position][0].collect_call()
        return observations  # type: ignore[return-value]

    def score_many(self, episodes: Sequence[Episode]) -> list[CheckReport]:
        """Reports of episodes, in their order."""
        return [episode.score() for episode in episodes]

    def close(self) -> None:
        """End every worker, and with them every episode."""
        for worker in self._workers:
            worker.close()
        self._workers = []

    def __enter__(self) -> "EnvironmentRuntime":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _new_episode(self, task: Task, seed: int | None) -> Episode:
        if task.environment not in self._toolboxes:
            self._toolboxes[task.environment] = ToolBox(self.pool.environment(task.environment))
        start = time.time() if seed is None else SEEDED_START
        seed = int.from_bytes(os.urandom(8), "little") if seed is None else seed
        return Episode(self, next(self._numbers), task, self._toolboxes[task.environment], seed, start)

    def _launch(self, episode: Episode) -> None:
        """Give the episode a process; where its worker proves to be gone, one of a new worker."""
        for _ in range(2):
            worker = self._pick_worker(episode.task.key)
            ours, theirs = socket.socketpair()
            with theirs:
                try:
                    worker.start(self._order(episode, worker), theirs)
                except OSError:
                    ours.close()
                    continue
            episode.attach(worker, Channel(ours, _MAX_REPLY), self.config.start_seconds)
            return
        episode.fail(Status.INFRA_ERROR, "no worker takes orders")

    def _pick_worker(self, task: str) -> Worker:
        """The least busy, preferring one that has compiled the task; dead ones are replaced first."""
        for position, worker in enumerate(self._workers):
            if not worker.alive:
                logger.warning("environment worker %d is gone; a new one takes its place", worker.process_id)
                worker.close()
                self._workers[position] = Worker(self.config)
                self._workers[position].greet()
        fewest = min(worker.num_episodes for worker in self._workers)
        return min(self._workers, key=lambda w: (w.num_episodes > fewest + 8, task not in w.known_tasks, w.num_episodes))

    def _order(self, episode: Episode, worker: Worker) -> dict[str, Any]:
        task = episode.task
        order: dict[str, Any] = {"op": "start", "task": task.key, "seed": episode.seed, "start": episode.started_at}
        order["episode"] = episode.number
        if task.key not in worker.known_tasks:
            environment = self.pool.environment(task.environment)
            order["payload"] = {
                "source": environment.source,
                "class_name": environment.class_name,
                "initial_state": json.dumps(task.initial_state),
                "checks": [check.source for check in task.checks],
            }
        return order
