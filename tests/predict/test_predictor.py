import numpy as np
import pytest

from envsched.config import SchedulerConfig
from envsched.history import History, statistics
from envsched.predict import build_predictor, largest_variance
from tests.history.pools import record, small_pool
from tests.predict.graphs import BruteForceGraph

POOL = small_pool()  # a0 a1 a2 b0 c0 c1


def predict(*records, step: int, similarity=None, **settings):
    config = SchedulerConfig(**settings)
    history = History(POOL, config)
    history.extend(records)
    similarity = np.zeros((6, 6)) if similarity is None else similarity
    graph = BruteForceGraph(similarity, POOL.environment_of, config.num_within, config.settled().num_cross)
    known = history.visits.before(step)
    graph.observe(np.unique(known.row[~np.isnan(known.variance)]))
    predictor = build_predictor(config, POOL.environment_of, 3)
    own = statistics(history, step, predictor.half_life, predictor.unit, predictor.visit_half_life)
    long = statistics(history, step, config.half_life, predictor.unit)
    short = statistics(history, step, config.short_half_life, predictor.unit)
    return predictor.predict(own, long, short, graph, 1.0)


@pytest.mark.parametrize(("rule", "times"), [({"prior": "pooled"}, 1), ({"estimator": "paper"}, 1), ({"optimism": 0.25}, 1.25)])
@pytest.mark.parametrize(("settings", "expected"), [({}, 1 / 12), ({"prior_variance": 0.05}, 0.05), ({"reward_high": 3.0}, 9 / 12)])
def test_before_any_evidence_everything_is_the_prior_variance(rule, times, settings, expected):
    prediction = predict(step=0, **rule, **settings)
    np.testing.assert_allclose(prediction.variance, times * expected)
    assert prediction.variance.dtype == np.float64
    assert all(values.shape == (6,) and np.isfinite(values).all() for values in prediction.terms.values())


def test_own_history_gains_weight_by_rollouts_or_by_groups():
    eight = record("a0", 3, *[0.0, 1.0] * 4)  # v = 2/7
    g = 1 / 12  # nobody else was seen
    rollouts = predict(eight, step=3 + 40, prior="pooled")
    assert rollouts.variance[0] == pytest.approx((4 * 2 / 7 + 2 * g) / (4 + 2))
    own = 0.5 * 2 / 7
    environment = (own + 2 * 2 / 7) / (0.5 + 2)  # the paper's means hold the task's own evidence
    groups = predict(eight, step=3 + 8, estimator="paper", decline_weight=0.0)
    assert groups.variance[0] == pytest.approx((own + 2 * environment) / (0.5 + 2))


def test_a_later_visit_takes_more_from_an_earlier_one_than_steps_do():
    spread, flat = [0.0, 1.0] * 4, [0.5] * 8  # v = 2/7, 0
    seen = predict(record("a0", 0, *spread), record("a0", 40, *flat), record("c1", 0, *spread), step=40 + 40, decline_weight=0.0).terms
    earlier, later = 8 * 2 ** (-2 - 1 / 3), 8 * 2**-1.0
    assert seen["own_mass"][0] == pytest.approx(earlier + later)
    assert seen["own"][0] == pytest.approx(earlier * 2 / 7 / (earlier + later))
    assert seen["own_mass"][5] == pytest.approx(8 * 2**-2.0)


def test_a_high_mean_costs_rank_and_not_the_prediction():
    easy, hard = [1.0] * 6 + [0.5] * 2, [0.0] * 6 + [0.5] * 2  # of one variance, means 7/8 and 1/8
    made = predict(record("a0", 0, *easy), record("a1", 0, *hard), step=0 + 40, own_shrinkage=2)
    m = (4 * 7 / 8 + 2 / 2) / (4 + 2)
    assert made.terms["headroom"].tolist() == pytest.approx([np.exp(0.5 - m), 1, 1, 1, 1, 1])
    assert made.variance[0] == pytest.approx(made.variance[1])
    scaled = predict(record("a0", 0, *(2 * r - 1 for r in easy)), step=40, reward_low=-1.0, own_shrinkage=2)
    assert scaled.terms["headroom"][0] == pytest.approx(np.exp(0.5 - m))
    assert predict(record("a0", 0, *easy), step=40, estimator="paper").terms["headroom"].tolist() == [1.0] * 6


def test_evidence_flows_along_each_relation():
    similarity = np.zeros((6, 6))
    similarity[0, 1] = similarity[1, 0] = 0.5  # within a
    similarity[0, 4] = similarity[4, 0] = 0.25  # across
    seen = [record("a1", 0, *[0.0, 1.0] * 4), record("c0", 0, *[0.5] * 8)]
    both = predict(*seen, step=1, similarity=similarity, prior="pooled").terms
    assert (both["within"][0], both["cross"][0]) == (pytest.approx(2 / 7), 0.0)
    c = 2 ** (-1 / 8)
    assert (both["within_mass"][0], both["cross_mass"][0]) == (pytest.approx(0.5 * c), pytest.approx(0.25 * c))
    alone = predict(*seen, step=1, similarity=similarity, prior="pooled", relations=("within",)).terms
    assert (alone["within_mass"][0], alone["cross_mass"][0]) == (pytest.approx(0.5 * c), 0.0)
    none = predict(*seen, step=1, similarity=similarity, prior="pooled", relations=()).terms
    np.testing.assert_allclose(none["prior"], none["environment"])


