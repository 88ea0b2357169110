"""The native composition against ``envsched.select.compose``: rows, lanes, penalties, and which quota bound each pick."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.config import SchedulerConfig
from envsched.graph import ObservedGraph
from envsched.history import History, decayed_exposures, exposures
from envsched.maintained import Closed, Composer
from envsched.pool import Pool
from envsched.predict import Calibration
from envsched.select import Candidates, Draws, Quotas, compose, mix_of, recent_picks
from envsched.types import RolloutRecord, Status
from kernels import native
from tests.graph.worlds import make_world

pytestmark = pytest.mark.skipif(not native.is_built(), reason="no native library was built (python -m kernels.build)")
NUM_ENVIRONMENTS, TASKS_EACH = 14, 9
NUM_TASKS = NUM_ENVIRONMENTS * TASKS_EACH
SETTINGS = [
    {},
    {"estimator": "paper", "max_per_environment": 2, "max_per_environment_window": 4},
    {"max_consecutive": 1, "coverage_share": 0.25},
    {"similarity_penalty": 0.0, "max_per_environment": 1},
    {"coverage_share": 0.75, "coverage_explore": 1.0, "window_steps": 1},
    {"batch_size": 40, "max_per_environment_window": 6},  # the look-ahead binds
]


def drawn_history(pool, config, generator, num_steps):
    """Steps that come back to the same tasks, so that streaks and windows bind."""
    history, hot = History(pool, config), generator.choice(NUM_TASKS, 12, replace=False)
    for step in range(num_steps):
        rows = np.unique(np.concatenate([generator.choice(hot, 6), generator.choice(NUM_TASKS, 6)]))
        rewards = generator.integers(0, 2, (len(rows), 4)).astype(float).tolist()
        history.extend(
            RolloutRecord(pool.tasks[row].key, step, tuple(r), (Status.OK,) * 4, step) for row, r in zip(rows, rewards, strict=True)
        )
    return history


def drawn_closed(generator, step, share):
    barred = 0.97 if share == 0.1 else share  # so many that the lane must let some in
    leased = generator.choice(NUM_TASKS, int(share * 20), replace=False)
    return Closed(
        leased,
        generator.integers(max(0, step - 3), step, len(leased)),
        generator.random(NUM_TASKS) < share,
        generator.random(NUM_TASKS) < barred,
    )


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    changes=st.sampled_from(SETTINGS),
    digits=st.sampled_from([1, 2, 8]),
    blend=st.sampled_from([0.0, 0.4, 1.0]),
    closed_share=st.sampled_from([0.0, 0.1, 0.4]),
)
def test_a_native_batch_is_the_composed_one(seed, changes, digits, blend, closed_share):
    generator = np.random.default_rng(seed)
    pool = Pool.synthetic(NUM_ENVIRONMENTS, TASKS_EACH)
    features, environment_of = make_world([TASKS_EACH] * NUM_ENVIRONMENTS, seed % 5, num_archetypes=9)
    config = SchedulerConfig(**{"batch_size": 12, "coverage_sweep": 0, **changes})
    step = int(generator.integers(1, 5))
    history, closed = drawn_history(pool, config, generator, step), drawn_closed(generator, step, closed_share)
    u = np.round(generator.random(NUM_TASKS) * 0.28, digits)  # few digits: many ties
    calibration = Calibration(np.array([0.05, 0.1, 0.2]), np.array([0.1, 0.1, 0.25]), blend, 0.29)
    selected, decayed = exposures(history, step), decayed_exposures(history, step, config.half_life)
    headroom = np.where(selected > 0, np.round(generator.uniform(0.6, 1, NUM_TASKS), 2), 1)
    made = Composer(features, pool.offsets, config).compose(
        step, seed, history.visits.before(step), selected, decayed, u, headroom, calibration, closed
    )
    visits = history.visits.before(step)
    expected = compose(
        Candidates(
            offsets=pool.offsets,
            score=calibration(u) / calibration.max_variance,
            variance=u,
            discount=config.exposure_scale / (config.exposure_scale + (selected if config.estimator == "paper" else decayed)) * headroom,
            headroom=headroom,
            exposures=decayed,
            seen=selected > 0,
            masked=closed.shut(NUM_TASKS),
            recent=recent_picks(
                np.concatenate([visits.row, closed.leased]),
                np.concatenate([visits.step, closed.since]),
                step,
                environment_of,
                NUM_ENVIRONMENTS,
                config.window_steps,
            ),
            similarity=ObservedGraph(features, environment_of).similarity,
            barred=closed.barred,
        ),
        Quotas(config.max_consecutive, config.max_per_environment_window, config.max_per_environment),
        mix_of(config, NUM_TASKS),
        Draws(seed, step),
    )
    if made is None:
        assert expected.relaxed or closed_share > 0.3, "Python composes where a quota is relaxed, or a lane needs a second round"
        return
    assert made.choices == expected.choices
    assert made.relaxed == expected.relaxed
