"""Executable environments in worker processes.

Letters: N tasks, W workers.
"""

import logging
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from envsched.config import RuntimeConfig
from envsched.pool import Pool
from envsched.runtime.arguments import ToolBox
from envsched.runtime.episode import Episode
from envsched.runtime.launcher import Launcher
from envsched.runtime.outcome import CheckReport, Observation, Outcome
from envsched.runtime.process import ProcessLost
from envsched.runtime.waiting import Waiting
from envsched.types import Status, Task

logger = logging.getLogger(__name__)

SEEDED_START = 1_750_000_000.0  # 2025-06-15 15:06:40 UTC: where the clock of a seeded episode starts


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
        self._toolboxes: dict[str, ToolBox] = {}
        self._launcher = Launcher(pool, self.config)
        self.protections = self._launcher.protections
        logger.log(
            logging.WARNING if self.protections.missing or not self.protections.standing else logging.INFO,
            "environments run behind: %s",
            self.protections,
        )

    def start(self, task: str, seed: int | None = None) -> Episode:
        """A fresh instance of the task's environment.

        Args:
            task: its key.
            seed: clock, ``uuid`` and ``random`` follow from it; without one they start from now and from chance.

        Raises:
            UnknownTaskError: the pool has no such task.
        """
        return self.start_many([task], [seed])[0]

    def start_variant(self, task: Task, seed: int | None = None) -> Episode:
        """An instance of a task of the pool, or of one that it does not have in one of its environments; no worker keeps the latter."""
        assert task.key not in self.pool or task is self.pool.task(task.key), "a variant needs a key of its own"
        return self._start([task], [seed])[0]

    def start_many(self, tasks: Sequence[str], seeds: Sequence[int | None] | None = None) -> list[Episode]:
        """Episodes for ``tasks``, started side by side; one that fails has the status ``infra_error``."""
        return self._start([self.pool.task(key) for key in tasks], [None] * len(tasks) if seeds is None else seeds)

    def _start(self, tasks: Sequence[Task], seeds: Sequence[int | None]) -> list[Episode]:
        episodes = [self._new_episode(task, seed) for task, seed in zip(tasks, seeds, strict=True)]
        for episode in episodes:
            try:
                episode.post_start()
            except ProcessLost as lost:
                episode.refuse(str(lost))
        waiting = self._waiting_for(episodes)
        for position in waiting.ready():
            episodes[position].collect_start()
        for episode in episodes:
            if episode.status is not Status.OK:
                logger.warning("task %s did not start: %s", episode.task.key, episode.problem)
        return episodes

    def call_many(self, calls: Sequence[tuple[Episode, str, Mapping[str, Any]]]) -> list[Observation]:
        """Run calls of different episodes side by side, in any order; observations in the order of ``calls``."""
        observations = [episode.post_call(tool, arguments) for episode, tool, arguments in calls]
        asked = [episode if observation is None else None for (episode, *_), observation in zip(calls, observations, strict=True)]
        for position in self._waiting_for(asked).ready():
            observations[position] = calls[position][0].collect_call()
        return observations  # type: ignore[return-value]

    def score_many(self, episodes: Sequence[Episode]) -> list[CheckReport]:
        """Reports of different episodes side by side, in their order."""
        reports = [episode.post_score() for episode in episodes]
        asked = [episode if report is None else None for episode, report in zip(episodes, reports, strict=True)]
        for position in self._waiting_for(asked).ready():
            reports[position] = episodes[position].collect_score()
        return reports  # type: ignore[return-value]

    def close(self) -> None:
        """End every worker, and with them every episode."""
        self._launcher.close()

    def __enter__(self) -> "EnvironmentRuntime":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @staticmethod
    def _waiting_for(episodes: Sequence[Episode | None]) -> Waiting:
        """The processes of ``episodes`` by position; none: nobody was asked there."""
        waiting = Waiting()
        for position, episode in enumerate(episodes):
            if episode is not None and episode.process is not None:
                waiting.add(position, episode.process)
        return waiting

    def _new_episode(self, task: Task, seed: int | None) -> Episode:
        if task.environment not in self._toolboxes:
            self._toolboxes[task.environment] = ToolBox(self.pool.environment(task.environment))
        start = time.time() if seed is None else SEEDED_START
        seed = int.from_bytes(os.urandom(8), "little") if seed is None else seed
        return Episode(self._launcher, task, self._toolboxes[task.environment], self.counts, seed, start)
