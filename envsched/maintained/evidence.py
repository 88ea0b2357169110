"""Own evidence of visited tasks, and the sums it feeds into their neighbours.

A visit weighs 2^-((t - p) / h) at step t, p the version of the policy that made it. Times 2^(t / h - base) that is a constant,
so sums over neighbours need no decay: they change only where evidence changes. ``base`` grows by whole numbers, which
scales float32 sums by exact powers of two. For ``envsched`` a source counts c = min(1, decayed groups): as long as its
groups exceed 1 it is scattered again each step, and there are at most as many such sources as live groups. Where a carrier
reaches far more tasks than a list that would cost too much: there a source counts the decayed weight of its last visit, which
METHOD section 12 allows.

With ``prior: residual`` nothing that is told fades, and the scale stays 1. A source counts 1 once it has own evidence, and tells
r_j = v_j - env(-j) of ``envsched.predict.priors.ResidualPrior`` as it was when it last told it. That moves whenever others of the
environment, or of the pool, are visited: it is told anew once it has moved by more than v_max / 128, or, where a gift costs a pass
over the pool, at the task's own visits alone.

Letters: N tasks, M environments, S visited tasks, h half-life, p policy version, t step now, c what a source counts.
"""

from collections.abc import Sequence

import numpy as np

from envsched.config import SchedulerConfig
from envsched.history.statistics import MAX_HALF_LIVES, decay
from envsched.maintained.carriers import Carriers, Gifts, Sums
from envsched.maintained.pairs import Pairs
from envsched.predict.predictor import largest_variance, memory_of
from kernels import native, state
from kernels.forecast import RULES

_FIRST_ROOM = 256  # rows of the columns before they grow
_LONGEST_RUN = 1 << 20  # steps; weights of older visits are 0 however long the half-life
TOLD_WITHIN = 1 / 128  # of v_max: a residual that has moved by more is told anew


