import json

import numpy as np
import pytest

from envsched.config import FeatureConfig, SchedulerConfig
from envsched.errors import ConfigError
from envsched.features import build_features
from envsched.simulate.hearing import Hearing, hold_replays, noise_ceiling
from envsched.simulate.line_up import parse_line_up, prepare
from envsched.simulate.protocol import Source, default_steps, recorded_features, scaled_config
from envsched.simulate.recorded import SplitPolicy, read_recordings
from envsched.simulate.replay import Account, ReplayJob, run_replay, top_quartiles
from envsched.types import Batch, Lane, Pick
from tests.simulate.test_recorded import row, write

CONFIG = SchedulerConfig()
TFIDF = FeatureConfig(encoder="tfidf")


def hold(path, line_up, runs=2, workers=1, journal=None, **asked):
    return hold_replays(Hearing(Source(str(path), features=TFIDF), tuple(line_up), CONFIG, runs, **asked), workers, journal)


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
    tables = hold(file, ["envsched", "mopps"], steps_per_policy=6)
    assert [table["about"]["quotas"] for table in tables] == [True, False]
    for table in tables:
        about = table["about"]
        assert (about["tasks"], about["environments"], about["policies"], about["rollouts_per_cell"]) == (40, 2, ["weak", "strong"], 8)
        figures = table["figures"]
        assert set(figures) == {"envsched", "mopps", "random", "oracle"}
        assert figures["random"]["gain"]["mean"] == 0.0
    free = tables[1]["figures"]  # the quotas share the picks out evenly between two environments: nothing to win under them
    assert free["oracle"]["captured_share"]["mean"] == 1.0
    assert free["envsched"]["minus_random"]["mean"] > 0.02
    assert free["envsched"]["mean_variance"]["mean"] > free["mopps"]["mean_variance"]["mean"]


def test_no_share_where_cells_are_small(tmp_path):
    rows = [row(f"{e}{i}", p, [0, 1, i % 2]) for e in "ab" for i in range(10) for p in ("weak", "strong")]
    tables = hold(write(tmp_path / "small.jsonl", rows), ["mopps"], runs=1)
    assert all("captured_share" not in figures for table in tables for figures in table["figures"].values())
    assert {table["about"]["judged_by"] for table in tables} == {"first picks, by the whole cell"}
    assert tables[0]["about"]["ceiling"] is None
    assert tables[0]["figures"]["mopps"]["mean_variance"]["mean"] == pytest.approx(1 / 3)


def test_whole_cells_judge_first_picks_under_a_policy_alone(tmp_path):
    """No quotas, the oracle: the same eight tasks at every step, and only the first step of each of two policies counts."""
    rng = np.random.default_rng(0)
    rows = [row(f"{e}{i:02}", policy, rng.random(4).tolist()) for e in "ab" for i in range(20) for policy in ("weak", "strong")]
    file = write(tmp_path / "rollouts.jsonl", rows)
    job = ReplayJob("oracle", Source(str(file), features=TFIDF), 0, False, True, 3, CONFIG)
    found = run_replay(job)
    (recording,) = read_recordings(file)
    truth = SplitPolicy(recording, 0, whole=True).judged
    best = np.sort(truth, axis=1)[:, -8:]
    assert sum(found["count"]) == 16
    assert sum(found["value"]) == pytest.approx(best.sum())
    assert np.isnan(found["steps"]["variance"]).tolist() == [False, True, True] * 2
    assert found["steps"]["variance"][3] == pytest.approx(best[1].mean())


