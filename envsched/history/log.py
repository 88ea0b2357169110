"""The append-only log of visits. No decay inside: what an old visit is worth is for the reader to say.

Letters: N tasks, V visits (one per task and step), G rollouts of a visit.
"""

import logging
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from envsched.config import SchedulerConfig
from envsched.errors import RecordError, StateError, UnknownTaskError
from envsched.files import canonical_json, digest
from envsched.history.group import GroupStatistics, group_statistics
from envsched.history.record import normal_record, parse_record
from envsched.pool import Pool
from envsched.types import RolloutRecord

logger = logging.getLogger(__name__)

EVIDENCE = ("guesses",)  # proven cases of the identifier guard, see envsched.filters


@dataclass(frozen=True, slots=True)
class Visits:
    """Visits in columns, sorted by step, then row: equal whatever order the records came in."""

    row: np.ndarray  # int64 [V]
    step: np.ndarray  # int64 [V]
    policy_version: np.ndarray  # int64 [V]
    num_valid: np.ndarray  # int64 [V]
    mean: np.ndarray  # float64 [V], NaN without a valid rollout
    variance: np.ndarray  # float64 [V], NaN without evidence (fewer than two valid rollouts)

    def before(self, step: int) -> "Visits":
        """The visits made earlier than ``step``; views, no copy."""
        end = np.searchsorted(self.step, step)
        return Visits(*(getattr(self, column.name)[:end] for column in fields(self)))

    def at(self, step: int) -> "Visits":
        """The visits made at ``step``; views, no copy."""
        start, end = np.searchsorted(self.step, [step, step + 1])
        return Visits(*(getattr(self, column.name)[start:end] for column in fields(self)))

    def __len__(self) -> int:
        return len(self.row)


class History:
    """All records of a run, at most one per task and step.

    Args:
        pool: translates task keys to rows.
        config: reward range and ddof of the group statistics.
    """

    def __init__(self, pool: Pool, config: SchedulerConfig = SchedulerConfig()) -> None:
        self.pool = pool
        self.config = config
        self._records: dict[tuple[int, int], RolloutRecord] = {}  # by (step, row)
        self._steps: dict[int, list[int]] = {}  # step -> rows
        self._digest_of: dict[int, str] = {}  # by step; dropped when the step gets another record
        self._visits = _columns([])
        self._fresh: list[tuple[float, ...]] = []  # visits not yet laid into the columns
        self._said_repeat = False

    def __len__(self) -> int:
        return len(self._records)

    def add(self, record: RolloutRecord) -> bool:
        """Take in one record; False when the very same one is already there.

        Raises:
            RecordError: the record is unusable, or another one for the same task and step is there.
            UnknownTaskError: the pool has no such task.
        """
        return self.extend([record]) == 1

    def extend(self, records: Iterable[RolloutRecord]) -> int:
        """Take in records, in any order, all or (on an error) none of them; gives how many were new.

        Raises:
            RecordError, UnknownTaskError: as ``add``; the history is as it was before.
        """
        fresh: dict[tuple[int, int], tuple[RolloutRecord, GroupStatistics]] = {}
        for given in records:
            record = normal_record(given)
            place = (record.step, self.pool.row_of(record.task))
            group = group_statistics(record, self.config)
            known = self._records.get(place) or (fresh[place][0] if place in fresh else None)
            if known is None:
                fresh[place] = (record, group)
            else:
                self._refuse_other(known, record)
        for place, (record, group) in fresh.items():
            self._take(place, record, group)
        return len(fresh)

    @property
    def visits(self) -> Visits:
        """Every visit, sorted by step, then row."""
        if self._fresh:
            old, new = self._visits, _columns(self._fresh)
            columns = [np.concatenate([getattr(old, column.name), getattr(new, column.name)]) for column in fields(Visits)]
            merged = Visits(*columns)
            order = np.lexsort((merged.row, merged.step))
            self._visits = Visits(*(column[order] for column in columns))
            self._fresh = []
        return self._visits

    def knows(self, step: int, row: int) -> bool:
        """Whether there is a record of the task in ``row`` for ``step``."""
        return (step, row) in self._records

    def records_at(self, step: int) -> list[RolloutRecord]:
        """The records of one step, by row."""
        return [self._records[step, row] for row in sorted(self._steps.get(step, ()))]

    def digest_before(self, step: int) -> str:
        """SHA-256 over all records made earlier than ``step``: task, step, policy version, rewards, status, evidence."""
        return digest("envsched history 1", *(self._digest_at(s) for s in sorted(self._steps) if s < step))

    def to_list(self) -> list[dict[str, Any]]:
        """JSON-able records by step, then row: what ``from_list`` takes; floats survive exactly."""
        return [_entry(self._records[place]) for place in sorted(self._records)]

    @classmethod
    def from_list(cls, pool: Pool, entries: Iterable[Mapping[str, Any]], config: SchedulerConfig = SchedulerConfig()) -> "History":
        """The history that gave ``entries`` by ``to_list``.

        Raises:
            StateError: an entry is no record of this pool.
        """
        history = cls(pool, config)
        try:
            history.extend(parse_record(entry, f"history entry {i}") for i, entry in enumerate(entries))
        except (RecordError, UnknownTaskError) as error:
            raise StateError(f"the saved history does not fit this pool and config: {error}") from error
        return history

    def _refuse_other(self, known: RolloutRecord, record: RolloutRecord) -> None:
        if _entry(known) != _entry(record):
            raise RecordError(
                f"task {record.task!r} already has another record for step {record.step}: "
                f"rewards {list(known.rewards)} (policy version {known.policy_version}) are known, "
                f"came {list(record.rewards)} (policy version {record.policy_version}); a task is visited once per step"
            )
        if not self._said_repeat:
            logger.warning("task %r, step %d: the same record came again; it and further repeats count once", record.task, record.step)
            self._said_repeat = True

    def _take(self, place: tuple[int, int], record: RolloutRecord, group: GroupStatistics) -> None:
        step, row = place
        self._records[place] = replace(
            record, tokens=None, seconds=None, trace=None, extra=_evidence(record)
        )  # traces can be large; files keep them
        self._steps.setdefault(step, []).append(row)
        self._digest_of.pop(step, None)
        mean = math.nan if group.mean is None else group.mean
        variance = math.nan if group.variance is None else group.variance
        self._fresh.append((row, step, record.policy_version, group.num_valid, mean, variance))

    def _digest_at(self, step: int) -> str:
        if step not in self._digest_of:
            entries = [_entry(self._records[step, row]) for row in sorted(self._steps[step])]
            self._digest_of[step] = digest(canonical_json(entries))
        return self._digest_of[step]


def _entry(record: RolloutRecord) -> dict[str, Any]:
    """What makes two records the same, as JSON."""
    return {
        "task": record.task,
        "step": record.step,
        "policy_version": record.policy_version,
        "rewards": list(record.rewards),
        "status": [status.value for status in record.status],
        **_evidence(record),
    }


def _evidence(record: RolloutRecord) -> dict[str, Any]:
    """Of the extra fields, those that later batches depend on."""
    return {name: record.extra[name] for name in EVIDENCE if name in record.extra}


def _columns(visits: list[tuple[float, ...]]) -> Visits:
    columns = list(zip(*visits, strict=True)) or [()] * len(fields(Visits))
    kinds = (np.int64, np.int64, np.int64, np.int64, np.float64, np.float64)
    return Visits(*(np.array(column, dtype=kind) for column, kind in zip(columns, kinds, strict=True)))
