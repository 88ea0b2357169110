"""A learning rate that is warmed up and annealed again and again, the same at a step however long the run is."""

import math
from functools import partial
from typing import Any

import torch
from torch.optim.lr_scheduler import LambdaLR, LRScheduler


def share_of_peak(step: int, period: int) -> float:
    """Rises over the first fifth of a period, then falls to zero along a cosine."""
    place, warm = step % period, period // 5
    if place < warm:
        return (place + 1) / (warm + 1)
    return 0.5 * (1 + math.cos(math.pi * (place - warm) / (period - warm)))


class PeriodicRate:
    """Mix in before ``transformers.Trainer``."""

    _rate_period = 0  # steps; 0: the schedule of the arguments

    def create_scheduler(self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None) -> LRScheduler:
        trainer: Any = self
        if trainer.lr_scheduler is None and self._rate_period:
            trainer.lr_scheduler = LambdaLR(optimizer or trainer.optimizer, partial(share_of_peak, period=self._rate_period))
            trainer._created_lr_scheduler = True
        return super().create_scheduler(num_training_steps, optimizer)  # type: ignore[misc]