def test_neighbours_tell_what_they_show_beyond_their_environments():
    similarity = np.zeros((6, 6))
    similarity[0, 4] = similarity[4, 0] = 0.5  # a0 and c0, across
    spread, flat = [0.0, 1.0] * 4, [0.5] * 8  # v = 2/7, 0
    seen = [record("a1", 0, *flat), record("c0", 0, *spread), record("c1", 0, *flat)]
    made = predict(*seen, step=50, similarity=similarity, prior="residual", graph_shrinkage=2, optimism=0.5, optimism_spread=0.4).terms
    v = 2 / 7
    environment = (0 + 2 * v / 3) / (1 + 2)  # of a0: a1, shrunk to the mean of all three, however long ago they were seen
    beyond = v - (0 + 2 * 0 / 2) / (1 + 2)  # c0, against c1 and the mean of the two others, both 0
    across = 0.5 * beyond / (0.5 + 5)
    assert made["environment"][0] == pytest.approx(environment)
    assert (made["cross"][0], made["cross_mass"][0]) == (pytest.approx(environment + across), pytest.approx(0.5))
    assert (made["within"][0], made["within_mass"][0]) == (pytest.approx(environment), 0.0)
    assert made["prior"][0] == pytest.approx(1.5 * (environment + across) + 0.4 * np.std([0, v, 0]))


def test_residuals_never_make_a_prior_negative_and_the_papers_rule_has_none():
    similarity = np.zeros((6, 6))
    similarity[3, 4] = similarity[4, 3] = 1.0  # b0, alone in its environment, and c0, far below its own
    spread, flat = [0.0, 1.0] * 4, [0.5] * 8
    seen = [record("c0", 0, *flat), record("c1", 0, *spread), record("a1", 0, *flat), record("a2", 0, *flat)]
    settings = {
        "similarity": similarity,
        "prior": "residual",
        "graph_shrinkage": 2,
        "optimism": 0.0,
        "optimism_spread": 0.0,
        "residual_shrinkage": 0.01,
    }
    made = predict(*seen, step=1, **settings).terms
    assert made["cross"][3] < 0
    assert made["prior"][3] == 0
    paper = [predict(*seen, step=1, estimator="paper", similarity=similarity, prior=name).variance for name in ("pooled", "residual")]
    np.testing.assert_array_equal(*paper)


def test_the_guard_is_one_sided():
    spread, flat = [0.0, 1.0] * 4, [0.5] * 8
    falling = predict(*(record("a0", s, *(spread if s < 6 else flat)) for s in range(10)), step=10).terms["guard"]
    rising = predict(*(record("a0", s, *(flat if s < 6 else spread)) for s in range(10)), step=10).terms["guard"]
    assert 0.5 <= falling[0] < 0.9
    assert rising[0] == 1
    assert falling[1:].tolist() == [1.0] * 5
    off = predict(*(record("a0", s, *(spread if s < 6 else flat)) for s in range(10)), step=10, decline_weight=0.0)
    assert off.terms["guard"].tolist() == [1.0] * 6


def test_a_group_smaller_than_g_cannot_exceed_the_largest_variance():
    prediction = predict(*(record("a0", s, 0.0, 1.0) for s in range(20)), step=20)  # v = .5 with two rollouts
    assert prediction.variance[0] == pytest.approx(2 / 7)
    assert prediction.terms["own"][0] == pytest.approx(0.5)


def test_the_guard_cuts_what_the_clip_left():
    pairs = [[0.0, 1.0]] * 12 + [[0.0, 0.98]] * 2  # v = .5, then a little less: fused stays above the largest variance
    prediction = predict(*(record("a0", s, *rewards) for s, rewards in enumerate(pairs)), step=14)
    guard = prediction.terms["guard"][0]
    assert prediction.terms["own"][0] * guard > 2 / 7
    assert guard < 1
    assert prediction.variance[0] == pytest.approx(2 / 7 * guard, rel=1e-12)


@pytest.mark.parametrize(
    ("G", "ddof", "high", "expected"),
    [(8, 1, 1.0, 2 / 7), (5, 1, 1.0, 0.3), (2, 1, 1.0, 0.5), (8, 0, 1.0, 0.25), (5, 0, 1.0, 0.25), (8, 1, 3.0, 9 * 2 / 7)],
)
def test_largest_variance(G, ddof, high, expected):
    found = largest_variance(SchedulerConfig(group_size=G, ddof=ddof, reward_high=high))
    assert found == pytest.approx(expected)
    if ddof or G % 2 == 0:
        assert found == pytest.approx(np.var([0.0] * (G // 2) + [high] * (G - G // 2), ddof=ddof))
