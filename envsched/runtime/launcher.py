"""Where episodes' processes come from: persistent workers, chosen, watched and replaced. Letters: W workers."""

import itertools
import json
import logging
import socket
import weakref
from typing import Any

from envsched.config import RuntimeConfig
from envsched.errors import WorkerError
from envsched.pool import Pool
from envsched.runtime.channel import Channel
from envsched.runtime.process import EpisodeProcess, ProcessLost
from envsched.runtime.workers import Protections, Worker, WorkerGone
from envsched.types import Task

logger = logging.getLogger(__name__)

START_ATTEMPTS = 5


class Launcher:
    """W workers and the episodes' processes under them.

    Args:
        pool: whose environments can be started.
        config: limits and protections.

    Raises:
        WorkerError: a worker did not start, or fewer walls stand than the config requires.
    """

    def __init__(self, pool: Pool, config: RuntimeConfig) -> None:
        self.pool = pool
        self.config = config
        self._reply_limit = None if config.sandbox == "off" else config.reply_mb << 20
        self._numbers = itertools.count(1)
        self._processes: weakref.WeakSet[EpisodeProcess] = weakref.WeakSet()
        self.workers = [Worker(config) for _ in range(config.num_workers)]
        self.protections = [self._greet(worker) for worker in self.workers][-1]

    def launch(self, task: Task, seed: int, start: float) -> EpisodeProcess:
        """A process for an episode, on its way; of a new worker where the one chosen proves to be gone.

        Args:
            task: of the pool, or one of its own in one of the pool's environments.
            seed: of clock, ``uuid`` and ``random``.
            start: where its clock starts, seconds since the epoch.

        Raises:
            ProcessLost: no worker takes the order.
        """
        for _ in range(self.config.num_workers + 1):
            worker = self._pick_worker(task.key)
            number = next(self._numbers)
            ours, theirs = socket.socketpair()
            order = {"op": "start", "task": task.key, "seed": seed, "start": start, "episode": number, "keep": task.key in self.pool}
            if task.key not in worker.known_tasks:
                order["payload"] = self._payload(task)
            try:
                with theirs:
                    worker.start(order, theirs)
            except WorkerGone:
                ours.close()
                continue
            process = EpisodeProcess(worker, Channel(ours, self._reply_limit), number, self.config.start_seconds)
            self._processes.add(process)
            return process
        raise ProcessLost("no worker takes orders")

    def close(self) -> None:
        """End every worker, and with them every episode."""
        for process in list(self._processes):
            process.close()
        for worker in self.workers:
            worker.close()
        self.workers = []

    def _payload(self, task: Task) -> dict[str, Any]:
        """What a worker compiles of a task."""
        environment = self.pool.environment(task.environment)
        return {
            "environment": environment.key,
            "source": environment.source,
            "class_name": environment.class_name,
            "initial_state": json.dumps(task.initial_state),
            "checks": [check.source for check in task.checks],
        }

    def _pick_worker(self, task: str) -> Worker:
        """The least busy, preferring one that has compiled the task; dead ones are replaced first."""
        for position, worker in enumerate(self.workers):
            if not worker.alive:
                logger.warning("environment worker %d is gone; a new one takes its place", worker.process_id)
                worker.close()
                self.workers[position] = self._replacement()
        fewest = min(worker.num_episodes for worker in self.workers)
        return min(self.workers, key=lambda w: (w.num_episodes > fewest + 8, task not in w.known_tasks, w.num_episodes))

    def _replacement(self) -> Worker:
        """A new worker; one that dies while it comes up gets a successor, up to a limit."""
        failure: WorkerError | None = None
        for _ in range(START_ATTEMPTS):
            worker = Worker(self.config)
            try:
                protections = self._greet(worker)
            except WorkerError as error:
                failure = error
                continue
            if protections != self.protections:
                logger.warning("the new worker runs behind other walls: %s", protections)
            return worker
        assert failure is not None
        raise failure

    def _greet(self, worker: Worker) -> Protections:
        protections = worker.greet()
        if self.config.sandbox == "require" and protections.missing:
            self.close()
            raise WorkerError(
                f"sandbox: require, but this machine allows only: {protections}. Run as root or allow user namespaces, "
                "on Linux 5.13 or newer; or accept fewer walls with sandbox: on"
            )
        return protections
