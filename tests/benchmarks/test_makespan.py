import pytest

from benchmarks.makespan import measure, summarise, table
from envsched.pool import Pool
from envsched.train.ordering import LengthForecast
from envsched.types import Environment, RolloutRecord, Status, Task

POOL = Pool([Environment("a"), Environment("b")], [Task("a1", "a", "xx"), Task("b1", "b", "x"), Task("b2", "b", "x")])


def step(number, **tokens):
    return [RolloutRecord(task, number, (0.0, 1.0), (Status.OK,) * 2, number, tokens=(n, n)) for task, n in tokens.items()]


def test_orders_by_hand():
    """Two slots, a pair of 6 and pairs of 4 and 2: all orders end at 12 but for 2, 2 | ...: pairs fill both slots evenly. Three
    slots, longest first: 6, 6, 4 then 4 at 4, 2 at 6, 2 at 6, end 8, which is the least possible (24 / 3)."""
    steps = [step(0, a1=6, b1=4, b2=2), step(1, b2=2, b1=4, a1=6)]
    (found,) = measure(steps, LengthForecast(POOL), [2, 3], first=1)
    assert found[2]["as picked"] == found[2]["longest first"] == 1.0
    assert found[3]["longest first"] == found[3]["longest predicted first"] == found[3]["by environment, longest first"] == 1.0
    assert found[3]["as picked"] == pytest.approx(10 / 8)  # 2, 2, 4, then 4 at 2, 6 at 2 and 6 at 4
    assert 1.0 <= found[3]["random"] <= 10 / 8
    rows = summarise([found, found], [3])
    assert rows[1]["gain"]["mean"] == pytest.approx(1 - 1.25 / found[3]["random"])
    assert len(table(rows)) == 2 + 5
