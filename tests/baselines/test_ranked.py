"""Every rival keeps the five verbs' promises: repeatable, resumable, quotas held, repeats counted once."""

import json

import numpy as np
import pytest

from envsched.baselines.adarft import AdaRFT
from envsched.baselines.dps import DPS
from envsched.baselines.greso import GRESO
from envsched.baselines.mopps import MoPPS
from envsched.baselines.oracle import CoverageOracle, Oracle
from envsched.baselines.plr import PLR
from envsched.baselines.ranked import without_quotas
from envsched.baselines.sec import SEC
from envsched.baselines.sfl import SFL
from envsched.baselines.vcrl import VCRL
from envsched.config import SchedulerConfig
from envsched.errors import RecordError, SelectionError
from envsched.types import Scheduler
from tests.baselines.rivals import CONFIG, chosen, record, small_pool, teach

RIVALS = [DPS, MoPPS, VCRL, SEC, GRESO, PLR, SFL, AdaRFT, Oracle, CoverageOracle]


def roll(scheduler, steps, start=0):
    """Feed rewards that depend on (row, step) alone, so that two schedulers can be compared."""
    batches = []
    for step in range(start, start + steps):
        if hasattr(scheduler, "reveal"):
            scheduler.reveal(np.sin(np.arange(len(scheduler.pool)) + step))
        rows = chosen(scheduler, step)
        batches.append(rows)
        rewards = [np.random.default_rng([row, step]).choice([0.0, 0.5, 1.0], 4).tolist() for row in rows]
        scheduler.observe([record(scheduler.pool, row, step, *r) for row, r in zip(rows, rewards, strict=True)])
    return batches


@pytest.mark.parametrize("rival", RIVALS)
def test_batches_are_full_without_repeats_and_repeatable(rival):
    pool = small_pool()
    first, second = (roll(rival(pool, CONFIG, seed=3), 12) for _ in range(2))
    assert first == second
    assert all(len(set(rows)) == CONFIG.batch_size for rows in first)
    assert isinstance(rival(pool, CONFIG), Scheduler)


@pytest.mark.parametrize("rival", RIVALS)
def test_a_loaded_state_goes_on_as_if_never_stopped(rival):
    pool = small_pool()
    whole = roll(rival(pool, CONFIG, seed=3), 10)
    stopped = rival(pool, CONFIG, seed=3)
    roll(stopped, 6)
    resumed = rival(pool, CONFIG, seed=3)
    resumed.load_state_dict(json.loads(json.dumps(stopped.state_dict())))
    assert roll(resumed, 4, start=6) == whole[6:]


@pytest.mark.parametrize("rival", RIVALS)
def test_quotas_hold(rival):
    pool = small_pool(6, 4)
    config = SchedulerConfig(batch_size=6, group_size=4, max_per_environment=2, max_per_environment_window=4, max_consecutive=1)
    batches = roll(rival(pool, config, seed=1), 9)
    for step, rows in enumerate(batches):
        assert np.bincount(pool.environment_of[rows]).max() <= 2
        window = [row for past in batches[max(0, step - 2) : step + 1] for row in past]
        assert np.bincount(pool.environment_of[window]).max() <= 4
        assert step == 0 or not set(rows) & set(batches[step - 1])


def test_quotas_that_cannot_hold_are_relaxed_and_named():
    config = CONFIG.model_copy(update={"max_per_environment": 1})
    batch = MoPPS(small_pool(), config).select(0)
    assert len(batch.picks) == 4
    assert batch.relaxed


def test_without_quotas_the_best_are_taken_whatever_their_environment():
    pool = small_pool()
    oracle = Oracle(pool, without_quotas(CONFIG.model_copy(update={"max_per_environment": 1})))
    oracle.reveal(-np.arange(len(pool)))
    assert chosen(oracle, 0) == [0, 1, 2, 3]


def test_the_same_record_counts_once_and_another_one_is_refused():
    pool = small_pool()
    scheduler = MoPPS(pool, CONFIG)
    for _ in range(2):
        teach(scheduler, record(pool, 0, 0, 1.0, 0.0, 0.0, 0.0))
    assert (scheduler.a[0], scheduler.b[0]) == (2.0, 4.0)
    with pytest.raises(RecordError, match="another record"):
        scheduler.observe([record(pool, 0, 0, 1.0, 1.0, 0.0, 0.0)])


@pytest.mark.parametrize("rival", RIVALS)
def test_a_late_record_is_learned_in_its_place(rival):
    pool = small_pool()
    records = [record(pool, row, step, 0.0, 1.0, 0.5 * (row % 2)) for step in range(3) for row in range(step, step + 4)]
    in_order, late = rival(pool, CONFIG, seed=3), rival(pool, CONFIG, seed=3)
    teach(in_order, *records)
    teach(late, *records[:3], *records[4:])
    teach(late, records[3])
    assert chosen(late, 3) == chosen(in_order, 3)


def test_a_pool_below_the_batch_is_refused():
    with pytest.raises(SelectionError, match="at most 12"):
        DPS(small_pool(), SchedulerConfig(batch_size=13))
