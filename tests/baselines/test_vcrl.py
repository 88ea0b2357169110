import pytest

from envsched.baselines.vcrl import VCRL, normalised_variance
from tests.baselines.rivals import CONFIG, chosen, record, small_pool, teach


def test_binary_groups_give_the_published_formula():
    """k (G - k) / (G (G - 1)) over its maximum; at G = 4: 3/12 over 4/12 for k = 1, 1 for k = 2."""
    assert normalised_variance(3 / 12, 4, 1.0, 1) == pytest.approx(0.75)
    assert normalised_variance(4 / 12, 4, 1.0, 1) == pytest.approx(1.0)
    assert normalised_variance(1 / 4, 4, 1.0, 0) == pytest.approx(1.0)


def test_kept_tasks_enter_the_bank_and_dropped_ones_are_replaced_next_step():
    pool = small_pool()
    vcrl = VCRL(pool, CONFIG)
    groups = {0: (1, 1, 0, 0), 1: (1, 0, 0, 0), 2: (0, 0, 0, 0), 3: (1, 1, 1, 1)}
    teach(vcrl, *(record(pool, row, 0, *rewards) for row, rewards in groups.items()))
    assert vcrl.num_dropped == 2
    assert vcrl.bank[:4] == pytest.approx([1.0, 0.75, float("-inf"), float("-inf")])
    assert chosen(vcrl, 1)[:2] == [0, 1]
    assert not {0, 1} & set(chosen(vcrl, 1)[2:])


def test_a_banked_task_moves_by_momentum_and_leaves_below_kappa():
    pool = small_pool()
    vcrl = VCRL(pool, CONFIG)
    teach(vcrl, record(pool, 0, 0, 1, 1, 0, 0))
    teach(vcrl, record(pool, 0, 1, 1, 0, 0, 0))
    assert vcrl.bank[0] == pytest.approx(0.9 * 1 + 0.1 * 0.75)
    teach(vcrl, record(pool, 0, 20, 1, 0, 0, 0))  # .75 is below the late kappa
    assert vcrl.bank[0] == float("-inf")
