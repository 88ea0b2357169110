"""Lists from scratch through FAISS, exact with a certificate: the reference that the incremental builder must equal.

FAISS ranks in float32 and breaks ties as it likes. So each query fetches more than K, the fetched pairs are scored again
in exact float64, and a list is accepted once its K-th similarity exceeds everything that was not fetched:

    s_K > (last fetched float32 product) + eps,    eps = (D + 1) 2^-24 / (1 - (D + 1) 2^-24),

the error bound of a float32 inner product of unit rows. Queries that fail fetch four times as many, up to all.
Letters: Q queries, S sources, D features, K slots.
"""

import numpy as np

from envsched.features import Features
from envsched.graph.index import nearest
from envsched.graph.lists import NeighbourLists, best
from envsched.graph.similarity import pair_products
from envsched.progress import track

_SPARE = 12  # fetched beyond K at first
_QUERIES = 4096  # queries a block; FAISS is slow below 1024


def build_within(features: Features, environment_of: np.ndarray, observed: np.ndarray, num_slots: int) -> NeighbourLists:
    """For every task the best observed other tasks of its environment."""
    lists = NeighbourLists(len(features), num_slots)
    environments = np.unique(environment_of[observed]) if num_slots else []
    for environment in track(environments, "within-environment graph", total=len(environments)):
        start, stop = np.searchsorted(environment_of, [environment, environment + 1])
        sources = observed[np.searchsorted(observed, start) : np.searchsorted(observed, stop)]
        _fill(lists, features.within, np.arange(start, stop), sources, lambda target, source: target != source)
    return lists


def build_cross(features: Features, environment_of: np.ndarray, observed: np.ndarray, num_slots: int) -> NeighbourLists:
    """For every task the best observed tasks of other environments."""
    lists = NeighbourLists(len(features), num_slots)
    starts = range(0, len(features), _QUERIES) if num_slots and observed.size else []
    for start in track(starts, "cross-environment graph", total=len(starts)):
        targets = np.arange(start, min(start + _QUERIES, len(features)))
        _fill(lists, features.cross, targets, observed, lambda target, source: environment_of[target] != environment_of[source])
    return lists


def _fill(lists: NeighbourLists, vectors: np.ndarray, targets: np.ndarray, sources: np.ndarray, may_lend) -> None:
    """Write the certified lists of ``targets``; ``may_lend(target, source)`` says which pairs count."""
    num_slots = lists.source.shape[1]
    error = _float32_error(vectors.shape[1])
    fetch = min(len(sources), num_slots + _SPARE)
    pending = targets
    while pending.size:
        product, position = nearest(vectors[pending], vectors[sources], fetch)
        source = sources[position]
        target = np.broadcast_to(pending[:, None], source.shape)
        weight = np.where(may_lend(target, source), pair_products(vectors, target, source), 0)
        lists.source[pending], lists.weight[pending] = best(source, weight, num_slots)
        unseen = product[:, -1].astype(np.float64) + error
        certified = (fetch == len(sources)) | (unseen <= 0) | (lists.weight[pending, -1] > unseen)
        pending = pending[~certified]
        fetch = min(len(sources), 4 * fetch)


def _float32_error(num_features: int) -> float:
    unit = (num_features + 1) * 2.0**-24
    return 1.01 * unit / (1 - unit)  # 1.01: norms may exceed 1 by the rounding to the grid
