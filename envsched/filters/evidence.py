"""Proven cases of guessed identifiers, kept as evidence, and the mask that follows from them. Letters: N tasks."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from envsched.config import SchedulerConfig
from envsched.errors import RecordError
from envsched.filters.mask import Mask
from envsched.history import History
from envsched.pool import Pool


@dataclass(frozen=True, slots=True)
class GuessCase:
    """A rollout whose reward came from identifiers that nobody had shown: ``reward`` with them, ``renamed_reward`` without."""

    task: str
    step: int
    rollout: int
    identifiers: tuple[str, ...]
    reward: float
    renamed_reward: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "GuessCase":
        return cls(**{**content, "identifiers": tuple(content["identifiers"])})


def cases_before(history: History, step: int) -> list[GuessCase]:
    """The cases that records before ``step`` carry under ``extra["guesses"]``, where the trainer keeps what the guard proved.

    Raises:
        RecordError: a record's cases are not what ``GuessCase.to_json`` writes.
    """
    cases = []
    for when in np.unique(history.visits.before(step).step):
        for record in history.records_at(int(when)):
            try:
                cases += [GuessCase.from_json(case) for case in record.extra.get("guesses", ())]
            except (TypeError, KeyError):
                raise RecordError(
                    f"record of task {record.task!r}, step {record.step}: extra.guesses must hold cases as GuessCase.to_json writes them; "
                    "drop the field or restore it"
                ) from None
    return cases


def mask_guessed(cases: Iterable[GuessCase], step: int, pool: Pool, config: SchedulerConfig) -> Mask:
    """Tasks to keep out of the exploitation lane at ``step``.

    ``guess_cases`` proven cases before ``step`` shut a task out for ``guess_rest_steps`` steps after the last of them. Then it is
    on probation: one more case shuts it out again, for twice as long, and so on, at most ``longest_rest_steps``.
    """
    steps: dict[int, list[int]] = defaultdict(list)
    for case in cases:
        if case.step < step:
            steps[pool.row_of(case.task)].append(case.step)
    reasons = {}
    for row, when in steps.items():
        relapses = _relapses(sorted(when), config)
        if relapses is None:
            continue
        until = max(when) + min(config.guess_rest_steps * 2**relapses, config.longest_rest_steps)
        if step < until:
            reasons[row] = f"identifiers: {len(when)} rewards from guessed identifiers, the last at step {max(when)}; until step {until}"
    return Mask.of(reasons, len(pool))


def _relapses(when: list[int], config: SchedulerConfig) -> int | None:
    """Times that a case came after a rest; None while there are too few cases."""
    if len(when) < config.guess_cases:
        return None
    later = when[config.guess_cases - 1 :]
    return sum(second - first >= config.guess_rest_steps for first, second in pairwise(later))
