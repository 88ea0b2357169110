"""What rank 0 does around a step: ask the scheduler, keep the batch, keep the records, let the scheduler observe.

The order matters for a run that dies: a batch is on disk before its rollouts start, records are on disk before the scheduler has
seen them, and a checkpoint is sealed only after both. Letters: B tasks, G rollouts per task.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from envsched.audit import write_batch, write_input_audit
from envsched.config import SchedulerConfig
from envsched.errors import SelectionError
from envsched.files import canonical_json, write_atomically
from envsched.history.record import record_to_mapping
from envsched.train.checkpoints import PREFIX, drop_old_checkpoints, seal_checkpoint
from envsched.train.ordering import LengthForecast
from envsched.train.reporting import report_of
from envsched.train.run_directory import RunDirectory
from envsched.types import Batch, RolloutRecord, Scheduler


class Rounds:
    """The scheduler of a run and its books.

    Args:
        scheduler: any object with the five verbs.
        run: where batches and records go; none keeps nothing on disk but checkpoints.
        forecast: decides in which order a batch is rolled out; none: as the scheduler gave it.
        keep_checkpoints: newest checkpoints that stay.
        config: the rewards' range and how a variance is counted.
        floors: reward of doing nothing by task key, where it is known: the identifier guard looks at what lies above.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        run: RunDirectory | None = None,
        forecast: LengthForecast | None = None,
        keep_checkpoints: int = 2,
        config: SchedulerConfig = SchedulerConfig(),
        floors: Mapping[str, float] | None = None,
    ) -> None:
        self.scheduler, self.run, self._forecast = scheduler, run, forecast
        self._keep, self.config, self.floors = keep_checkpoints, config, floors or {}
        self._batch: Batch | None = None
        self._select_seconds = 0.0

    def begin(self, step: int, num_tasks: int) -> tuple[str, ...]:
        """Task keys of ``step``, in the order of their rollouts.

        Raises:
            SelectionError: the scheduler gave another number of tasks than the trainer has rollouts for.
        """
        began = time.perf_counter()
        self._batch = self.scheduler.select(step)
        self._select_seconds = time.perf_counter() - began
        if len(self._batch.picks) != num_tasks:
            raise SelectionError(
                f"step {step}: the scheduler chose {len(self._batch.picks)} tasks, the trainer runs {num_tasks}; "
                "give both the same batch_size"
            )
        if self.run is not None:
            write_batch(self.run.folder, self._batch, self.scheduler)
        return self._batch.tasks if self._forecast is None else tuple(self._forecast.order(self._batch.tasks))

    def finish(self, step: int, records: Sequence[RolloutRecord]) -> dict[str, float]:
        """Keep the records of ``step`` in the batch's order, let the scheduler observe them, and give the step's metrics."""
        assert self._batch is not None
        assert self._batch.step == step
        place = {task: i for i, task in enumerate(self._batch.tasks)}
        records = sorted(records, key=lambda record: place[record.task])
        report = report_of(self._batch, records, self.config)  # refuses a reward that is no number before it is kept
        if self.run is not None:
            lines = (canonical_json(record_to_mapping(record)) for record in records)
            write_atomically(self.run.layout.rollouts(step), "".join(f"{line}\n" for line in lines))
        began = time.perf_counter()
        self.scheduler.observe(records)
        if self.run is not None:
            write_input_audit(self.run.folder, step + 1, self.scheduler)  # vouches for the rollouts so far, should this step be the last
        if self._forecast is not None:
            self._forecast.observe(records)
        seconds = self._select_seconds + time.perf_counter() - began
        return {**report.metrics(), **self.scheduler.metrics(), "scheduler/seconds": seconds}

    def save(self, folder: Path | str, step: int, digests: dict[str, Any]) -> None:
        """Seal transformers' checkpoint of ``step`` with the scheduler's state, then drop the oldest."""
        if self.run is not None:
            digests = {**digests, "rollouts": self.run.rollouts_digest(step)}
        seal_checkpoint(Path(folder) / f"{PREFIX}{step}", step, self.scheduler.state_dict(), digests)
        drop_old_checkpoints(Path(folder), self._keep)
