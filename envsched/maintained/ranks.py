"""A large pool sharded by environment over the ranks of ``torch.distributed``.

Each rank keeps the sums, lists and features of its own environments, and of visited tasks the same small tables as every other
rank. In a step travel: the visits that each rank made, what was predicted of them (and, where the cross relation streams, their
codes), the coverage picks that environments offer, and the tasks above the step's threshold with their features. Every rank then
fills the same batch by the same rules, with ties by row: bit for bit the batch of one process.

Letters: N tasks, M environments, S sources whose evidence changed.
"""

import ctypes
import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from envsched import ops
from envsched.config import SchedulerConfig
from envsched.errors import ConfigError, RankError, StateError
from envsched.features import Features
from envsched.files import canonical_json, digest
from envsched.graph.classes import topology_classes
from envsched.maintained.carriers import RELATIONS, Carriers, Gifts, Sums
from envsched.maintained.lists import EXACT, lists_digest, stream_floor
from envsched.maintained.pool import LargePool
from kernels import native, state


class Ranks:
    """The ranks that share a pool, and which environments each of them keeps.

    Every rank must make one, in the same place of its program: it opens a group of its own over gloo.

    Args:
        offsets: rows of each environment, int64 [M + 1].
        seconds: how long a rank waits for the others before it gives them up.

    Raises:
        RankError: ``torch.distributed`` was not initialised, or a rank is gone.
        ConfigError: there are more ranks than environments.
    """

    def __init__(self, offsets: np.ndarray, seconds: float = 300.0) -> None:
        if not (dist.is_available() and dist.is_initialized()):
            raise RankError("no ranks: call torch.distributed.init_process_group first, or start the program with torchrun")
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        if len(offsets) - 1 < self.size:
            raise ConfigError(f"{self.size} ranks can't share {len(offsets) - 1} environments: start at most one rank for each")
        self._group = dist.new_group(backend="gloo", timeout=datetime.timedelta(seconds=seconds))
        bounds = self._bounds(offsets)
        self.environments = (int(bounds[self.rank]), int(bounds[self.rank + 1]))
        self.rows = (int(offsets[bounds[self.rank]]), int(offsets[bounds[self.rank + 1]]))
        self._failure: Exception | None = None
        self._answer = np.empty(0, np.uint8)
        self.exchange = state.EXCHANGE(self._exchange)

    def gather(self, values: np.ndarray) -> np.ndarray:
        """All ranks' values [n, ...], one after the other in the order of ranks.

        Raises:
            RankError: a rank is gone.
        """
        mine = np.ascontiguousarray(values)
        try:
            flat = torch.from_numpy(np.array(mine).reshape(-1).view(np.uint8))
            sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(self.size)]
            dist.all_gather(sizes, torch.tensor([len(flat)]), group=self._group)
            lengths = [int(size) for size in sizes]
            padded = torch.zeros(max(1, *lengths), dtype=torch.uint8)
            padded[: len(flat)] = flat
            parts = [torch.empty_like(padded) for _ in range(self.size)]
            dist.all_gather(parts, padded, group=self._group)
        except (RuntimeError, ValueError) as error:
            raise RankError(
                f"rank {self.rank} of {self.size} lost another rank ({str(error).splitlines()[0]}); end all ranks, start them again, and "
                "observe the recorded steps once more: the same batches follow"
            ) from error
        joined = np.concatenate([part[:length].numpy() for part, length in zip(parts, lengths, strict=True)])
        return joined.view(mine.dtype).reshape(-1, *mine.shape[1:])

    def agree(self, what: str, name: str) -> None:
        """Compare a digest over the ranks.

        Raises:
            StateError: on every rank, where they differ.
        """
        names = self.gather(np.frombuffer(name.encode(), np.uint8)[None])
        if len({bytes(row) for row in names}) > 1:
            raise StateError(f"the ranks disagree on {what}: give every rank the same features, environments, config and seed")

    def refuse(self, outcome: int) -> None:
        """Say what an outcome below 0 of a native step means.

        Raises:
            RankError: a rank is gone, or two ranks gave a visit of the same task.
        """
        if outcome == state.ROW_TWICE:
            raise RankError("two ranks observed the same task in one step: each gives the visits that it made itself")
        if outcome < 0:
            assert self._failure is not None, f"outcome {outcome}"
            raise self._failure

    def _bounds(self, offsets: np.ndarray) -> np.ndarray:
        """First environments of the ranks, and M: as equal in tasks as whole environments allow, at least one each."""
        goals = offsets[-1] * np.arange(self.size + 1) / self.size
        bounds = np.searchsorted(offsets, goals)
        bounds[0], bounds[-1] = 0, len(offsets) - 1
        for rank in range(1, self.size):
            bounds[rank] = np.clip(bounds[rank], bounds[rank - 1] + 1, len(offsets) - 1 - (self.size - rank))
        return bounds

    def _exchange(self, mine: int, num_bytes: int, everything: Any, total: Any) -> int:
        """What native steps call: all ranks' bytes; an exception can't cross, so it waits for ``refuse``."""
        try:
            self._answer = self.gather(np.frombuffer(ctypes.string_at(mine, num_bytes), np.uint8))
        except RankError as error:
            self._failure = error
            return 1
        everything[0], total[0] = native.address(self._answer), len(self._answer)
        return 0


