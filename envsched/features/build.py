"""A pool's features: prompt text and sets for tasks of one environment, topologies for tasks of different ones.

Letters: N tasks, D features, w weight of a part.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from envsched.config import FeatureConfig
from envsched.errors import ConfigError, StateError
from envsched.features.arrays import read_arrays, write_arrays
from envsched.features.features import Features
from envsched.features.sets import exact_block, hashed_block, unit_rows
from envsched.features.text import TextEncoder, build_encoder
from envsched.files import digest
from envsched.pool import Pool
from envsched.topology import Topology, extract_static, task_sets, topology_matrix

VERIFIER_COLUMNS = 256
_TEXT_FORMAT = "envsched text 1"
_log = logging.getLogger(__name__)


def build_features(
    pool: Pool,
    config: FeatureConfig = FeatureConfig(),
    topologies: Mapping[str, Topology] | None = None,
    cache: Path | None = None,
) -> Features:
    """Features of every task, in the pool's order of rows.

    The inner product of two rows of ``within`` is sum_p w_p s_p / sqrt(W_a W_b) over the parts p (text cosine, overlaps of
    tools, state keys and verifier tokens), W the summed weights of the parts a task has: the weighted mean of METHOD
    section 4 where both have all parts. ``cross`` holds the topology vector of each task.

    Args:
        topologies: by task key; none: the static extractor's.
        cache: folder that keeps text vectors by content and encoder.

    Raises:
        ConfigError: all weights are 0, the encoder is unknown, or a task has no topology.
    """
    weights = (config.text_weight, config.tool_weight, config.state_weight, config.verifier_weight)
    if not any(weights):
        raise ConfigError("features: text_weight, tool_weight, state_weight and verifier_weight are all 0; give one of them a weight")
    encoder = build_encoder(config.encoder)
    sets = task_sets(pool)
    parts = (
        encode_cached(encoder, [task.prompt for task in pool.tasks], cache),
        exact_block([s.tools for s in sets], pool.environment_of),
        exact_block([s.state_keys for s in sets], pool.environment_of),
        hashed_block([s.verifier_tokens for s in sets], VERIFIER_COLUMNS),
    )
    topologies = extract_static(pool) if topologies is None else topologies
    return Features(
        within=join_parts(parts, weights),
        cross=_topology_rows(pool, topologies),
        pool_fingerprint=pool.fingerprint,
        encoder=encoder.name,
    )


def join_parts(parts: Sequence[np.ndarray], weights: Sequence[float]) -> np.ndarray:
    """Parts side by side, each times sqrt(w), rows brought to unit norm: float64 [N, sum D]."""
    return unit_rows(np.concatenate([np.sqrt(w) * part for w, part in zip(weights, parts, strict=True)], axis=1))


def encode_cached(encoder: TextEncoder, texts: Sequence[str], cache: Path | None) -> np.ndarray:
    """``encoder.encode(texts)``, kept in ``cache`` under the digest of texts and encoder.

    A damaged file is made again; a folder that can't be written costs the time of the next call, and is logged.
    """
    if cache is None:
        return encoder.encode(texts)
    key = digest(_TEXT_FORMAT, encoder.name, *texts)
    file = Path(cache) / f"text-{key[:32]}.npz"
    try:
        header, arrays = read_arrays(file, _TEXT_FORMAT, ("vectors",))
        if header.get("key") == key and header.get("content") == digest(arrays["vectors"].tobytes()):
            return arrays["vectors"]
    except StateError:
        pass
    vectors = encoder.encode(texts)
    try:
        write_arrays(file, {"format": _TEXT_FORMAT, "key": key, "content": digest(vectors.tobytes())}, {"vectors": vectors})
    except OSError as error:  # a full disk or a read-only folder costs time at the next call, nothing else
        _log.warning("text features are not kept in %s: %s", cache, error.strerror)
    return vectors


def _topology_rows(pool: Pool, topologies: Mapping[str, Topology]) -> np.ndarray:
    missing = [task.key for task in pool.tasks if task.key not in topologies]
    if missing:
        raise ConfigError(
            f"{len(missing)} of {len(pool)} tasks have no topology, the first is {missing[0]!r}; extract them, or leave topologies out"
        )
    return topology_matrix(topologies[task.key] for task in pool.tasks)