def test_an_account_by_hand():
    """Three picks: judged .25 (in the top, exploited, score .5), nothing (no judge), 0 (covered)."""
    account = Account(np.zeros(2), np.zeros(2), np.zeros((2, 1)))
    lanes = (Lane.EXPLOITATION, Lane.EXPLOITATION, Lane.COVERAGE)
    picks = tuple(Pick(f"t{i}", "e", lane, score) for i, (lane, score) in enumerate(zip(lanes, (0.5, 0.9, 0.0), strict=True)))
    account.note(Batch(0, picks), np.array([0, 0, 1]), np.array([0.25, np.nan, 0.0]), top=0.2, v_max=0.5, block=0)
    found = account.to_dict()
    assert (found["value"], found["count"], found["heat"]) == ([0.25, 0.0], [1.0, 1.0], [[2.0], [1.0]])
    assert found["hits"] == 1
    assert found["steps"] == {"variance": [0.125], "environments": [2], "hits": [1], "exploited": [1]}
    count, score, realised = np.array(found["curve"])
    assert (count[10], score[10], realised[10]) == (1, 0.5, 0.5)
    assert count[0] == 1
    assert count.sum() == 2


def test_top_quartiles_by_hand():
    judged = np.array([[0.1, 0.2, 0.3, 0.4, 0.5], [0.0, 0.0, 0.0, 0.0, np.nan]])
    assert top_quartiles(judged).tolist() == [0.4, 1e-12]


def test_the_graph_mode_of_the_config_is_the_one_that_predicts(file):
    (recording,) = read_recordings(file)
    features = build_features(recording.pool, TFIDF)
    config = CONFIG.model_copy(update={"batch_size": 8})
    kinds = {
        mode: type(prepare("envsched", recording.pool, config.model_copy(update={"graph_mode": mode}), 0, features)._graph).__name__
        for mode in ("exact", "incremental_exact")
    }
    assert kinds == {"exact": "RebuiltGraph", "incremental_exact": "ObservedGraph"}


def test_without_topologies_no_task_resembles_one_of_another_environment(file):
    (recording,) = read_recordings(file)
    assert not recorded_features(recording, TFIDF, has_topologies=False).cross.any()
    assert recorded_features(recording, TFIDF, has_topologies=True).cross.any()


def test_the_ceiling_of_noise(tmp_path):
    """Cells of 400 rollouts of coins from p = 0 to 1/2 have hardly any noise; coins that are all alike have nothing else."""
    rng = np.random.default_rng(0)
    spread = [row(f"a{i:02}", "p", rng.binomial(1, i / 80, 400).tolist()) for i in range(40)]
    alike = [row(f"a{i:02}", "p", rng.binomial(1, 0.5, 8).tolist()) for i in range(40)]
    clear, noisy = (
        noise_ceiling(read_recordings(write(tmp_path / f"{name}.jsonl", rows))[0], 8) for name, rows in (("a", spread), ("b", alike))
    )
    assert clear["ceiling"] > 0.97
    assert noisy["reliability"] < 0.2
    assert clear["ceiling"] == pytest.approx((2 * clear["reliability"] / (1 + clear["reliability"])) ** 0.5)


def test_one_and_two_processes_give_the_same_and_a_killed_replay_goes_on(file, tmp_path):
    journal = tmp_path / "replay.json.runs.jsonl"
    one = hold(file, ["dps", "no_graph"], workers=1, journal=journal, steps_per_policy=2)
    assert hold(file, ["dps", "no_graph"], workers=2, steps_per_policy=2) == one
    lines = journal.read_text().splitlines()
    kept = lines[: len(lines) // 2]
    journal.write_text("\n".join(kept) + "\n" + lines[-1][:50])  # killed while a line was written
    assert hold(file, ["dps", "no_graph"], workers=1, journal=journal, steps_per_policy=2) == one
    again = journal.read_text().splitlines()
    assert again[: len(kept)] == kept
    assert {json.loads(line)["key"] for line in again} == {json.loads(line)["key"] for line in lines}


def test_an_unknown_scheduler_is_refused_with_the_names():
    with pytest.raises(ConfigError, match=r"unknown scheduler 'dbs'; did you mean 'dps'\? Known: envsched, paper.*oracle"):
        parse_line_up("envsched,dbs")