@dataclass(frozen=True, eq=False)
class ShardLists:
    """Lists of the tasks of one rank, by source: ``sources`` int64 [U] ascending have listeners here."""

    relation: int
    sources: np.ndarray
    reversed: tuple[np.ndarray, np.ndarray, np.ndarray]
    digest: str
    about: Mapping[str, Any]
    by_last_visit: bool = False
    tells_anew: bool = True

    @classmethod
    def of(cls, relation: str, row: np.ndarray, weight: np.ndarray, name: str, about: Mapping[str, Any]) -> "ShardLists":
        """From lists of this rank's tasks: rows int [n, K] of the whole pool (-1: none), weights [n, K]; ``name``: the digest of the
        lists of all tasks."""
        sources = np.unique(row[row >= 0]).astype(np.int64)
        place = np.where(row >= 0, np.searchsorted(sources, row), -1).astype(np.int32)
        short = max(0, len(sources) - len(row))  # a reversed list has as many sources as lists
        place = np.pad(place, ((0, short), (0, 0)), constant_values=-1)
        turned = ops.reverse_lists(place, np.pad(weight.astype(np.float32), ((0, short), (0, 0))))
        return cls(RELATIONS.index(relation), sources, turned, name, about)

    def fresh(self) -> "ShardLists":
        return self

    def carry(self, gifts: Gifts, sums: Sums) -> int:
        if not len(self.sources):
            return 0
        place = np.minimum(np.searchsorted(self.sources, gifts.source), len(self.sources) - 1)
        heard = self.sources[place] == gifts.source
        mass, value = gifts.more_mass[heard], gifts.more_value[heard]
        return native.scatter(sums.values, sums.peak, self.reversed, self.relation, place[heard], mass, value, sums.shrinkage)

    def rescale(self, exponent: int) -> None:
        """Nothing is kept."""


@dataclass(frozen=True, eq=False)
class ShardStream:
    """The cross relation as a stream to the tasks of one rank; the codes of sources come from the ranks that keep them."""

    codes: native.Quantised
    floor: float
    ranks: Ranks
    digest: str
    by_last_visit: bool = True
    tells_anew: bool = False

    @property
    def about(self) -> Mapping[str, Any]:
        return {"carried": "stream", "floor": self.floor}

    def fresh(self) -> "ShardStream":
        return self

    def carry(self, gifts: Gifts, sums: Sums) -> int:
        first, last = self.ranks.rows
        mine = gifts.source[(gifts.source >= first) & (gifts.source < last)]
        codes, scale = self.codes.codes_of(mine - first)
        source, codes, scale = self.ranks.gather(mine), self.ranks.gather(codes), self.ranks.gather(scale)
        order = np.argsort(source)
        at = order[np.searchsorted(source, gifts.source, sorter=order)]
        native.stream(
            self.codes, codes[at], scale[at], gifts.more_mass, gifts.more_value, gifts.start - first, gifts.stop - first, self.floor,
            sums.values, sums.peak, ops.num_threads(), sums.shrinkage,
        )  # fmt: skip
        return len(gifts.source) * len(sums.values)

    def rescale(self, exponent: int) -> None:
        """Nothing is kept."""


