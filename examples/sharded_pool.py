"""One large pool, shared by ranks: torchrun --nproc-per-node 2 examples/sharded_pool.py

Every rank opens the same features and keeps the rows of its own environments. Each observes the rollouts that it made itself;
all of them select the same batch, bit for bit the one that a single process selects.
"""

import os
import sys

import numpy as np
import torch.distributed as dist

from envsched.config import SchedulerConfig
from envsched.features import Features
from envsched.features.features import on_grid
from envsched.maintained import shard_pool

NUM_ENVIRONMENTS, TASKS_EACH, STEPS = 400, 50, 5


def main() -> None:
    if "RANK" not in os.environ:
        sys.exit("a pool is shared by the ranks of a launcher: torchrun --nproc-per-node 2 examples/sharded_pool.py")
    dist.init_process_group("gloo")
    generator = np.random.default_rng(0)
    offsets = np.arange(NUM_ENVIRONMENTS + 1) * TASKS_EACH
    within, cross = (unit(generator.normal(size=(offsets[-1], width))) for width in (96, 64))
    pool = shard_pool(Features(within, cross), offsets, SchedulerConfig(), seed=0)
    solved = generator.beta(0.5, 0.5, size=offsets[-1])
    for step in range(STEPS):
        batch = pool.select(step).rows
        mine = batch[dist.get_rank() :: dist.get_world_size()]  # the rollouts that this rank makes
        pool.observe(step, mine, rollouts(step, mine, solved))
        if dist.get_rank() == 0:
            print(f"step {step}: {len(np.unique(batch // TASKS_EACH))} environments, first tasks {batch[:6].tolist()}")
    dist.destroy_process_group()


def rollouts(step: int, rows: np.ndarray, solved: np.ndarray) -> np.ndarray:
    """Rewards [n, 8] that follow from step and task, whichever rank rolls them out."""
    drawn = [np.random.default_rng([step, row]).random(8) < solved[row] for row in rows]
    return np.array(drawn, dtype=float).reshape(-1, 8)


def unit(rows: np.ndarray) -> np.ndarray:
    return on_grid(rows / np.linalg.norm(rows, axis=1, keepdims=True))


if __name__ == "__main__":
    main()
