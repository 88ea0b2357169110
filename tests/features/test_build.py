"""Features of whole pools: similarities against the documented formulas, caching, faults."""

import os
from pathlib import Path

import numpy as np
import pytest

from envsched.config import FeatureConfig
from envsched.errors import ConfigError
from envsched.features import Features, build_features
from envsched.features.text import HashedTfidf
from envsched.pool import Pool
from envsched.topology import extract_static, similarity, task_sets

TFIDF = FeatureConfig(encoder="tfidf", text_weight=2.0, tool_weight=1.0, state_weight=0.5, verifier_weight=0.0)


@pytest.fixture(scope="module")
def pool():
    return Pool.bundled()


@pytest.fixture(scope="module")
def features(pool):
    return build_features(pool, TFIDF)


def overlap(a, b):
    return len(a & b) / np.sqrt(len(a) * len(b)) if a and b else 0.0


def test_within_is_the_weighted_mean_of_its_parts(pool, features):
    sets = task_sets(pool)
    text = HashedTfidf().encode([task.prompt for task in pool.tasks])
    start, stop = pool.offsets[3], pool.offsets[4]
    assert stop - start >= 5
    for a in range(start, stop):
        for b in range(start, stop):
            parts = (
                (2.0, text[a] @ text[b]),
                (1.0, overlap(sets[a].tools, sets[b].tools)),
                (0.5, overlap(sets[a].state_keys, sets[b].state_keys)),
            )
            mean = sum(w * s for w, s in parts) / 3.5
            assert features.within[a].astype(float) @ features.within[b] == pytest.approx(mean, abs=1e-6)


def test_cross_is_the_topology_similarity(pool, features):
    topologies = extract_static(pool)
    for a in range(0, len(pool), 29):
        for b in range(0, len(pool), 31):
            expected = similarity(topologies[pool.tasks[a].key], topologies[pool.tasks[b].key])
            assert features.cross[a].astype(float) @ features.cross[b] == pytest.approx(expected, abs=1e-6)


def test_rows_and_names(pool, features):
    assert len(features) == len(pool)
    assert features.pool_fingerprint == pool.fingerprint
    assert features.encoder == HashedTfidf().name
    np.testing.assert_allclose(np.linalg.norm(features.within, axis=1), 1, atol=1e-5)


def test_the_same_pool_gives_the_same_digest_and_settings_change_it(pool, features, tmp_path):
    assert build_features(pool, TFIDF).digest == features.digest
    assert build_features(pool, TFIDF.model_copy(update={"tool_weight": 3.0})).digest != features.digest
    features.save(tmp_path / "f.npz")
    assert Features.load(tmp_path / "f.npz", pool).digest == features.digest


def test_synthetic_pools_have_features_too():
    pool = Pool.synthetic(4, 5)
    made = build_features(pool, FeatureConfig(encoder="tfidf"))
    assert made.within.shape[0] == 20
    assert made.within.any(axis=1).all()


def test_text_vectors_are_cached_by_content_and_repaired(pool, features, tmp_path):
    assert build_features(pool, TFIDF, cache=tmp_path).digest == features.digest
    (file,) = tmp_path.glob("text-*.npz")
    made = file.stat().st_mtime_ns
    assert build_features(pool, TFIDF, cache=tmp_path).digest == features.digest
    assert file.stat().st_mtime_ns == made
    file.write_bytes(file.read_bytes()[:1000])
    assert build_features(pool, TFIDF, cache=tmp_path).digest == features.digest
    assert file.stat().st_mtime_ns != made
    build_features(Pool.synthetic(2, 2), TFIDF, cache=tmp_path)
    assert len(list(tmp_path.glob("text-*.npz"))) == 2


def test_faults_are_named(pool):
    with pytest.raises(ConfigError, match="are all 0"):
        build_features(pool, FeatureConfig(encoder="tfidf", text_weight=0, tool_weight=0, state_weight=0, verifier_weight=0))
    topologies = extract_static(pool)
    del topologies[pool.tasks[7].key]
    with pytest.raises(ConfigError, match=pool.tasks[7].key):
        build_features(pool, TFIDF, topologies)


def test_the_real_slice():
    folder = os.environ.get("ENVSCHED_TESTDATA")
    if not folder:
        pytest.skip("ENVSCHED_TESTDATA is not set")
    pool = Pool.from_envscaler(Path(folder) / "envscaler")
    made = build_features(pool, FeatureConfig(encoder="tfidf"))
    assert made.within.shape[0] == len(pool) == 62
    assert made.within.any(axis=1).all()
    assert made.cross.any(axis=1).all()
