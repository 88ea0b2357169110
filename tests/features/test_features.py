"""The shared arrays: exact grid, digests, files."""

import numpy as np
import pytest

from envsched.errors import StateError
from envsched.features import Features
from envsched.features.features import GRID, on_grid
from envsched.pool import Pool
from tests.graph.worlds import unit


def random_features(seed=0, num_tasks=12, **names):
    generator = np.random.default_rng(seed)
    return Features(unit(generator.normal(size=(num_tasks, 30))), unit(generator.normal(size=(num_tasks, 9))), **names)


def test_inner_products_do_not_depend_on_the_order_of_summation():
    generator = np.random.default_rng(0)
    rows = on_grid(unit(generator.normal(size=(200, 900)))).astype(np.float64)
    shuffled = rows[:, generator.permutation(900)]
    assert np.array_equal(rows @ rows.T, shuffled @ shuffled.T)
    assert np.array_equal(rows @ rows.T, np.einsum("ad,bd->ab", rows[:, ::-1], rows[:, ::-1]))


def test_the_grid_moves_a_similarity_by_less_than_a_millionth():
    rows = unit(np.random.default_rng(0).normal(size=(100, 900)))
    rounded = on_grid(rows).astype(np.float64)
    assert np.abs(rows @ rows.T - rounded @ rounded.T).max() < 1e-6
    assert np.array_equal(on_grid(rounded), rounded)
    assert np.array_equal(rounded * GRID, np.rint(rounded * GRID))


def test_rows_must_be_unit_or_zero():
    Features(np.zeros((2, 3)), np.eye(2))
    with pytest.raises(AssertionError, match=r"within must be .* norm 1 or 0"):
        Features(np.full((2, 3), 0.5), np.eye(2))


def test_digest_follows_content_and_names():
    base = random_features()
    assert base.digest == random_features().digest
    others = [random_features(1), random_features(encoder="tfidf:1"), random_features(pool_fingerprint="p")]
    assert len({base.digest, *(other.digest for other in others)}) == 4


def test_arrays_can_not_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        random_features().within[0, 0] = 1


def test_save_and_load(tmp_path):
    pool = Pool.synthetic(3, 4)
    made = random_features(pool_fingerprint=pool.fingerprint, encoder="tfidf:1")
    made.save(tmp_path / "features.npz")
    loaded = Features.load(tmp_path / "features.npz", pool)
    assert loaded.digest == made.digest
    assert np.array_equal(loaded.within, made.within)
    assert np.array_equal(loaded.cross, made.cross)
    assert loaded.encoder == "tfidf:1"


def test_another_pool_a_damaged_and_a_missing_file_are_refused_by_name(tmp_path):
    pool, path = Pool.synthetic(3, 4), tmp_path / "features.npz"
    random_features(pool_fingerprint=pool.fingerprint).save(path)
    with pytest.raises(StateError, match=r"features\.npz: made for the pool with fingerprint"):
        Features.load(path, Pool.synthetic(3, 4, seed=1))
    raw = bytearray(path.read_bytes())
    path.write_bytes(raw[:200])
    with pytest.raises(StateError, match=r"features\.npz: not a whole"):
        Features.load(path, pool)
    raw[raw.index(b"within.npy") + 400] ^= 1
    path.write_bytes(raw)
    with pytest.raises(StateError, match=r"features\.npz"):
        Features.load(path, pool)
    with pytest.raises(StateError, match="no such file"):
        Features.load(tmp_path / "absent.npz", pool)
