import pytest

from envsched.baselines.greso import GRESO
from tests.baselines.rivals import CONFIG, chosen, record, small_pool, teach


def test_an_epoch_visits_every_task_once():
    pool = small_pool()
    greso = GRESO(pool, CONFIG)
    seen = []
    for step in range(3):
        rows = chosen(greso, step)
        seen += rows
        teach(greso, *[record(pool, row, step, 0.0, 1.0, 0.5, 0.5) for row in rows])
    assert sorted(seen) == list(range(12))


def test_runs_chances_and_probabilities_by_hand():
    """Half of the groups easy (target a twelfth): p_easy falls to .49; none hard (target a sixth): p_hard rises to .51."""
    pool = small_pool()
    greso = GRESO(pool, CONFIG)
    rows = chosen(greso, 0)
    teach(greso, *[record(pool, row, 0, *((1.0, 1.0) if i < 2 else (0.0, 1.0))) for i, row in enumerate(rows)])
    assert greso.probability == pytest.approx([0.49, 0.51])
    assert greso.run[rows[0]].tolist() == [1, 0]
    assert greso._chance(rows[0]) == pytest.approx(0.49)
    assert greso._chance(rows[3]) == 1.0
    greso.run[rows[0]] = [0, 9]
    assert greso._chance(rows[0]) == pytest.approx(0.01)  # .51^9 = .0023 is below the floor
    teach(greso, record(pool, rows[0], 1, 0.5, 0.4))
    assert greso.run[rows[0]].tolist() == [0, 0]


def test_a_skipped_task_waits_for_the_next_epoch():
    pool = small_pool()
    greso = GRESO(pool, CONFIG, seed=4)
    greso.run[:6, 0] = 60  # six tasks are as good as never taken
    seen = []
    for step in range(12):
        rows = chosen(greso, step)
        seen += rows
        teach(greso, *[record(pool, row, step, 1.0 if row < 6 else 0.0, 1.0) for row in rows])
    counts = [seen.count(row) for row in range(12)]
    assert max(counts[:6]) <= 2
    assert min(counts[6:]) >= 6
