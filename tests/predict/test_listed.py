"""The native pass over lists against the layer of PyG and numpy: the same bits."""

import numpy as np
import pytest

from envsched.config import SchedulerConfig
from envsched.graph import ObservedGraph
from envsched.history.statistics import Statistics
from envsched.predict import ListedPredictor, Predictor, build_predictor
from kernels import native
from tests.graph.worlds import make_world

pytestmark = pytest.mark.skipif(not native.is_built(), reason="no native library was built (python -m kernels.build)")
SIZES = [7, 1, 30, 12, 3, 20, 1, 2, 44]


def statistics(generator, observed, num_tasks):
    """Masses from a rollout that is nearly forgotten to several groups; variances with zeros among them."""
    groups, variance = np.zeros(num_tasks), np.zeros(num_tasks)
    groups[observed] = 2.0 ** -generator.uniform(-2, 40, len(observed))
    variance[observed] = generator.uniform(0, 0.28, len(observed)) * (generator.random(len(observed)) < 0.7)
    mean = generator.random(num_tasks)
    return Statistics(8 * groups, 8 * groups * variance, groups, 8 * groups * mean)


@pytest.mark.parametrize("relations", [("within", "cross"), ("within",), ("cross",)])
@pytest.mark.parametrize("rule", [{"prior": "pooled"}, {"prior": "residual"}, {"estimator": "paper"}], ids=["pooled", "residual", "paper"])
@pytest.mark.parametrize("num_observed", [0, 1, 60])
def test_every_term_is_the_same_to_the_last_bit(rule, relations, num_observed):
    features, environment_of = make_world(SIZES, seed=2, num_archetypes=20)
    generator = np.random.default_rng(num_observed)
    graph = ObservedGraph(features, environment_of, 3, 5)
    observed = generator.choice(len(features), num_observed, replace=False)
    graph.observe(observed)
    own, long, short = (statistics(generator, observed, len(features)) for _ in range(3))
    config = SchedulerConfig(relations=relations, **rule)
    reference, ours = (
        build_predictor(config, environment_of, len(SIZES), kind).predict(own, long, short, graph, 0.37)
        for kind in (Predictor, ListedPredictor)
    )
    np.testing.assert_array_equal(ours.variance, reference.variance)
    assert ours.terms.keys() == reference.terms.keys()
    for name, values in reference.terms.items():
        np.testing.assert_array_equal(ours.terms[name], values, err_msg=name)
