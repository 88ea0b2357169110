"""What a process that chooses one batch is told of the steps before: records, pools that are gone, batches whose records are out."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from envsched.audit import read_manifest
from envsched.errors import ConfigError
from envsched.history import History
from envsched.pool import Pool
from envsched.pool.opening import open_pool
from envsched.scheduler import carry_over
from envsched.scheduler.recorded import RecordedScheduler
from envsched.scheduler.state import State, make_state, read_state
from envsched.types import RolloutRecord


def load_past(
    scheduler: RecordedScheduler, records: Sequence[RolloutRecord], gone: Sequence[str], batches: Sequence[Path], step: int
) -> None:
    """Bring a fresh scheduler to where the records lead.

    Args:
        records: of all steps; one of a step before a pool went is about that pool's task.
        gone: ``POOL@STEP``: a pool of the run, and the step for which the next one was in force first.
        batches: manifests of steps before ``step``; tasks of theirs without a record hold a lease.
        step: that is chosen for.

    Raises:
        RecordError, UnknownTaskError: a record is unusable, or of no task that its pool had.
        ConfigError, PoolError, AuditError, StateError: what was named is not what it should be.
    """
    pools = [*map(_parse, gone)]
    steps = [0, *(step for _, step in pools)]
    if any(second <= first for first, second in pairwise(steps)):
        raise ConfigError(f"--previous-pool: steps must ascend from 1, came {', '.join(map(str, steps[1:]))}")
    every = [*(pool for pool, _ in pools), scheduler.pool]
    state = State(scheduler.seed, History(every[0], scheduler.config))
    for (first, until), following in zip(pairwise(steps), every[1:], strict=True):
        state.history.extend(record for record in records if first <= record.step < until)
        state = read_state(carry_over(make_state(state), following, until)[0], following, scheduler.config)
    scheduler.load_state_dict(make_state(replace(state, leases=_leases(batches, state, scheduler.pool, step))))
    scheduler.observe([record for record in records if record.step >= steps[-1]])


def _parse(text: str) -> tuple[Pool, int]:
    name, _, step = text.rpartition("@")
    if not name or not step.isdigit():
        raise ConfigError(f"--previous-pool {text!r}: expected POOL@STEP, the step for which the next pool was in force first")
    return open_pool(name), int(step)


def _leases(batches: Sequence[Path], state: State, pool: Pool, step: int) -> dict[int, list[str]]:
    """Tasks by step, but for those that are gone, or were others then."""
    chosen = [read_manifest(path).batch for path in batches]
    for path, batch in zip(batches, chosen, strict=True):
        if batch.step >= step:
            raise ConfigError(
                f"--selected {path} is a batch of step {batch.step}, and --step is {step}: only batches of earlier steps keep their tasks "
                "out; leave it out, or give the step that comes next (asked again, a step has the same batch)"
            )
    return {
        batch.step: [task for task in batch.tasks if task in pool and not any(c.outdates(task, batch.step) for c in state.changes)]
        for batch in chosen
    }
