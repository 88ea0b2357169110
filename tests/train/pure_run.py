"""``train.py`` with one change: a rollout's reward is a pure function of task, step and rollout number.

Sampling then decides nothing that the scheduler sees, so runs that sample differently (two processes, say) must choose the same
batches. Flags are those of ``train.py``; run as a module from the repository's root:

    torchrun --nproc_per_node 2 -m tests.train.pure_run --config configs/cpu.yaml --run-dir runs/two

With ``ENVSCHED_TEST_RANK1_POOL=FOLDER`` rank 1 opens another pool, as a host with a stale copy would.
"""

import os
import sys

from envsched.files import digest
from train import main


def pure_reward(attempt):
    """Uniform over 0, 1/4, .. 1, but only for tasks that a coin makes mixed; the others are constant."""
    draw = int(digest(attempt.task, str(attempt.step), str(attempt.number))[:8], 16)
    mixed = int(digest(attempt.task)[:8], 16) % 3
    return draw % 5 / 4 if mixed else 0.5


if __name__ == "__main__":
    other = os.environ.get("ENVSCHED_TEST_RANK1_POOL")
    extra = ["--pool", other] if other and os.environ.get("RANK") == "1" else []
    sys.exit(main([*sys.argv[1:], *extra], reward=pure_reward))
