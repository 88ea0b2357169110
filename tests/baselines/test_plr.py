import numpy as np
import pytest

from envsched.baselines.plr import PLR
from tests.baselines.rivals import CONFIG, chosen, record, small_pool, teach


def test_parts_by_hand():
    """Ranks 1, 2 by standard deviation with b = .1: weights 1 and 2^-10; staleness 1 and 3 at step 3."""
    pool = small_pool()
    plr = PLR(pool, CONFIG)
    teach(plr, record(pool, 5, 0, 0.4, 0.6))
    teach(plr, record(pool, 2, 2, 0.0, 1.0))
    by_score, stale = plr.parts(3)
    assert by_score == pytest.approx(np.array([1, 2.0**-10]) / (1 + 2.0**-10))
    assert stale == pytest.approx([1 / 4, 3 / 4])


def test_half_of_a_batch_is_unseen_while_there_is_any():
    pool = small_pool()
    plr = PLR(pool, CONFIG)
    for step in range(5):
        rows, seen = chosen(plr, step), plr.last >= 0
        assert sum(not seen[row] for row in rows) == min((~seen).sum(), 4 if step == 0 else 2)
        teach(plr, *[record(pool, row, step, 0.0, 1.0) for row in rows])


def test_the_highest_scores_are_replayed():
    pool = small_pool()
    plr = PLR(pool, CONFIG)
    teach(plr, *[record(pool, row, 0, 0.5, 0.5 + 0.04 * row) for row in range(12)])
    picks = [row for step in range(1, 40) for row in chosen(plr, step)]
    assert set(np.argsort(-np.bincount(picks, minlength=12))[:4]) == {8, 9, 10, 11}
