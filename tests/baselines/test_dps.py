import numpy as np
import pytest

from envsched.baselines.dps import DPS
from tests.baselines.rivals import CONFIG, record, small_pool, teach


def test_one_step_by_hand():
    """Seen partly solved from a uniform belief: joint = 1/3 in each cell of the row, alpha's middle row becomes 4/3,
    P's middle row 4/10, the rest 3/10; an unseen task keeps P = 1/3 and its belief."""
    pool = small_pool()
    dps = DPS(pool, CONFIG)
    teach(dps, record(pool, 2, 0, 0.0, 0.5, 0.5, 1.0))
    assert dps.alpha[2] == pytest.approx(np.array([[1, 1, 1], [4 / 3, 4 / 3, 4 / 3], [1, 1, 1]]))
    assert dps.belief[2] == pytest.approx([0.3, 0.4, 0.3])
    assert dps.before[2] == pytest.approx([0, 1, 0])
    assert dps.belief[0] == pytest.approx([1 / 3] * 3)


def test_second_step_by_hand():
    """Then unsolved: prev is e_1, so only alpha[0, 1] grows by 1; column 1 is [2, 4/3, 1], column 0 is [1, 4/3, 1]."""
    pool = small_pool()
    dps = DPS(pool, CONFIG)
    teach(dps, record(pool, 2, 0, 0.0, 0.5, 0.5, 1.0))
    teach(dps, record(pool, 2, 1, 0.0, 0.0, 0.05, 0.1))
    assert dps.alpha[2][:, 1] == pytest.approx([2, 4 / 3, 1])
    assert dps.belief[2] == pytest.approx([0.3, 0.4, 0.3])  # column 0 over its sum 10/3


@pytest.mark.parametrize(("rewards", "state"), [((0.0, 0.1), 0), ((0.0, 0.2), 1), ((0.9, 1.0), 2), ((0.5, 0.5), 1)])
def test_states_of_fractional_rewards(rewards, state):
    assert DPS(small_pool(), CONFIG)._state(rewards) == state


def test_a_task_seen_to_be_partly_solved_is_wanted_most():
    pool = small_pool()
    dps = DPS(pool, CONFIG)
    teach(dps, record(pool, 7, 0, 0.0, 1.0, 0.0, 1.0), record(pool, 8, 0, 1.0, 1.0, 1.0, 1.0))
    batch = dps.select(1).tasks
    assert batch[0] == pool.tasks[7].key
    assert pool.tasks[8].key not in batch
