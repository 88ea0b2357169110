"""The forecast equals the plain-Python reference over random pools, graphs and histories."""

import ast
import random
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from envsched.history import History
from tests.oracle import reference
from tests.oracle.worlds import World, random_similarity, random_visit, worlds

CLOSE = {"rtol": 0, "atol": 1e-6}


def assert_equal(world: World, step: int, found) -> None:
    prediction, score, report = found
    expected = reference.forecast(
        [visit for visit in world.visits if visit.step < step], world.environment_of, world.similarity, step, world.settings
    )
    np.testing.assert_allclose(prediction.variance, expected.u, **CLOSE)
    np.testing.assert_allclose(score, expected.score, **CLOSE)
    assert set(prediction.terms) == set(expected.terms)
    for name, values in expected.terms.items():
        np.testing.assert_allclose(prediction.terms[name], values, **CLOSE, err_msg=name)
    if world.settings.estimator == "envsched" and world.settings.prior == "pooled":
        assert abs(report["calibration/cross_weight"] - expected.cross_weight) < 1e-6
    assert report["calibration/pairs"] == len(expected.pairs)
    assert np.all((score >= 0) & (score <= 1))


@settings(max_examples=150, deadline=None)
@given(worlds())
def test_forecast_equals_the_reference(world):
    history = History(world.pool(), world.config())
    history.extend(world.records(history.pool))
    assert_equal(world, world.last, world.forecast(history).at(world.last))


@settings(max_examples=25, deadline=None)
@given(worlds(max_steps=6))
def test_every_step_of_a_growing_history_equals_the_reference(world):
    pool = world.pool()
    history = History(pool, world.config())
    forecast = world.forecast(history)
    records = world.records(pool)
    for step in sorted({record.step for record in records} | {world.last}):
        assert_equal(world, step, forecast.at(step))
        history.extend([record for record in records if record.step == step])


def test_reference_imports_nothing_but_the_standard_library():
    tree = ast.parse(Path(reference.__file__).read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= set(sys.stdlib_module_names)


@pytest.mark.parametrize("changes", [{}, {"estimator": "paper"}, {"prior": "residual"}], ids=["envsched", "paper", "residual"])
def test_a_long_history_under_the_default_settings_equals_the_reference(changes):
    """Enough pairs that the isotonic map has taken over and the cross relation counts in full."""
    source = random.Random(7)
    defaults = reference.Settings(**changes)
    sizes = [1, 6, 4, 9, 5]
    visits = [random_visit(source, task, step, defaults) for step in range(45) for task in source.sample(range(25), 21)]
    world = World(sizes, random_similarity(source, 25), visits, defaults, last=46)
    history = History(world.pool(), world.config())
    history.extend(world.records(history.pool))
    found = world.forecast(history).at(world.last)
    assert found[2]["calibration/blend"] == 1
    assert found[2]["calibration/pairs"] >= 512
    assert_equal(world, world.last, found)
