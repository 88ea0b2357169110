import numpy as np
import pytest

from envsched.baselines.oracle import CoverageOracle, Oracle
from tests.baselines.rivals import CONFIG, chosen, record, small_pool, teach

WHOLE_LANE = CONFIG.model_copy(update={"coverage_sweep": 0})  # pools that fit on a page would shrink it


def test_the_truly_best_under_a_cap_by_hand():
    pool = small_pool()
    oracle = Oracle(pool, CONFIG.model_copy(update={"max_per_environment": 2}))
    oracle.reveal(np.array([9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0]))
    assert chosen(oracle, 0) == [0, 1, 4, 5]


def test_half_goes_to_the_least_exposed_environments():
    """Environments 0 and 1 were exposed at step 0: at step 1 the best task of 2 must come, and one of 0 or 1."""
    pool = small_pool()
    oracle = CoverageOracle(pool, WHOLE_LANE)
    teach(oracle, record(pool, 0, 0, 0.0, 1.0), record(pool, 4, 0, 0.0, 1.0))
    assert oracle.exposures == pytest.approx([0.5 ** (1 / 8), 0.5 ** (1 / 8), 0])
    oracle.reveal(np.array([9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0.5]))
    rows = chosen(oracle, 1)
    assert 8 in rows[:2]
    assert set(rows) <= {0, 1, 2, 8, 4}


def test_exposures_decay_with_the_half_life():
    pool = small_pool()
    oracle = CoverageOracle(pool, WHOLE_LANE)
    teach(oracle, record(pool, 0, 0, 0.0, 1.0))
    teach(oracle, record(pool, 4, 8, 0.0, 1.0))
    assert oracle.exposures == pytest.approx([0.5 ** (9 / 8), 0.5 ** (1 / 8), 0])


def test_the_coverage_lane_of_a_small_pool_shrinks_as_ours_does():
    """24 tasks in batches of 4 are 6 batches a sweep: a quarter of the lane of 2 is left, none after rounding, and the best come first."""
    pool = small_pool(num_environments=6)
    truth = np.zeros(24)
    truth[:4] = 9, 8, 7, 6

    def picks(config) -> set[int]:
        oracle = CoverageOracle(pool, config)
        teach(oracle, record(pool, 0, 0, 0.0, 1.0))
        oracle.reveal(truth)
        return set(chosen(oracle, 1))

    assert picks(CONFIG) == {0, 1, 2, 3}
    assert picks(WHOLE_LANE) & {0, 1, 2, 3} == {0, 1}
