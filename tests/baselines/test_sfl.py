import numpy as np
import pytest

from envsched.baselines.sfl import SFL
from tests.baselines.rivals import CONFIG, chosen, record, small_pool, teach


def test_buffer_by_hand():
    """Means .5, .25, 1: learnability .25, .1875, 0; the buffer of two holds the first two."""
    pool = small_pool()
    sfl = SFL(pool, CONFIG)
    sfl.buffer_size = 2
    teach(sfl, record(pool, 3, 0, 0.0, 1.0), record(pool, 4, 0, 0.0, 0.5), record(pool, 5, 0, 1.0, 1.0))
    assert sfl.learnability[[3, 4, 5]] == pytest.approx([0.25, 0.1875, 0.0])
    assert sfl.buffer.tolist() == [3, 4]
    assert set(chosen(sfl, 1)[:2]) == {3, 4}


def test_refresh_steps_are_uniform_and_charged():
    pool = small_pool()
    sfl = SFL(pool, CONFIG)
    teach(sfl, record(pool, 0, 0, 0.0, 1.0))
    hits = [0 in chosen(SFL_at, 10) for SFL_at in (_seeded(pool, seed) for seed in range(300))]
    assert np.mean(hits) == pytest.approx(4 / 12, abs=0.09)
    assert len(sfl.select(10).picks) == CONFIG.batch_size  # no rollout beyond the batch


def test_the_buffer_changes_at_a_refresh_alone():
    pool = small_pool()
    sfl = SFL(pool, CONFIG)
    teach(sfl, record(pool, 0, 0, 0.0, 1.0))
    teach(sfl, record(pool, 7, 3, 0.0, 1.0))
    assert sfl.buffer.tolist() == [0]
    teach(sfl, record(pool, 8, 10, 1.0, 1.0))
    assert sfl.buffer.tolist() == [0, 7, 8]


def _seeded(pool, seed):
    sfl = SFL(pool, CONFIG, seed)
    teach(sfl, record(pool, 0, 0, 0.0, 1.0))
    return sfl
