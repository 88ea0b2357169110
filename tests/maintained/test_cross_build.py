"""Cross-environment lists: through classes the same as without, and measured where they are approximate."""

import dataclasses

import numpy as np
import pytest

from envsched.errors import StateError
from envsched.features.features import on_grid
from envsched.graph.classes import topology_classes
from envsched.maintained import StaticLists, build_lists
from envsched.maintained.cross_build import Limits, build_cross
from kernels import reference
from tests.graph.worlds import make_world, unit

NOW = Limits(seconds=0)  # no time for an exact search

WORLDS = {
    "repeated topologies": ([50] * 21, 40),
    "one topology": ([30, 1, 40], 1),
    "environments larger than what a class offers": ([300, 2, 300, 1], 3),
    "tasks fewer than slots": ([2, 1, 3], 2),
    "one environment": ([25], 4),
    "a lone task": ([1], 1),
    "all different": ([20] * 6, None),
}


def vectors_of(sizes, num_archetypes):
    features, environment_of = make_world(sizes, seed=4, num_archetypes=num_archetypes)
    return features.cross, np.concatenate([[0], np.cumsum(sizes)]), environment_of


@pytest.mark.parametrize("world", WORLDS)
def test_lists_by_class_equal_the_reference(world):
    vectors, offsets, _ = vectors_of(*WORLDS[world])
    row, weight, about = build_cross(vectors, offsets, 12, Limits())
    expected_row, expected_weight = reference.cross_lists(vectors, offsets, 12, np.arange(len(vectors)))
    assert np.array_equal(row, expected_row)
    np.testing.assert_allclose(weight, expected_weight, atol=1e-7)
    assert (about["classes"], about["recall"], about["certified"]) == (len(np.unique(vectors, axis=0)), 1, 1)


def test_likeness_between_classes_may_tie_and_vanish():
    """Axes and their opposites: most similarities are exactly 0 or equal, and zero rows resemble nobody."""
    distinct = np.concatenate([np.eye(6), -np.eye(6), unit(np.ones((1, 6))), np.zeros((1, 6))])
    vectors = on_grid(distinct[np.random.default_rng(0).integers(len(distinct), size=400)])
    offsets = np.arange(0, 401, 8)
    row, weight, _ = build_cross(vectors, offsets, 12, Limits())
    expected_row, expected_weight = reference.cross_lists(vectors, offsets, 12, np.arange(400))
    assert np.array_equal(row, expected_row)
    np.testing.assert_allclose(weight, expected_weight, atol=1e-7)


def test_classes_are_equal_rows_in_order_of_their_first_tasks():
    vectors, _, _ = vectors_of([50] * 21, 40)
    classes = topology_classes(vectors)
    assert len(classes) == len(np.unique(vectors, axis=0))
    assert np.all(np.diff(classes.first) > 0)
    assert np.array_equal(vectors[classes.first[classes.class_of]], vectors)
    for number in range(len(classes)):
        members = classes.member[classes.pointer[number] : classes.pointer[number + 1]]
        assert np.array_equal(members, np.flatnonzero(classes.class_of == number))


@pytest.mark.parametrize("num_archetypes", [None, 200])
def test_without_time_the_recall_that_was_asked_for_is_measured(num_archetypes):
    """The truth is the exact search; the share of it found must be what the header says, as all tasks were probed."""
    vectors, offsets, _ = vectors_of([20] * 45, num_archetypes)
    row, weight, about = build_cross(vectors, offsets, 12, dataclasses.replace(NOW, recall=0.8))
    exact_row, exact_weight = reference.cross_lists(vectors, offsets, 12, np.arange(len(vectors)))
    found = (weight >= exact_weight[:, -1:]).sum() / exact_weight.size
    assert about["recall"] == pytest.approx(found)
    assert about["recall"] >= 0.8
    assert about["certified"] == 0
    assert 1 <= about["visited_cells"] <= about["cells"]
    environment_of = np.repeat(np.arange(45), 20)
    assert np.all(environment_of[row] != environment_of[:, None])
    assert num_archetypes is not None or not np.array_equal(row, exact_row)


def test_all_cells_visited_find_everything():
    vectors, offsets, _ = vectors_of([20] * 45, None)
    _, weight, about = build_cross(vectors, offsets, 12, dataclasses.replace(NOW, recall=1.0))
    _, expected = reference.cross_lists(vectors, offsets, 12, np.arange(len(vectors)))
    assert about["recall"] == 1
    np.testing.assert_allclose(weight, expected, atol=1e-6)


def test_lists_survive_their_file_and_stale_ones_are_refused(tmp_path):
    features, _ = make_world([20] * 10, num_archetypes=50)
    other, _ = make_world([20] * 10, seed=1, num_archetypes=50)
    offsets, path = np.arange(0, 201, 20), tmp_path / "lists.npz"
    for limits in (Limits(), NOW):
        lists = build_lists(features, offsets, 6, 12, limits)
        lists.save(path)
        loaded = StaticLists.load(path, features, offsets, 6, 12)
        assert (loaded.digest, loaded.about) == (lists.digest, lists.about)
        assert np.array_equal(loaded.cross_row, lists.cross_row)
        for changed in ((other, offsets, 6, 12), (features, np.arange(0, 201, 10), 6, 12), (features, offsets, 6, 11)):
            with pytest.raises(StateError, match=r"lists\.npz is stale: its lists were built from other features"):
                StaticLists.load(path, *changed)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(StateError, match=r"lists\.npz: not a whole"):
        StaticLists.load(path, features, offsets, 6, 12)
