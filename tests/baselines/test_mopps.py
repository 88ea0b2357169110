import numpy as np

from envsched.baselines.mopps import MoPPS
from tests.baselines.rivals import CONFIG, chosen, record, small_pool, teach


def test_counts_by_hand():
    """s = .75 of G = 4: a = 1 + 3, b = 1 + 1; then s = .25: a = 4 + 1, b = 2 + 3."""
    pool = small_pool()
    mopps = MoPPS(pool, CONFIG)
    teach(mopps, record(pool, 1, 0, 1.0, 1.0, 1.0, 0.0))
    assert (mopps.a[1], mopps.b[1]) == (4, 2)
    teach(mopps, record(pool, 1, 1, 0.5, 0.5, 0.0, 0.0))
    assert (mopps.a[1], mopps.b[1]) == (5, 5)


def test_forgetting_by_hand():
    """lam = .5: a = .5 * 1 + .5 + 3 = 4, b = .5 * 1 + .5 + 1 = 2."""
    pool = small_pool()
    mopps = MoPPS(pool, CONFIG)
    mopps.lam = 0.5
    teach(mopps, record(pool, 1, 0, 1.0, 1.0, 1.0, 0.0))
    teach(mopps, record(pool, 1, 1, 1.0, 1.0, 1.0, 0.0))
    assert (mopps.a[1], mopps.b[1]) == (0.5 * 4 + 0.5 + 3, 0.5 * 2 + 0.5 + 1)


def test_tasks_near_one_half_win_over_settled_ones():
    pool = small_pool()
    mopps = MoPPS(pool, CONFIG, seed=2)
    mopps.a[:], mopps.b[:] = 1000.0, 1.0
    mopps.a[[0, 5, 6, 11]], mopps.b[[0, 5, 6, 11]] = 500.0, 500.0
    assert set(chosen(mopps, 1)) == {0, 5, 6, 11}
    assert np.isfinite(mopps.priority(1, np.random.default_rng(0))).all()
