"""Five verbs over a history: everything about a scheduler except how it chooses.

Letters: N tasks, B batch.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from envsched.config import SchedulerConfig
from envsched.files import canonical_json, digest
from envsched.history import History
from envsched.history.record import MAX_STEP
from envsched.pool import Pool, PoolChange
from envsched.pool.outline import digest_of_changes
from envsched.scheduler.figures import batch_figures, step_figures
from envsched.scheduler.state import MAX_SEED, State, make_state, read_state, whole
from envsched.select import refuse_small_pool
from envsched.types import Batch, RolloutRecord

logger = logging.getLogger(__name__)


class RecordedScheduler(ABC):
    """A scheduler whose state is its history and its seed; a subclass says how it chooses.

    ``_choose(step)`` must be a pure function of (pool, config, seed, history before step): then a resume and one process
    per step give what one long process gives, and an audit can derive every batch again.

    Args:
        pool: N tasks.
        config: batch size, reward range and what the subclass reads.
        seed: of the run, 0 <= seed < 2**64.
        name: under which manifests and registries know it.

    Raises:
        SelectionError: N < B.
        ConfigError: the seed is no whole number in its range.
    """

    def __init__(self, pool: Pool, config: SchedulerConfig, seed: int, name: str) -> None:
        refuse_small_pool(len(pool), config.batch_size)
        self.pool = pool
        self.config = config
        self.seed = whole(seed, "seed", MAX_SEED)
        self.name = name
        self.history = History(pool, config)
        self.changes: tuple[PoolChange, ...] = ()  # of the pool, so far in this run
        self._figures: dict[str, float] = {}

    @abstractmethod
    def _choose(self, step: int) -> Batch:
        """Choose B different tasks from the history before ``step``."""

    def select(self, step: int) -> Batch:
        """Choose the tasks of ``step`` from what was observed before it; asked twice, it answers the same.

        Raises:
            ConfigError: the step is no whole number from 0.
        """
        start = perf_counter()
        batch = self._choose(whole(step, "step", MAX_STEP))
        assert len(set(batch.tasks)) == self.config.batch_size == len(batch.picks)
        self._figures |= batch_figures(batch) | {"seconds/select": perf_counter() - start}
        return batch

    def observe(self, records: Sequence[RolloutRecord]) -> None:
        """Take in rollouts, all or (on an error) none; the same record twice counts once, the order does not matter.

        A record from before the pool changed, of a task that was removed or edited then, is left out and logged.

        Raises:
            RecordError, UnknownTaskError: a record is unusable; what was known before stays as it was.
        """
        start = perf_counter()
        self.history.extend(self._current(records))
        self._figures["seconds/observe"] = perf_counter() - start

    def state_dict(self) -> dict[str, Any]:
        """History, seed, leases and changes of the pool, JSON-able, by task key."""
        return make_state(self._saved_state())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state that ``state_dict`` gave; its seed becomes ours.

        Raises:
            StateError: the state belongs to another pool (``carry_over`` keeps what stayed) or is no state.
        """
        self._go_on_from(read_state(state, self.pool, self.config))
        self._figures = {}

    def metrics(self) -> dict[str, float]:
        """Figures of the last observed step and the last batch; ``METRICS`` says what each key means."""
        visits = self.history.visits
        last = visits.at(int(visits.step[-1])) if len(visits) else visits
        return self._figures | step_figures(last, self.pool.environment_of)

    def digests(self, step: int) -> dict[str, str]:
        """SHA-256 of everything that the batch of ``step`` follows from."""
        return {
            "pool": self.pool.fingerprint,
            "history": self.history.digest_before(step),
            "config": digest(canonical_json(self.config.model_dump(mode="json"))),
        } | self._digest_of_changes(step)

    def _saved_state(self) -> State:
        return State(self.seed, self.history, self.changes)

    def _go_on_from(self, state: State) -> None:
        self.seed, self.history, self.changes = state.seed, state.history, state.changes

    def _digest_of_changes(self, step: int) -> dict[str, str]:
        made = [change for change in self.changes if change.step <= step]
        return {"changes": digest_of_changes(made)} if made else {}

    def _current(self, records: Sequence[RolloutRecord]) -> list[RolloutRecord]:
        """The records that are about tasks of this pool as they are now."""
        kept = [record for record in records if not any(change.outdates(record.task, record.step) for change in self.changes)]
        if len(kept) < len(records):
            logger.warning("%d late records of tasks that the pool no longer has as they were are left out", len(records) - len(kept))
        return kept