class Part:
    """This rank's part of a shared pool: its rows of the features, and how evidence reaches them.

    Every rank must make one, in the same place of its program.

    Args:
        features, offsets, config, mode, seconds: as for ``shard_pool``.

    Raises:
        RankError, StateError, ConfigError: as ``shard_pool``.
    """

    def __init__(self, features: Features, offsets: np.ndarray, config: SchedulerConfig, mode: str, seconds: float = 300.0) -> None:
        refuse_unshared(mode, config.class_prior)
        ops.require_native("a sharded pool")
        self.config, self.offsets = config, np.ascontiguousarray(offsets, dtype=np.int64)
        self.ranks = Ranks(self.offsets, seconds)
        settings = canonical_json(config.model_dump(mode="json"))
        self.ranks.agree("the pool", digest(features.digest, self.offsets.tobytes(), settings, mode))
        first, last = self.ranks.rows
        self.features = Features(np.array(features.within[first:last]), np.array(features.cross[first:last]))
        self.carriers = _carriers(features, self.features, self.offsets, config, mode, self.ranks)


def refuse_unshared(mode: str, class_prior: bool) -> None:
    """Say which pools ranks can't share.

    Raises:
        ConfigError: of another mode, or with the class prior.
    """
    if mode not in ("static", "kernel"):
        raise ConfigError(
            f"a pool is sharded in mode static or kernel; came {mode!r}, whose lists change with every observation of any rank: choose "
            "one of the two, or leave the pool in one process"
        )
    if class_prior:
        raise ConfigError(
            "a pool is not sharded with class_prior: classes reach over all ranks. Switch it off, or leave the pool in one process"
        )


def shard_pool(
    features: Features, offsets: np.ndarray, config: SchedulerConfig, seed: int = 0, mode: str = "auto", seconds: float = 300.0
) -> LargePool:
    """This rank's part of a large pool; ``observe`` takes the visits that this rank made, ``select`` gives all ranks one batch.

    Every rank opens the same features, as a file on a shared disk say, and keeps a copy of its own rows.

    Args:
        features: N rows.
        offsets: rows of each environment, int64 [M + 1].
        config: as for any scheduler.
        seed: of the run.
        mode: ``static`` or ``kernel``; ``auto`` as for any pool of this size, and never a mode that can't be sharded.
        seconds: how long a rank waits for the others.

    Raises:
        RankError: there are no ranks, or one is gone; ``observe`` and ``select`` raise it too.
        StateError: the ranks were given different inputs.
        ConfigError: another mode, the class prior, or more ranks than environments.
    """
    mode = ("kernel" if ops.has_int8() else "static") if mode == "auto" else mode
    part = Part(features, offsets, config, mode, seconds)
    part.ranks.agree("the seed", str(seed))
    return LargePool(part.features, part.offsets, part.carriers, config, seed, part.ranks)


def _carriers(features: Features, kept: Features, offsets: np.ndarray, config: SchedulerConfig, mode: str, ranks: Ranks) -> Carriers:
    """Those of one process, digests and headers included, with the lists of this rank's tasks."""
    (first, last), (start, stop) = ranks.rows, ranks.environments
    num_cross = config.settled(sums=True).num_cross if mode == "static" else 0
    name = lists_digest(features, offsets, config.num_within, num_cross)
    row, weight = ops.within_lists(kept.within, offsets[start : stop + 1] - first, config.num_within)
    within = ShardLists.of("within", np.where(row >= 0, row + first, -1), weight, name, EXACT)
    if mode == "kernel":
        floor, name = stream_floor(features, offsets)
        return {"within": within, "cross": ShardStream(native.Quantised(kept.cross, ops.num_threads()), floor, ranks, name)}
    row, weight = ops.cross_lists(features.cross, offsets, num_cross, np.arange(first, last))
    about = {**EXACT, "classes": len(topology_classes(features.cross))} if num_cross else {"carried": "lists"}
    return {"within": within, "cross": ShardLists.of("cross", row, weight, name, about)}
