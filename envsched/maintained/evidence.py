"""Own evidence of visited tasks, and the sums it feeds into their neighbours.

A visit weighs 2^-((t - p) / h) at step t, p the version of the policy that made it. Times 2^(t / h - base) that is a constant,
so sums over neighbours need no decay: they change only where evidence changes. ``base`` grows by whole numbers, which
scales float32 sums by exact powers of two. For ``envsched`` a source counts c = min(1, decayed groups): as long as its
groups exceed 1 it is scattered again each step, and there are at most as many such sources as live groups. Where a carrier
reaches far more tasks than a list that would cost too much: there a source counts the decayed weight of its last visit, which
METHOD section 12 allows.

Letters: N tasks, M environments, S visited tasks, h half-life, p policy version, t step now, c what a source counts.
"""

import ctypes
from typing import Any

import numpy as np

from envsched.config import SchedulerConfig
from envsched.history.statistics import MAX_HALF_LIVES
from envsched.maintained.carriers import Carriers, Gifts
from envsched.predict.predictor import largest_variance
from kernels import native

_REBASE = 32.0  # scale exponent at which the sums are scaled down
_COLUMNS = {
    **dict.fromkeys(("order", "row", "environment", "stamp", "exposed", "streak", "visits"), np.int32),
    **dict.fromkeys(("mass", "value", "groups", "short_mass", "short_value", "exposure", "given_mass", "given_value"), np.float64),
}