class Evidence:
    """State of a large pool at one step; ``state`` is how the native operations see these arrays (csrc/state.h).

    Args:
        carriers: of each relation.
        offsets: rows of each environment, int64 [M + 1].
        config: settled; estimator, half-lives, shrinkages, relations.
        environments: first and last (exclusive) of those that this process keeps; none: all.
    """

    def __init__(
        self, carriers: Carriers, offsets: np.ndarray, config: SchedulerConfig, environments: tuple[int, int] | None = None
    ) -> None:
        num_environments = len(offsets) - 1
        first, last = environments or (0, num_environments)
        num_tasks = int(offsets[last] - offsets[first])
        self.config = config
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        self.carriers = [carrier.fresh() for name, carrier in carriers.items() if name in config.relations]
        self.sums = np.zeros((num_tasks, 4), np.float32)
        self.peak = np.zeros(-(-num_tasks // native.BLOCK_ROWS), np.float32)
        self.slot_of = np.full(num_tasks, -1, np.int32)
        self.slots = {name: np.zeros(_FIRST_ROOM, kind) for name, kind in state.COLUMNS.items()}
        self.visits = {name: np.zeros(_FIRST_ROOM, np.int32) for name in ("visit_slot", "visit_step")}
        self.changed = np.zeros(_FIRST_ROOM, np.int32)
        self.memory = memory_of(config)
        half_lives = config.half_life, config.short_half_life, self.memory.half_life
        ages = np.arange(min(int(np.ceil(MAX_HALF_LIVES * max(half_lives))), _LONGEST_RUN) + 1)
        self.decay, self.short_decay, self.own_decay = (decay(0, -ages, half_life) for half_life in half_lives)
        self.by_environment = np.zeros((3, num_environments))
        self.seat_of = np.full(num_environments, -1, np.int32)
        self.state = self._lay_out(first, last)

    @property
    def arrays(self) -> Sequence[np.ndarray]:
        """The hot state: what a step may touch, reversed lists and features left out."""
        s = self.state
        return [
            self.sums,
            self.peak,
            self.slot_of,
            self.by_environment,
            self.seat_of,
            *(column[: s.num_slots] for column in self.slots.values()),
            *(column[: s.num_visits] for column in self.visits.values()),
            self.changed[: s.num_changed],
        ]

    @property
    def nbytes(self) -> int:
        """Bytes of the hot state."""
        return sum(array.nbytes for array in self.arrays)

    def advance(self, step: int, pairs: Pairs) -> int:
        """Bring sums, environments and pool to ``step``; the number of edges scattered."""
        assert step >= self.state.step, "steps only advance"
        shift, places, amounts = state.age(self.state, pairs.native, step)
        if shift:
            for carrier in self.carriers:
                carrier.rescale(shift)
        gifts = Gifts(*places, *amounts)
        sums = Sums(self.sums, self.peak, self.state.residual_shrinkage if self.state.rule == RULES["residual"] else 0.0)
        return sum(carrier.carry(gifts, sums) for carrier in self.carriers) if len(gifts.source) else 0

    def reserve(self, more: int) -> None:
        """Make room for ``more`` visits."""
        s = self.state
        slots, visits, changed = s.num_slots + more, s.num_visits + more, s.num_changed + more
        if slots <= len(self.slots["row"]) and visits <= len(self.visits["visit_slot"]) and changed <= len(self.changed):
            return
        self.slots = {name: _grown(column, slots) for name, column in self.slots.items()}
        self.visits = {name: _grown(column, visits) for name, column in self.visits.items()}
        self.changed = _grown(self.changed, changed)
        self._point()

    def exposures(self, rows: np.ndarray) -> np.ndarray:
        """Decayed exposures of rows [n] at this step, float64 [n]."""
        return self._of(rows, "exposure", 0.0)

    def headroom(self, rows: np.ndarray) -> np.ndarray:
        """What a high mean reward leaves of the rank of rows [n] at this step, float64 [n]."""
        return self._of(rows, "headroom", 1.0)

    def own(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Own mass and own variance of rows [n] at this step, float64 [n]."""
        mass, value = self._of(rows, "mass", 0.0), self._of(rows, "value", 0.0)
        age = np.minimum(self.state.step - self._of(rows, "stamp", self.state.step), len(self.own_decay) - 1)
        return mass * self.own_decay[age], np.divide(value, mass, out=np.zeros_like(mass), where=mass > 0)

    def times_selected(self, rows: np.ndarray) -> np.ndarray:
        """Steps in which rows [n] were selected, int64 [n]."""
        return self._of(rows, "visits", 0)

    def recent(self, first: int) -> tuple[np.ndarray, np.ndarray]:
        """Slots and steps of the visits from step ``first`` on, int32 [n]."""
        num_visits = self.state.num_visits
        slot, step = (column[:num_visits] for column in self.visits.values())
        start = np.searchsorted(step, first)
        return slot[start:], step[start:]

    def _of(self, rows: np.ndarray, name: str, absent: float) -> np.ndarray:
        slot = state.slots(self.state, rows)
        return np.where(slot >= 0, self.slots[name][slot], absent)

    def _lay_out(self, first: int, last: int) -> state.State:
        c = self.config
        self.state = state.State(
            num_tasks=int(self.offsets[-1]),
            num_environments=len(self.offsets) - 1,
            first_row=int(self.offsets[first]),
            first_environment=first,
            last_environment=last,
            num_ages=len(self.decay),
            half_life=c.half_life,
            short_half_life=c.short_half_life,
            own_half_life=self.memory.half_life,
            visit_half_life=self.memory.visit_half_life,
            mastery_weight=self.memory.mastery_weight,
            graph_shrinkage=c.graph_shrinkage,
            own_shrinkage=c.own_shrinkage,
            decline_weight=c.decline_weight,
            prior_variance=c.reward_range**2 / 12 if c.prior_variance is None else c.prior_variance,
            max_variance=largest_variance(c),
            residual_shrinkage=c.residual_shrinkage,
            optimism=c.optimism,
            optimism_spread=c.optimism_spread,
            told_within=TOLD_WITHIN * largest_variance(c),
            rule=RULES["paper" if c.estimator == "paper" else c.prior],
        )
        fades = self.state.rule != RULES["residual"]
        self.state.by_last_visit = any(each.by_last_visit if fades else not each.tells_anew for each in self.carriers)
        for name in ("offsets", "sums", "peak", "slot_of", "decay", "short_decay", "own_decay", "seat_of"):
            setattr(self.state, name, native.address(getattr(self, name)))
        for name, column in zip(("mass", "value", "exposure"), self.by_environment, strict=True):
            setattr(self.state, f"environment_{name}", native.address(column))
        self._point()
        return self.state

    def _point(self) -> None:
        """Tell the state where the columns lie; they move when they grow."""
        for name, column in {**self.slots, **self.visits, "changed": self.changed}.items():
            setattr(self.state, name, native.address(column))


def _grown(column: np.ndarray, room: int) -> np.ndarray:
    return column if room <= len(column) else np.concatenate([column, np.zeros(max(len(column), room - len(column)), column.dtype)])
