"""Proven cases of guessed identifiers, kept as evidence, and the mask that follows from them. Letters: N tasks."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from envsched.config import FilterConfig
from envsched.filters.mask import Mask
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


def mask_guessed(cases: Iterable[GuessCase], step: int, pool: Pool, config: FilterConfig) -> Mask:
    """Tasks to keep out of the exploitation lane at ``step``.

    ``guess_cases`` proven cases before ``step`` shut a task out for ``guess_rest`` steps after the last of them. Then it is
    on probation: one more case shuts it out again, for twice as long, and so on, at most ``longest_rest``.
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
        until = max(when) + min(config.guess_rest * 2**relapses, config.longest_rest)
        if step < until:
            reasons[row] = f"identifiers: {len(when)} rewards from guessed identifiers, the last at step {max(when)}; until step {until}"
    return Mask.of(reasons, len(pool))


def _relapses(when: list[int], config: FilterConfig) -> int | None:
    """Times that a case came after a rest; None while there are too few cases."""
    if len(when) < config.guess_cases:
        return None
    later = when[config.guess_cases - 1 :]
    return sum(second - first >= config.guess_rest for first, second in pairwise(later))