class Evidence:
    """State of a large pool at one step.

    Args:
        carriers: of each relation.
        offsets: rows of each environment, int64 [M + 1].
        config: estimator, half-lives, shrinkages, relations.
    """

    def __init__(self, carriers: Carriers, offsets: np.ndarray, config: SchedulerConfig) -> None:
        num_tasks, num_environments = int(offsets[-1]), len(offsets) - 1
        self.config = config
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        self.carriers = [carrier.fresh() for name, carrier in carriers.items() if name in config.relations]
        self._by_last_visit = any(carrier.by_last_visit for carrier in self.carriers)
        self.sums = np.zeros((num_tasks, 4), np.float32)
        self.peak = np.zeros(-(-num_tasks // native.BLOCK_ROWS), np.float32)
        self.slot_of = np.full(num_tasks, -1, np.int32)
        self.slots = {name: np.zeros(256, kind) for name, kind in _COLUMNS.items()}
        self.num_slots = 0
        self.step = 0
        self.base = 0.0
        self._visit_slot, self._visit_step = np.empty(0, np.int64), np.empty(0, np.int64)
        self._changed = np.empty(0, np.int64)  # slots whose contribution differs from what was given
        ages = np.arange(int(np.ceil(MAX_HALF_LIVES * config.half_life)) + 1)
        self.decay = np.exp2(-ages / config.half_life)
        self.short_decay = np.where(
            ages <= MAX_HALF_LIVES * config.short_half_life, np.exp2(-np.minimum(ages / config.short_half_life, 1070)), 0.0
        )
        self._by_environment = np.zeros((3, num_environments))
        self.state = self._lay_out()

    @property
    def nbytes(self) -> int:
        """Bytes of the hot state: what a step may touch, reversed lists and features left out."""
        return (
            self.sums.nbytes
            + self.peak.nbytes
            + self.slot_of.nbytes
            + self._by_environment.nbytes
            + sum(c[: self.num_slots].nbytes for c in self.slots.values())
        )

    def advance(self, step: int, cross_weight: float) -> int:
        """Bring sums, environments and pool to ``step``; the number of edges scattered."""
        assert step >= self.step, "steps only advance"
        self.step = step
        self._expose()
        self._rebase()
        edges = self._give()
        self.state.step = step
        self.state.inverse_scale = 2.0 ** -(step / self.config.half_life - self.base)
        self.state.cross_weight = cross_weight
        native.refresh(self.state)
        return edges

    def visit(self, rows: np.ndarray, step: int, policy_version: np.ndarray, num_valid: np.ndarray, variance: np.ndarray) -> None:
        """Take in one visit each of distinct rows [n]; variance NaN where a visit shows none."""
        slot, s = self._slots_for(rows), self.slots
        again = (s["visits"][slot] > 0) & (s["exposed"][slot] == step - 1)
        s["streak"][slot] = np.where(again, s["streak"][slot] + 1, 1)
        s["exposed"][slot] = step
        s["visits"][slot] += 1
        self._visit_slot, self._visit_step = np.append(self._visit_slot, slot), np.append(self._visit_step, np.full(len(slot), step))
        known = ~np.isnan(variance)
        slot, policy_version, variance = slot[known], policy_version[known], variance[known]
        h = self.config.half_life
        fresh = s["mass"][slot] == 0
        s["stamp"][slot[fresh]] = policy_version[fresh]
        later = np.maximum(policy_version, s["stamp"][slot])
        old, new = later - s["stamp"][slot], later - policy_version
        unit = np.ones(len(slot)) if self.config.estimator == "paper" else num_valid[known].astype(np.float64)
        for mass, value, half_life in (("mass", "value", h), ("short_mass", "short_value", self.config.short_half_life)):
            fade, w = np.exp2(-old / half_life), np.exp2(-new / half_life) * unit
            s[mass][slot] = s[mass][slot] * fade + w
            s[value][slot] = s[value][slot] * fade + w * variance
        s["groups"][slot] = s["groups"][slot] * np.exp2(-old / h) + np.exp2(-new / h)
        s["stamp"][slot] = later
        self._changed = np.union1d(self._changed, slot)

    def exposures(self, rows: np.ndarray) -> np.ndarray:
        """Decayed exposures of rows [n] at this step, float64 [n]."""
        slot = self.slot_of[rows]
        return np.where(slot >= 0, self.slots["exposure"][slot], 0.0)

    def own(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Own mass and own variance of rows [n] at this step, float64 [n]."""
        s, slot = self.slots, self.slot_of[rows]
        age = np.minimum(self.step - s["stamp"][slot], len(self.decay) - 1)
        mass = np.where(slot >= 0, s["mass"][slot], 0.0)
        variance = np.divide(s["value"][slot], mass, out=np.zeros_like(mass), where=mass > 0)
        return mass * self.decay[age], variance

    def visits(self, rows: np.ndarray) -> np.ndarray:
        """Steps in which rows [n] were selected, int64 [n]."""
        slot = self.slot_of[rows]
        return np.where(slot >= 0, self.slots["visits"][slot], 0)

    def _expose(self) -> None:
        """Sum over visits as ``decayed_exposures`` does, to the last bit: environments that tie there must tie here."""
        age = np.minimum(self.step - self._visit_step, len(self.decay) - 1)
        self.slots["exposure"][: self.num_slots] = np.bincount(self._visit_slot, self.decay[age], self.num_slots)

    def _slots_for(self, rows: np.ndarray) -> np.ndarray:
        fresh = rows[self.slot_of[rows] < 0]
        if not len(fresh):
            return self.slot_of[rows].astype(np.int64)
        first, self.num_slots = self.num_slots, self.num_slots + len(fresh)
        self.state.num_slots = self.num_slots
        if self.num_slots > len(self.slots["row"]):
            self.slots = {
                name: np.concatenate([column, np.zeros(max(len(column), len(fresh)), column.dtype)]) for name, column in self.slots.items()
            }
            self._point()
        self.slot_of[fresh] = np.arange(first, self.num_slots)
        self.slots["row"][first : self.num_slots] = fresh
        known = self.slots["row"][self.slots["order"][:first]]
        self.slots["order"][: self.num_slots] = np.insert(
            self.slots["order"][:first], np.searchsorted(known, fresh), np.arange(first, self.num_slots)
        )
        self.slots["environment"][first : self.num_slots] = np.searchsorted(self.offsets, fresh, side="right") - 1
        return self.slot_of[rows].astype(np.int64)

    def _give(self) -> int:
        """Scatter the difference between what changed sources count now and what they were given out as."""
        slot, s = self._changed, self.slots
        if not len(slot):
            return 0
        lift = np.exp2(s["stamp"][slot] / self.config.half_life - self.base)
        if self.config.estimator == "paper":
            mass, value = s["mass"][slot] * lift, s["value"][slot] * lift
            settled = np.ones(len(slot), dtype=bool)
        elif self._by_last_visit:
            mass, settled = lift, np.ones(len(slot), dtype=bool)
            value = mass * s["value"][slot] / s["mass"][slot]
        else:
            groups, one = s["groups"][slot] * lift, 2.0 ** (self.step / self.config.half_life - self.base)
            mass = np.minimum(groups, one)
            value = mass * s["value"][slot] / s["mass"][slot]
            settled = groups <= one
        more_mass, more_value = mass - s["given_mass"][slot], value - s["given_value"][slot]
        s["given_mass"][slot], s["given_value"][slot] = mass, value
        self._changed = slot[~settled]
        e = s["environment"][slot]
        gifts = Gifts(s["row"][slot].astype(np.int64), slot, self.offsets[e], self.offsets[e + 1], mass, value, more_mass, more_value)
        return sum(carrier.carry(gifts, self.sums, self.peak) for carrier in self.carriers)

    def _rebase(self) -> None:
        exponent = self.step / self.config.half_life - self.base
        if exponent > _REBASE:
            shift = 2 * int(exponent // 2)
            self.base += shift
            self.sums *= np.float32(2.0**-shift)
            self.peak *= np.float32(2.0**-shift)
            for name in ("given_mass", "given_value"):
                self.slots[name] *= 2.0**-shift
            for carrier in self.carriers:
                carrier.rescale(shift)

    def _lay_out(self) -> native.State:
        """The same arrays as the native operations see them."""
        c, state = self.config, native.State()
        state.num_tasks, state.num_environments = len(self.slot_of), len(self.offsets) - 1
        state.num_ages = len(self.decay)
        state.graph_shrinkage, state.own_shrinkage, state.decline_weight = c.graph_shrinkage, c.own_shrinkage, c.decline_weight
        state.prior_variance = c.reward_range**2 / 12 if c.prior_variance is None else c.prior_variance
        state.max_variance = largest_variance(c)
        state.paper = c.estimator == "paper"
        fixed: dict[str, Any] = {name: getattr(self, name) for name in ("offsets", "sums", "peak", "slot_of", "decay", "short_decay")} | {
            f"environment_{name}": self._by_environment[i] for i, name in enumerate(("mass", "value", "exposure"))
        }
        for name, array in fixed.items():
            setattr(state, name, ctypes.c_void_p(array.ctypes.data))
        self.state = state
        self._point()
        return state

    def _point(self) -> None:
        """Tell the state where the columns lie; they move when they grow."""
        for name in ("order", "row", "environment", "stamp", "mass", "value", "groups", "short_mass", "short_value", "exposure"):
            setattr(self.state, name, ctypes.c_void_p(self.slots[name].ctypes.data))
