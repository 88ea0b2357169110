"""The learning rate of a run, and where a period puts it."""

import math

import pytest

from envsched.train.rates import share_of_peak


def test_a_period_rises_in_its_first_fifth_and_falls_along_a_cosine():
    expected = [1 / 3, 2 / 3, *(0.5 * (1 + math.cos(math.pi * step / 8)) for step in range(8))]
    assert [share_of_peak(step, 10) for step in range(20)] == pytest.approx(expected * 2)


def test_a_short_period_has_no_warm_up():
    assert [share_of_peak(step, 2) for step in range(3)] == pytest.approx([1, 0.5, 1])


@pytest.mark.parametrize("period", [0, 5])
def test_a_run_steps_at_the_rates_of_its_period(build, period):
    trainer = build(settings=["train.max_steps=7"], learning_rate_period=period)
    trainer.train()
    rates = [line["learning_rate"] for line in trainer.state.log_history if "learning_rate" in line]
    assert rates == pytest.approx([0.01 * (share_of_peak(step, period) if period else 1) for step in range(7)])
