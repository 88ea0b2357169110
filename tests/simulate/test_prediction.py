import numpy as np
import pytest

from envsched.config import FeatureConfig, SchedulerConfig
from envsched.history import History
from envsched.simulate.prediction import (
    FOLDS,
    PredictionJob,
    assemble,
    calibration_curve,
    environment_means,
    estimators_of,
    fold_of,
    prediction_figures,
    run_prediction,
    top_hits,
)  # fmt: skip
from envsched.simulate.protocol import Source
from tests.baselines.rivals import record, small_pool
from tests.simulate.test_recorded import row, write


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


def test_every_task_is_hidden_in_one_fold():
    sizes = np.bincount(fold_of(23, seed=3), minlength=FOLDS)
    assert sizes.sum() == 23
    assert sizes.max() - sizes.min() <= 1
    assert (fold_of(23, 3) != fold_of(23, 4)).any()


def test_estimators_of_a_line_up():
    assert estimators_of(["envsched:half_life=24", "dps", "coverage_only", "no_graph"]) == ["envsched:half_life=24", "no_graph"]


@pytest.fixture
def folds(tmp_path):
    """Environment a varies, b does not, c has one task."""
    rng = np.random.default_rng(0)
    rows = [row("c0", policy, [0, 1, 1, 0]) for policy in ("weak", "strong")]
    for policy, p in (("weak", 0.3), ("strong", 0.6)):
        for i in range(15):
            rows.append(row(f"a{i:02}", policy, rng.binomial(1, p, 8).tolist()))
            rows.append(row(f"b{i:02}", policy, [1.0] * 8))
    source = Source(str(write(tmp_path / "rollouts.jsonl", rows)), features=FeatureConfig(encoder="tfidf"))
    jobs = [PredictionJob("envsched", source, 1, fold, None, SchedulerConfig()) for fold in range(FOLDS)]
    return source.open()[0], [run_prediction(job) for job in jobs]


def test_hidden_tasks_are_asked_about_once_and_never_shown(folds):
    recording, found = folds
    place = fold_of(len(recording.pool), 1)
    for fold, answers in enumerate(found):
        for p in range(2):
            asked = np.array([value is not None for value in answers["unobserved"][p]])
            assert (asked == (place == fold)).all()
            visited = np.array([value is not None for value in answers["observed"][p]])
            assert not (visited & asked).any()
            assert visited.any() == (p > 0)  # before the first policy nothing is visited


def test_predictions_find_the_environment_that_varies(folds):
    recording, found = folds
    run = assemble(found, 1)
    assert run["unobserved"].shape == (2, 31)
    assert not np.isnan(run["unobserved"]).any()
    place, p, i = fold_of(31, 1), 1, 7
    assert run["unobserved"][p, i] == found[place[i]]["unobserved"][p][i]
    assert run["mean_observed"][p, i] == pytest.approx(found[(place[i] + 1) % FOLDS]["mean_observed"][p][i], nan_ok=True)
    truth = np.array([[cell.var(ddof=1) for cell in cells] for cells in recording.cells])
    figures = prediction_figures([run], truth, recording.pool.environment_of)
    assert figures["unobserved"]["spearman"]["mean"] > 0.6
    assert figures["unobserved"]["hit_rate"]["mean"] > figures["unobserved"]["chance"]["mean"]
    curve = figures["unobserved"]["calibration"]
    assert curve["realised"][-1] > curve["realised"][0]


def test_tasks_alone_in_their_environment_are_left_out():
    """Ten tasks of one environment and a lonely one: only the ten decide."""
    truth = np.arange(11.0)[None] / 40
    predicted = truth.copy()
    predicted[0, 10] = 0.0  # wrong about the lonely one alone
    run = {f"{kind}{question}": predicted for kind in ("", "mean_") for question in ("unobserved", "observed")}
    figures = prediction_figures([run], truth, np.array([0] * 10 + [1]))
    assert figures["unobserved"]["spearman"]["mean"] == pytest.approx(1.0)
    assert figures["unobserved"]["minus_environment"]["mean"] == 0.0


def test_top_hits_by_hand():
    """Eight tasks, a quarter is two: one above the edge, two level with it for one place, one of these in the top."""
    predicted = np.array([0.9, 0.5, 0.5, 0.1, 0.1, 0.1, 0.1, 0.1])
    is_top = np.array([1, 1, 0, 0, 0, 0, 0, 1], dtype=bool)
    assert top_hits(predicted, is_top, np.ones((1, 8), dtype=int)) == pytest.approx([(1 + 0.5) / 2])


def test_top_hits_of_repeated_tasks_are_those_of_a_longer_list():
    rng = np.random.default_rng(0)
    predicted, is_top, times = rng.integers(0, 6, 12) / 6, rng.random(12) < 0.3, rng.integers(0, 4, (20, 12))
    for counts, found in zip(times, top_hits(predicted, is_top, times), strict=True):
        long, quarter = np.repeat(np.arange(12), counts), max(1, counts.sum() // 4)
        shuffled = [long[rng.permutation(len(long))] for _ in range(3000)]
        hits = [is_top[rows[np.argsort(-predicted[rows], kind="stable")[:quarter]]].mean() for rows in shuffled]
        assert found == pytest.approx(np.mean(hits), abs=0.03)


def test_calibration_by_hand():
    predicted = np.concatenate([np.arange(20) / 20, [np.nan]])
    curve = calibration_curve(predicted, np.concatenate([2 * np.arange(20) / 20, [9.0]]))
    assert curve["slope"] == pytest.approx(2.0)
    assert curve["predicted"][:2] == pytest.approx([0.025, 0.125])
    assert curve["realised"][-1] == pytest.approx(1.85)
    assert calibration_curve(predicted[:5], predicted[:5])["slope"] is None
