"""What a step costs where no static lists are followed: 64 observations to the live lists of all tasks, against one copy of the
int8 features that it reads. A part of ``benchmarks.kernels``."""

from argparse import Namespace

import numpy as np

from benchmarks.measure import Figures, by_clock, medians
from benchmarks.worlds import cross_vectors
from envsched import ops
from kernels import live, native

SLOTS, BATCH, WARM, HALF_LIFE, FLOOR = 12, 64, 40, 8, 0.5


class LiveWorld:
    """Lists of all tasks after 40 steps of 64 random visits."""

    def __init__(self, num_tasks: int, num_features: int = 128) -> None:
        self.generator = np.random.default_rng(3)
        self.codes = native.Quantised(cross_vectors(num_tasks, num_features, self.generator), ops.num_threads())
        self.lists = live.LiveLists(num_tasks, SLOTS)
        self.sums, self.peak = np.zeros((num_tasks, 4), np.float32), np.zeros(num_tasks // native.BLOCK_ROWS + 1, np.float32)
        self.table, self.row = np.zeros((1 << 16, 2), np.float32), np.zeros(1 << 16, np.int32)
        self.num_tasks, self.step, self.known = num_tasks, 0, 0
        for _ in range(WARM):
            self.update()

    def update(self) -> None:
        """What is timed: one step's visits are offered to all lists, and the sums of those that change are written."""
        source = self.generator.integers(self.num_tasks, size=BATCH)
        slot = np.arange(self.known, self.known + BATCH)
        mass = np.full(BATCH, 2.0 ** (self.step / HALF_LIFE))
        self.table[slot] = np.sqrt(mass)[:, None] * np.stack([self.generator.random(BATCH), np.ones(BATCH)], axis=1)
        self.row[slot] = source
        live.live_cross(
            self.lists, self.codes, source, slot, mass, source, source + 1, FLOOR, self.table, self.row, self.sums, self.peak,
            ops.num_threads(),
        )  # fmt: skip
        self.step, self.known = self.step + 1, self.known + BATCH


def measure_live(arguments: Namespace) -> Figures:
    """``live_update_over_copy`` and bytes a task: codes, lists, cross sums."""
    world = LiveWorld(arguments.tasks)
    copy = np.empty_like(world.codes.codes)
    measured = medians({"live": world.update, "copy": lambda: np.copyto(copy, world.codes.codes)}, arguments.repeats)
    nbytes = (world.codes.nbytes + world.lists.nbytes) / arguments.tasks + 4 * 4 + 4
    return by_clock(measured, lambda s: {"live_update_ms": 1e3 * s["live"], "live_update_over_copy": s["live"] / s["copy"]}) | {
        "live_bytes_per_task": nbytes
    }
