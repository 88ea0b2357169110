import math

import numpy as np
import pytest

from envsched.baselines.adarft import AdaRFT, static_difficulty
from envsched.pool import Pool
from envsched.types import Check, Environment, Task
from tests.baselines.rivals import CONFIG, chosen, record, small_pool, teach


def test_target_by_hand():
    """Mean .75: T = 0 + 50 tanh(.5) = 23.106; then mean 0: T = 23.106 + 50 tanh(-1) is below 0, so 0."""
    pool = small_pool()
    adarft = AdaRFT(pool, CONFIG, difficulty=np.arange(12.0) * 5)
    assert chosen(adarft, 0) == [0, 1, 2, 3]
    teach(adarft, record(pool, 0, 0, 1.0, 1.0), record(pool, 1, 0, 0.0, 1.0))
    assert adarft.target == pytest.approx(50 * math.tanh(0.5))
    assert set(chosen(adarft, 1)) == {3, 4, 5, 6}  # 15, 20, 25, 30
    teach(adarft, record(pool, 2, 1, 0.0, 0.0))
    assert adarft.target == 0.0


def test_static_difficulty_by_hand():
    """Percentiles: checks 1, 2, 3 -> 0, 50, 100; prompts of 3, 1, 2 characters -> 100, 0, 50."""
    tasks = [Task(f"t{i}", "e", "x" * length, {}, (Check("", ""),) * checks) for i, (checks, length) in enumerate([(1, 3), (2, 1), (3, 2)])]
    assert static_difficulty(Pool([Environment("e")], tasks)) == pytest.approx([50, 25, 75])
