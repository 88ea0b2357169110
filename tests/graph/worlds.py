"""Random features with environments of many sizes, and lists by brute force in plain Python."""

from fractions import Fraction

import numpy as np

from envsched.features import Features


def unit(values: np.ndarray) -> np.ndarray:
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def make_world(sizes, seed=0, within_features=24, cross_features=16, num_archetypes=None):
    """Features and environment_of; tasks of one environment resemble each other, topologies repeat with ``num_archetypes``."""
    generator = np.random.default_rng(seed)
    environment_of = np.repeat(np.arange(len(sizes)), sizes)
    centre = generator.normal(size=(len(sizes), within_features))
    within = unit(centre[environment_of] + generator.normal(size=(environment_of.size, within_features)))
    if num_archetypes is None:
        cross = unit(generator.normal(size=(environment_of.size, cross_features)) + 0.5)
    else:
        cross = unit(generator.normal(size=(num_archetypes, cross_features)) + 0.5)[
            generator.integers(num_archetypes, size=environment_of.size)
        ]
    return Features(within, cross), environment_of


def exact_similarity(a: np.ndarray, b: np.ndarray) -> Fraction:
    """Inner product in rational arithmetic, clipped to [0, 1]."""
    total = sum((Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a, b, strict=True)), Fraction(0))
    return min(max(total, Fraction(0)), Fraction(1))


def brute_force_lists(features, environment_of, observed, num_within, num_cross):
    """Edges (source, target, weight) of both relations, in order."""
    edges = {"within": [], "cross": []}
    for target in range(len(environment_of)):
        found = {"within": [], "cross": []}
        for source in sorted(observed):
            if source == target:
                continue
            name = "within" if environment_of[source] == environment_of[target] else "cross"
            vectors = features.within if name == "within" else features.cross
            weight = exact_similarity(vectors[target], vectors[source])
            if weight > 0:
                found[name].append((-weight, source))
        for name, slots in (("within", num_within), ("cross", num_cross)):
            edges[name] += [(source, target, float(-weight)) for weight, source in sorted(found[name])[:slots]]
    return edges


def edges_of(relation):
    source, target = relation.edge_index.tolist()
    return list(zip(source, target, relation.edge_weight.tolist(), strict=True))


def assert_same_graph(a, b):
    for name in ("within", "cross"):
        mine, theirs = getattr(a, name), getattr(b, name)
        assert mine.edge_index.equal(theirs.edge_index), name
        assert mine.edge_weight.equal(theirs.edge_weight), name
