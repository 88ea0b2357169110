"""What the reference can't show: going on equals starting anew, late records, evidence from the future."""

import numpy as np
import pytest
from hypothesis import given, settings

from envsched.config import SchedulerConfig
from envsched.features import Features
from envsched.graph import ObservedGraph
from envsched.history import History
from envsched.pool import Pool
from envsched.predict import Forecast, build_predictor
from envsched.types import RolloutRecord, Status
from tests.graph.worlds import make_world
from tests.oracle.worlds import World, worlds
from tests.predict.graphs import BruteForceGraph


def assert_same(found, expected) -> None:
    np.testing.assert_array_equal(found[0].variance, expected[0].variance)
    np.testing.assert_array_equal(found[1], expected[1])
    for name, values in expected[0].terms.items():
        np.testing.assert_array_equal(found[0].terms[name], values)
    assert found[2] == expected[2]


def anew(world: World, records, step: int):
    history = History(world.pool(), world.config())
    history.extend(records)
    return world.forecast(history).at(step)


@settings(max_examples=25, deadline=None)
@given(worlds(max_steps=6))
def test_going_on_and_back_equals_starting_anew_bit_for_bit(world):
    pool = world.pool()
    records = world.records(pool)
    history = History(pool, world.config())
    forecast = world.forecast(history)
    steps = sorted({record.step for record in records})
    for step in steps:
        assert_same(forecast.at(step), anew(world, [r for r in records if r.step < step], step))
        history.extend([r for r in records if r.step == step])
    for step in (*steps[::-1], world.last):
        # records of later steps are there now, and must not be seen
        assert_same(forecast.at(step), anew(world, records, step))
        assert_same(forecast.at(step), anew(world, [r for r in records if r.step < step], step))


@settings(max_examples=25, deadline=None)
@given(worlds(max_steps=6))
def test_a_late_record_changes_the_past(world):
    pool = world.pool()
    records = world.records(pool)
    history = History(pool, world.config())
    forecast = world.forecast(history)
    for record in records:  # shuffled: most come late
        forecast.at(world.last)
        history.add(record)
    assert_same(forecast.at(world.last), anew(world, records, world.last))


@pytest.mark.parametrize("estimator", ["envsched", "paper"])
def test_the_real_graph_gives_what_brute_force_gives(estimator):
    """ObservedGraph in the place of the brute-force graph: same lists, same predictions."""
    generator = np.random.default_rng(5)
    pool = Pool.synthetic(num_environments=6, tasks_per_environment=5)
    features = Features(_rows(generator, len(pool)), _rows(generator, len(pool)))
    config = _config(estimator)
    real = ObservedGraph(features, pool.environment_of, 3, 4)
    same = pool.environment_of[:, None] == pool.environment_of[None, :]
    products = [
        np.asarray(values, dtype=np.float64) @ np.asarray(values, dtype=np.float64).T for values in (features.within, features.cross)
    ]
    brute = BruteForceGraph(np.where(same, *products), pool.environment_of, 3, 4)
    history = History(pool, config)
    forecasts = [Forecast(build_predictor(config, pool.environment_of, 6), history, graph, config) for graph in (real, brute)]
    for step in range(12):
        (real_prediction, real_score, real_report), (prediction, score, report) = (forecast.at(step) for forecast in forecasts)
        np.testing.assert_allclose(real_prediction.variance, prediction.variance, rtol=0, atol=1e-12)
        np.testing.assert_allclose(real_score, score, rtol=0, atol=1e-9)
        assert real_report == pytest.approx(report)
        history.extend(_group(pool, row, step, generator) for row in generator.choice(len(pool), 8, replace=False))
    assert report["calibration/blend"] == 1
    assert prediction.terms["cross_mass"].all()
    assert prediction.terms["within_mass"].any()


def test_a_task_that_differs_is_found():
    """Over many steps the forecast ranks tasks that really have variance first, and says so."""
    generator = np.random.default_rng(6)
    pool = Pool.synthetic(num_environments=5, tasks_per_environment=4)
    config = _config("envsched")
    graph = BruteForceGraph(np.zeros((20, 20)), pool.environment_of, 3, 4)
    history = History(pool, config)
    forecast = Forecast(build_predictor(config, pool.environment_of, 5), history, graph, config)
    for step in range(20):
        rows = generator.choice(20, 8, replace=False)
        history.extend(_group(pool, row, step, generator, solved=row % 2 == 0) for row in rows)
    _, score, report = forecast.at(20)
    assert score[1::2].min() > score[0::2].max()
    assert report["calibration/spearman"] > 0.6
    assert report["calibration/top_quartile_hit_rate"] > 1.5 * report["calibration/top_quartile_chance"]


def _config(estimator: str) -> SchedulerConfig:
    return SchedulerConfig(estimator=estimator, num_within=3, num_cross=4, calibration_start=20, calibration_full=40)


def _group(pool: Pool, row: int, step: int, generator: np.random.Generator, solved: bool = False) -> RolloutRecord:
    rewards = (1.0,) * 8 if solved else tuple(generator.integers(0, 5, 8) / 4)
    return RolloutRecord(pool.tasks[row].key, step, rewards, (Status.OK,) * 8, step)


def _rows(generator: np.random.Generator, count: int) -> np.ndarray:
    rows = generator.normal(size=(count, 6)) + 0.5
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


class Walk(Forecast):
    """Notes which steps are walked."""

    walked: list[int]

    def _start(self):
        self.walked = []
        super()._start()

    def _replay(self, step):
        self.walked.append(step)
        super()._replay(step)


def test_steps_whose_records_come_one_batch_late_are_walked_once_each():
    pool, config = Pool.synthetic(6, 5), SchedulerConfig()
    features, _ = make_world([5] * 6)
    histories = History(pool, config), History(pool, config)
    late, prompt = (
        Walk(build_predictor(config, pool.environment_of, 6), history, ObservedGraph(features, pool.environment_of), config)
        for history in histories
    )
    first = late.walked
    for step in range(6):
        late.at(step)
        if step:
            histories[0].extend(records_of(pool, step - 1))
        histories[1].extend(records_of(pool, step))
    assert late.walked == [0, 1, 2, 3]
    assert late.walked is first, "it never started again"
    histories[0].extend(records_of(pool, 5))
    assert_same(late.at(6), prompt.at(6))


def records_of(pool, step):
    rewards = np.random.default_rng(step).integers(0, 2, (8, 4)).astype(float).tolist()
    return [RolloutRecord(pool.tasks[(7 * step + i) % 30].key, step, tuple(r), (Status.OK,) * 4, step) for i, r in enumerate(rewards)]
