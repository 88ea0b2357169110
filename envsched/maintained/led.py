"""A sharded pool that one rank leads: what it asks of its own part, it has told the others to ask of theirs.

A trainer keeps its scheduler on rank 0. There a ``Leader`` stands in the place of the carriers; every other rank runs ``follow``
until the leader ends it.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from envsched.config import SchedulerConfig
from envsched.features import Features
from envsched.maintained.pool import NO_VISITS, LargePool, Selection
from envsched.maintained.ranks import Part, Ranks
from envsched.maintained.rules import Closed


class Leader:
    """Rank 0 of a shared pool. All ranks construct their side at the same time, and wait for each other.

    Args:
        features, offsets, config, mode, seconds: as for ``shard_pool``.

    Raises:
        RankError, StateError, ConfigError: as ``shard_pool``.
    """

    def __init__(self, features: Features, offsets: np.ndarray, config: SchedulerConfig, mode: str, seconds: float) -> None:
        self._part = Part(features, offsets, config, mode, seconds)
        self.mode, self.carriers = mode, self._part.carriers

    def pool(self, seed: int) -> LargePool:
        """A pool that has seen nothing, on all ranks."""
        _tell(self._part.ranks, verb="start", seed=seed)
        return _LedPool(self._part, seed)

    def close(self) -> None:
        """Let the others end."""
        _tell(self._part.ranks, verb="end")


class _LedPool(LargePool):
    """The leader's part of a pool."""

    def __init__(self, part: Part, seed: int) -> None:
        super().__init__(part.features, part.offsets, part.carriers, part.config, seed, part.ranks)
        self._ranks = part.ranks

    def take(self, step: int, rows: np.ndarray, version: np.ndarray, num_valid: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> None:
        _tell(self._ranks, verb="take", step=step)
        super().take(step, rows, version, num_valid, mean, variance)

    def select(self, step: int, closed: Closed = Closed()) -> Selection:
        rows = {
            name: np.flatnonzero(mask).tolist() for name, mask in (("masked", closed.masked), ("barred", closed.barred)) if mask is not None
        }
        _tell(self._ranks, verb="select", step=step, leased=closed.leased.tolist(), since=closed.since.tolist(), **rows)
        return super().select(step, closed)

    def predict(self, step: int) -> np.ndarray:
        _tell(self._ranks, verb="predict", step=step)
        return super().predict(step)

    def evaluate(self, rows: np.ndarray) -> np.ndarray:
        _tell(self._ranks, verb="evaluate", rows=rows.tolist())
        return super().evaluate(rows)


def follow(part: Part) -> None:
    """Do on this rank what the leader says, until it says that this is the end.

    Raises:
        RankError: a rank is gone.
    """
    pool: LargePool | None = None
    while (said := _hear(part.ranks))["verb"] != "end":
        if said["verb"] == "start":
            pool = LargePool(part.features, part.offsets, part.carriers, part.config, said["seed"], part.ranks)
            continue
        assert pool is not None, "the leader starts a pool before it asks"
        if said["verb"] == "take":
            pool.take(said["step"], *NO_VISITS)
        elif said["verb"] == "select":
            pool.select(said["step"], _closed(said, int(part.offsets[-1])))
        elif said["verb"] == "predict":
            pool.predict(said["step"])
        else:
            pool.evaluate(np.array(said["rows"], dtype=np.int64))


def _closed(said: Mapping[str, Any], num_tasks: int) -> Closed:
    masks: dict[str, np.ndarray] = {}
    for name in said.keys() & {"masked", "barred"}:
        masks[name] = np.zeros(num_tasks, dtype=bool)
        masks[name][said[name]] = True
    return Closed(np.array(said["leased"], dtype=np.int64), np.array(said["since"], dtype=np.int64), **masks)


def _tell(ranks: Ranks, **said: Any) -> None:
    ranks.gather(np.frombuffer(json.dumps(said).encode(), np.uint8))


def _hear(ranks: Ranks) -> dict[str, Any]:
    return json.loads(ranks.gather(np.empty(0, np.uint8)).tobytes())
