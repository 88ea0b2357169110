"""What rank 0 does around a step: ask the scheduler, keep the batch, keep the records, let the scheduler observe.

The order matters for a run that dies: a batch is on disk before its rollouts start, records are on disk before the scheduler has
seen them, and a checkpoint is sealed only after both. Letters: B tasks, G rollouts per task.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import torch

from envsched.audit import write_batch, write_input_audit
from envsched.config import SchedulerConfig
from envsched.errors import SelectionError
from envsched.files import canonical_json, write_atomically, write_json
from envsched.history.record import record_to_mapping
from envsched.train.checkpoints import PREFIX, drop_old_checkpoints, seal_checkpoint
from envsched.train.environment_table import EnvironmentTable
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
        table: what each environment gave; none: no such table.
        keep_checkpoints: newest checkpoints that stay.
        config: the rewards' range and how a variance is counted.
        overlap: observe, and select the next batch, in a thread of their own while the optimizer steps. The batches are the same:
            all that they follow from is known before the optimizer begins.
        saved_after: whether a checkpoint follows after this many steps; then the next batch waits for it, so that the scheduler is
            saved as it was before that batch.
        floors: reward of doing nothing by task key, where it is known: the identifier guard looks at what lies above.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        run: RunDirectory | None = None,
        forecast: LengthForecast | None = None,
        table: EnvironmentTable | None = None,
        keep_checkpoints: int = 2,
        config: SchedulerConfig = SchedulerConfig(),
        overlap: bool = False,
        saved_after: Callable[[int], bool] = lambda num_steps: True,
        floors: Mapping[str, float] | None = None,
    ) -> None:
        self.scheduler, self.run, self._forecast, self.table = scheduler, run, forecast, table
        self._keep, self.config, self._saved_after, self.floors = keep_checkpoints, config, saved_after, floors or {}
        self._thread: Executor = _own_thread() if overlap else _WhenAsked()
        self._batch: Batch | None = None
        self._observed: Future[dict[str, float]] | None = None
        self._ahead: tuple[int, Future[Batch]] | None = None
        self._seconds = 0.0  # of the scheduler's work for the present step
        self._waited = 0.0  # how long training has stood still in the present step

    def begin(self, step: int, num_tasks: int) -> tuple[str, ...]:
        """Task keys of ``step``, in the order of their rollouts.

        Raises:
            SelectionError: the scheduler gave another number of tasks than the trainer has rollouts for.
        """
        began = time.perf_counter()
        if self._ahead is not None and self._ahead[0] == step:
            self._batch = self._ahead[1].result()
        else:
            self._batch = self._select(step)
        self._ahead, chosen = None, time.perf_counter()
        if len(self._batch.picks) != num_tasks:
            raise SelectionError(
                f"step {step}: the scheduler chose {len(self._batch.picks)} tasks, the trainer runs {num_tasks}; "
                "give both the same batch_size"
            )
        if self.run is not None:
            write_batch(self.run.folder, self._batch, self.scheduler)
        tasks = self._batch.tasks if self._forecast is None else tuple(self._forecast.order(self._batch.tasks))
        now = time.perf_counter()
        self._seconds += now - chosen
        self._waited += now - began
        return tasks

    def finish(self, step: int, records: Sequence[RolloutRecord]) -> dict[str, float]:
        """Keep the records of ``step`` in the batch's order, hand them to the scheduler, and give the step's own metrics.

        ``settle`` waits for the scheduler.
        """
        assert self._batch is not None
        assert self._batch.step == step
        place = {task: i for i, task in enumerate(self._batch.tasks)}
        records = sorted(records, key=lambda record: place[record.task])
        report = report_of(self._batch, records, self.config)  # refuses a reward that is no number before it is kept
        if self.run is not None:
            lines = (canonical_json(record_to_mapping(record)) for record in records)
            write_atomically(self.run.layout.rollouts(step), "".join(f"{line}\n" for line in lines))
        self._observed = self._thread.submit(self._observe, step, records)
        if not self._saved_after(step + 1):
            self._ahead = step + 1, self._thread.submit(self._select, step + 1)
        return report.metrics()

    def settle(self) -> dict[str, float]:
        """The scheduler's metrics once it has observed the step.

        ``scheduler/seconds`` is its work for the step: to choose the batch and write it down, to observe the rewards and write what vouches
        for them. ``scheduler/waited`` is how long training stood still for it since the step began.
        """
        assert self._observed is not None
        began = time.perf_counter()
        metrics = self._observed.result()
        waited, self._waited, self._observed = self._waited + time.perf_counter() - began, 0.0, None
        return {**metrics, "scheduler/waited": waited}

    def save(self, folder: Path | str, step: int, digests: dict[str, Any]) -> None:
        """Seal transformers' checkpoint of ``step`` with the scheduler's state, then drop the oldest."""
        assert self._observed is None, "settled before it is saved"
        if self.run is not None:
            digests = {**digests, "rollouts": self.run.rollouts_digest(step)}
        seal_checkpoint(Path(folder) / f"{PREFIX}{step}", step, self.scheduler.state_dict(), digests)
        drop_old_checkpoints(Path(folder), self._keep)

    def keep_validation(self, num_steps: int, metrics: Mapping[str, float], verdicts: Sequence[Mapping[str, Any]]) -> None:
        """Scores and verdicts of the policy after ``num_steps`` steps."""
        if self.run is not None:
            write_json(self.run.validation_file(num_steps), {"steps": num_steps, "scores": dict(metrics), "verdicts": list(verdicts)})

    def close(self) -> None:
        """Let the thread end; a batch chosen ahead is forgotten."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _select(self, step: int) -> Batch:
        began = time.perf_counter()
        batch = self.scheduler.select(step)
        self._seconds += time.perf_counter() - began
        return batch

    def _observe(self, step: int, records: Sequence[RolloutRecord]) -> dict[str, float]:
        began = time.perf_counter()
        self.scheduler.observe(records)
        if self.run is not None:
            write_input_audit(self.run.folder, step + 1, self.scheduler)  # vouches for the rollouts so far, should this step be the last
        if self._forecast is not None:
            self._forecast.observe(records)
        if self.table is not None:
            self.table.observe(records)
            if self.run is not None:
                self.table.write(self.run.environments_file)
        seconds, self._seconds = self._seconds + time.perf_counter() - began, 0.0
        return {**self.scheduler.metrics(), "scheduler/seconds": seconds}


def _own_thread() -> ThreadPoolExecutor:
    """One thread, so that work is done in the order it is given; sums over as many parts as in the main thread, for equal bits."""
    return ThreadPoolExecutor(1, "scheduler", initializer=torch.set_num_threads, initargs=(torch.get_num_threads(),))


class _WhenAsked(Executor):
    """Work is done where its result is asked for, in the order of asking: between two steps, never within the time of another part."""

    def submit(self, work, /, *args, **options):
        return _Asked(partial(work, *args, **options))


class _Asked(Future):
    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__()
        self._work = work

    def result(self, timeout: float | None = None) -> Any:
        if not self.done():
            self.set_result(self._work())
        return super().result(timeout)
