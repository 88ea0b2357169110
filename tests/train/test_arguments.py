"""What TRL is told: the learning rate falls along a cosine, in the same periods however long the run is."""

import math

import pytest
import torch
from transformers import get_scheduler

from envsched.config import load_config
from envsched.train.arguments import grpo_arguments
from envsched.train.geometry import divide


def rates(folder, period, max_steps):
    flags = ["learning_rate=0.5", f"learning_rate_period={period}", f"max_steps={max_steps}", "device=cpu", "precision=fp32"]
    config = load_config(overrides=[f"train.{flag}" for flag in flags])
    args = grpo_arguments(config, divide(4, 2, 1, 8), folder / "checkpoint", folder / "logs")
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=args.learning_rate)
    schedule = get_scheduler(
        args.lr_scheduler_type,
        optimizer,
        num_warmup_steps=args.warmup_steps,
        num_training_steps=max_steps,
        scheduler_specific_kwargs=args.lr_scheduler_kwargs,
    )
    used = []
    for _ in range(max_steps):
        used.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return used


def test_a_period_begins_anew_and_no_step_knows_how_long_the_run_is(tmp_path):
    one = [0.25 * (1 + math.cos(math.pi * step / 8)) for step in range(8)]
    assert rates(tmp_path, period=8, max_steps=8) == pytest.approx(one)
    assert rates(tmp_path, period=8, max_steps=24) == pytest.approx(one * 3)
    assert rates(tmp_path, period=8, max_steps=12) == pytest.approx(one + one[:4])


def test_without_a_period_it_is_constant(tmp_path):
    assert rates(tmp_path, period=0, max_steps=5) == [0.5] * 5
