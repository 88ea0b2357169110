import numpy as np
import pytest

from envsched.config import SchedulerConfig
from envsched.history import History
from envsched.simulate.replay import default_steps, environment_means, hold_replays, scaled_config
from tests.baselines.rivals import record, small_pool
from tests.simulate.test_recorded import row, write

CONFIG = SchedulerConfig()


@pytest.mark.parametrize(("num_tasks", "size", "c1", "c3"), [(83, 16, 1, 3), (40, 8, 1, 2), (3, 1, 1, 1), (2000, 16, 1, 3)])
def test_batch_and_quotas_shrink_together(num_tasks, size, c1, c3):
    config = scaled_config(CONFIG, num_tasks, 4, quotas=True)
    assert (config.batch_size, config.max_per_environment, config.max_per_environment_window) == (size, c1, c3)
    free = scaled_config(CONFIG, num_tasks, 4, quotas=False)
    assert free.max_per_environment == size
    assert free.max_consecutive > 1000


def test_default_steps_by_hand():
    assert default_steps(127, 16) == 4  # 127 / 32, rounded up
    assert default_steps(20, 4) == 3
    assert default_steps(5000, 16) == 40


def test_environment_means_by_hand():
    """Environment 0 has seen .5 and 0 (rows 0, 1), environment 1 has seen .125 (row 4), environment 2 nothing."""
    pool = small_pool()
    history = History(pool)
    history.extend([record(pool, 0, 0, 0.0, 1.0), record(pool, 1, 0, 0.5, 0.5), record(pool, 4, 0, 0.25, 0.75)])
    mean, alone = environment_means(history, 1, 8.0, pool)
    pool_mean = (0.5 + 0 + 0.125) / 3
    assert mean[:4] == pytest.approx([0.0, 0.5, 0.25, 0.25])
    assert mean[4:] == pytest.approx([pool_mean] + [0.125] * 3 + [pool_mean] * 4)
    assert not alone.any()


@pytest.fixture
def file(tmp_path):
    """Tasks of environment a vary under every policy, those of b never."""
    rng = np.random.default_rng(0)
    rows = []
    for policy, p in (("weak", 0.3), ("strong", 0.6)):
        for i in range(20):
            rows.append(row(f"a{i}", policy, rng.binomial(1, p, 8).tolist()))
            rows.append(row(f"b{i}", policy, [1] * 8))
    return write(tmp_path / "rollouts.jsonl.gz", rows)


def test_a_replay_finds_the_environment_that_varies(file):
    tables = hold_replays(file, None, ["envsched", "mopps"], CONFIG, runs=2, steps_per_policy=6)
    assert [table["quotas"] for table in tables] == [True, False]
    for table in tables:
        assert (table["tasks"], table["environments"], table["policies"], table["rollouts_per_cell"]) == (40, 2, 2, 8)
        figures = table["schedulers"]
        assert set(figures) == {"envsched", "mopps", "random", "oracle"}
        assert figures["random"]["gain"]["mean"] == 0.0
        assert figures["envsched"]["spearman_observed"]["mean"] > 0.5
    free = tables[1]["schedulers"]  # the quotas share the picks out evenly between two environments: nothing to win under them
    assert free["oracle"]["captured_share"]["mean"] == 1.0
    assert free["envsched"]["minus_random"]["mean"] > 0.02
    assert free["envsched"]["mean_variance"]["mean"] > free["mopps"]["mean_variance"]["mean"]


def test_no_share_where_cells_are_small(tmp_path):
    rows = [row(f"{e}{i}", p, [0, 1, i % 2]) for e in "ab" for i in range(10) for p in ("weak", "strong")]
    tables = hold_replays(write(tmp_path / "small.jsonl", rows), None, ["mopps"], CONFIG, runs=1)
    assert all("captured_share" not in figures for table in tables for figures in table["schedulers"].values())
    assert {table["judged_by"] for table in tables} == {"the whole cell"}
    assert tables[0]["schedulers"]["mopps"]["mean_variance"]["mean"] == pytest.approx(1 / 3)
