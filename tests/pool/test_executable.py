import pytest

from envsched.errors import PoolError
from envsched.pool import Pool
from envsched.pool.executable import environments_without_code, has_code, refuse_without_rollouts
from envsched.types import Check, Environment, Task

SHOP, BANK, EMPTY = Environment("shop", source="class Shop: ..."), Environment("bank"), Environment("empty")
CHECK = (Check("done?", "def check_func(state): return True"),)


def pool(environments=(SHOP,), checks=CHECK):
    return Pool([*environments, EMPTY], [Task(f"{e.key}-1", e.key, checks=checks) for e in environments])


@pytest.mark.parametrize(("environments", "without"), [((SHOP,), []), ((SHOP, BANK), ["bank"]), ((BANK,), ["bank"])])
def test_an_environment_without_a_task_needs_no_code(environments, without):
    made = pool(environments)
    assert environments_without_code(made) == without
    assert has_code(made) == (SHOP in environments)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (Pool.synthetic(4, 10), r"^pool p: its environments have no code, so no rollout can start there; train on bundled"),
        (pool((SHOP, BANK, Environment("zoo"))), r"^pool p: 2 of 3 environments have no code \(first: 'bank'\), so no rollout can start"),
        (pool(checks=()), r"^pool p: 1 of 1 tasks have no check \(first: 'shop-1'\), so their rollouts have no reward"),
    ],
)
def test_what_no_rollout_could_come_from_is_refused_by_name(made, says):
    with pytest.raises(PoolError, match=says):
        refuse_without_rollouts("p", made)


def test_what_can_be_run_is_let_through():
    bundled = Pool.bundled()
    assert environments_without_code(bundled) == []
    refuse_without_rollouts("bundled", bundled)
    refuse_without_rollouts("p", pool(checks=()), own_reward=True)
