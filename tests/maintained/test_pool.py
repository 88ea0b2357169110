"""The fast step against the rooms it stands in for: the timeline's predictions and the composed batch."""

import numpy as np
import pytest

from envsched.config import SchedulerConfig
from envsched.errors import RecordError
from envsched.features import Features
from envsched.graph import Relation
from envsched.history import History
from envsched.maintained import Closed, LargePool, StaticLists, build_lists, build_stream
from envsched.maintained.pool import group_moments
from envsched.pool import Pool
from envsched.predict import Forecast, build_predictor
from envsched.select import Draws, Quotas, compose, mix_of
from envsched.types import RolloutRecord, Status
from kernels import native, state
from tests.graph.worlds import make_world

pytestmark = pytest.mark.skipif(not native.is_built(), reason="no native library was built (python -m kernels.build)")


class FixedGraph:
    """Static lists in the place of observed ones."""

    def __init__(self, lists: StaticLists) -> None:
        self._lists = lists

    @property
    def within(self) -> Relation:
        return self._lists.relation("within")

    @property
    def cross(self) -> Relation:
        return self._lists.relation("cross")

    def observe(self, rows) -> None:
        pass

    def reset(self) -> None:
        pass


def large_pool(sizes, config, seed=0, **world):
    features, environment_of = make_world(sizes, seed, **world)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    lists = build_lists(features, offsets, config.num_within, config.num_cross)
    return LargePool(features, offsets, lists.carriers(), config, seed), environment_of


@pytest.mark.parametrize("rule", [{"prior": "pooled"}, {"estimator": "paper"}, {"prior": "residual"}], ids=["pooled", "paper", "residual"])
def test_700_steps_equal_the_timeline_in_double_precision(rule):
    """Two rebases of the sums lie on the way (every 256 steps); relative error under 1e-6, as the backend promises. Residuals are told
    anew here whenever they have moved at all."""
    num_steps, batch = 700, 8
    config = SchedulerConfig(batch_size=batch, num_within=3, num_cross=4, **rule).settled(sums=True)
    source = Pool.synthetic(9, 7)
    large, environment_of = large_pool([7] * 9, config, num_archetypes=20)
    large.evidence.state.told_within = 0.0
    history = History(source, config)
    lists = build_lists(large.features, large.evidence.offsets, config.num_within, config.num_cross)
    forecast = Forecast(build_predictor(config, environment_of, 9), history, FixedGraph(lists), config)
    generator = np.random.default_rng(0)
    worst = 0.0
    for step in range(num_steps):
        if step % 50 == 0 or step in (1, 2, 3, 255, 256, 257, 513) or step == num_steps - 1:
            prediction, score, _ = forecast.at(step)
            ours = large.predict(step)
            worst = max(worst, np.max(np.abs(ours - prediction.variance) / np.maximum(prediction.variance, 1e-3)))
            calibration = large.pairs.calibration()
            np.testing.assert_allclose(calibration(ours) / calibration.max_variance, score, rtol=1e-5, atol=1e-8)
        hot = generator.integers(0, 63, size=1) if step % 100 < 50 else generator.integers(0, 10, size=1)
        rows = np.unique(np.concatenate([hot, generator.choice(63, size=batch - 1, replace=False)]))
        rewards = generator.integers(0, 5, size=(len(rows), 8)) / 4 * (generator.random((len(rows), 1)) < 0.8)
        rewards[0, 5:] = np.nan
        if step % 7 == 0:
            rewards[1, 1:] = np.nan  # one valid rollout: an exposure without evidence
        version = max(0, step - step % 3)
        history.extend(record(source, row, step, version, values) for row, values in zip(rows, rewards, strict=True))
        large.observe(step, rows, rewards, version)
    assert (large.evidence.state.base > 60) == (config.prior == "pooled")
    assert worst < 1e-6


def record(pool, row, step, version, values):
    status = tuple(Status.INFRA_ERROR if np.isnan(v) else Status.OK for v in values)
    return RolloutRecord(pool.tasks[row].key, step, tuple(None if np.isnan(v) else float(v) for v in values), status, version)


@pytest.mark.parametrize(
    ("sizes", "changes"),
    [
        ([50] * 51, {}),
        ([50] * 51, {"estimator": "paper", "max_consecutive": 1}),
        ([1, 90, 7, 30, 2] * 20, {"coverage_share": 0.25, "half_life": 24}),
        ([50] * 51, {"prior": "residual"}),
        ([1, 90, 7, 30, 2] * 20, {"prior": "residual", "optimism": 0.0, "optimism_spread": 0.0, "coverage_share": 0.25}),
        ([1, 90, 7, 30, 2] * 20, {"prior": "residual", "optimism": 0.1, "calibrate": False, "similarity_penalty": 0.0}),
        ([20] * 40, {"coverage_share": 1.0, "coverage_explore": 1.0}),
        ([50] * 51, {"coverage_share": 0.0, "calibrate": False, "window_steps": 1}),
    ],
)
def test_batches_equal_the_composition_over_all_tasks(sizes, changes):
    config = SchedulerConfig(**changes).settled(sums=True)
    pool, _ = large_pool(sizes, config, seed=3, num_archetypes=200)
    generator = np.random.default_rng(1)
    solved = generator.beta(0.5, 0.5, size=sum(sizes))
    quotas = Quotas(config.max_consecutive, config.max_per_environment_window, config.max_per_environment)
    mix = mix_of(config, sum(sizes))
    certified = 0
    for step in range(20):
        made = pool.select(step)
        expected = compose(pool.candidates(step), quotas, mix, Draws(pool.seed, step))
        assert made.rows.tolist() == [choice.row for choice in expected.choices], step
        assert made.lanes == tuple(choice.lane for choice in expected.choices)
        certified += made.certified
        pool.observe(step, made.rows, generator.binomial(1, solved[made.rows, None].repeat(8, 1)).astype(float))
    assert certified == 20


@pytest.mark.parametrize(("shut", "kept_out"), [(0.2, 0.1), (0.9, 0.0), (0.0, 0.95), (0.5, 0.5)])
def test_batches_under_filters_equal_the_composition(shut, kept_out):
    """Masked tasks are never picked, barred ones come last in the exploitation lane; relaxed where too few are left."""
    config = SchedulerConfig(batch_size=16, max_per_environment_window=24).settled(sums=True)
    pool, _ = large_pool([12] * 30, config, seed=3, num_archetypes=60)
    generator = np.random.default_rng(1)
    solved = generator.beta(0.5, 0.5, size=360)
    quotas = Quotas(config.max_consecutive, config.max_per_environment_window, config.max_per_environment)
    mix = mix_of(config, 360)
    for step in range(12):
        masked, barred = generator.random((2, 360)) < [[shut], [kept_out]]
        closed = Closed(masked=masked, barred=barred)
        made = pool.select(step, closed)
        expected = compose(pool.candidates(step, closed), quotas, mix, Draws(pool.seed, step))
        assert made.rows.tolist() == [choice.row for choice in expected.choices], step
        assert made.relaxed == expected.relaxed
        assert expected.relaxed or not masked[made.rows].any()
        pool.observe(step, made.rows, generator.binomial(1, solved[made.rows, None].repeat(8, 1)).astype(float))


def test_quotas_that_must_be_relaxed_are_relaxed_as_elsewhere():
    config = SchedulerConfig(batch_size=16, max_per_environment=1).settled(sums=True)
    pool, _ = large_pool([10] * 8, config)
    made = pool.select(0)
    assert len(set(made.rows.tolist())) == 16
    pool.observe(0, made.rows, np.tile([0.0, 1.0], (16, 4)))
    again = pool.select(1)
    assert [relaxation.quota for relaxation in again.relaxed] == ["max_per_environment"]
    assert len(set(again.rows.tolist())) == 16


def test_all_tied_gives_a_batch_and_says_that_it_is_not_certified():
    sizes = [1100] * 64
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(sum(sizes), 4))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    nobody, nothing = np.full((sum(sizes), 1), -1, np.int32), np.zeros((sum(sizes), 1), np.float32)
    lists = StaticLists(nobody, nothing, nobody, nothing, "no neighbours")
    config = SchedulerConfig(graph_shrinkage=1e12).settled(sums=True)
    pool = LargePool(Features(vectors, vectors), offsets, lists.carriers(), config)
    first = pool.select(0)
    pool.observe(0, first.rows, np.zeros((64, 8)))
    made = pool.select(1)
    assert len(set(made.rows.tolist())) == 64
    assert not made.certified
    assert 0 < made.gap <= config.similarity_penalty


def test_a_tied_batch_does_not_depend_on_the_steps_that_were_selected_before():
    """A resumed run takes its visits in without selecting for them again."""
    config, sizes = SchedulerConfig(batch_size=16, coverage_share=0.25).settled(sums=True), [600] * 40
    one, other = (large_pool(sizes, config, seed=2, num_archetypes=60)[0] for _ in range(2))
    generator = np.random.default_rng(0)
    for step in range(6):
        rows = one.select(step).rows
        rewards = generator.binomial(1, 0.5, size=(16, 8)).astype(float)
        for pool in (one, other):
            pool.observe(step, rows, rewards)
    assert one.select(6).rows.tolist() == other.select(6).rows.tolist()


def test_the_lazy_greedy_equals_the_naive_one():
    """Over shortlists that grow, with ties, and quotas of 4 tasks an environment."""
    config = SchedulerConfig(batch_size=32, coverage_share=0.0, similarity_penalty=0.3).settled(sums=True)
    pool, environment_of = large_pool([30] * 40, config, num_archetypes=50)
    generator = np.random.default_rng(5)
    bound = np.round(generator.beta(2, 5, size=1200), 2)
    order = np.lexsort((np.arange(1200), -bound))
    sizes = np.array([64, 256, 1024, 1200])
    ceilings = np.append(bound[order], -1.0)[sizes]
    rows, products, _ = state.greedy(pool.evidence.state, pool.rules.native, order, bound[order], sizes, ceilings)
    picked: list[int] = []
    likeness = pool.similarity(np.arange(1200), np.arange(1200))
    for _ in range(32):
        worth = bound - 0.3 * likeness[:, picked].max(axis=1, initial=0)
        full = np.bincount(environment_of[picked], minlength=40)[environment_of] == 4
        worth[full] = worth[picked] = -np.inf
        best = np.lexsort((np.arange(1200), -bound, -worth))[0]
        picked.append(int(best))
    assert rows.tolist() == picked
    assert products < 32 * 1200


@pytest.mark.skipif(native.is_built() and not native.has_int8(), reason="this processor has no int8 inner products")
def test_streaming_equals_brute_force():
    """kernel mode: every task hears every visited task of other environments, by the similarity of the int8 codes."""
    config, sizes = SchedulerConfig(batch_size=8, graph_mode="kernel").settled(sums=True), [9] * 11
    features, environment_of = make_world(sizes, num_archetypes=40)
    offsets = np.arange(12) * 9
    stream = build_stream(features, offsets)
    carriers = {"within": build_lists(features, offsets, 3, 0).carrier("within"), "cross": stream}
    pool = LargePool(features, offsets, carriers, config)
    generator = np.random.default_rng(0)
    last, mean = np.full(99, -np.inf), [[] for _ in range(99)]
    for step in range(40):
        rows = generator.choice(99, size=8, replace=False)
        rewards = generator.integers(0, 5, size=(8, 8)) / 4
        pool.observe(step, rows, rewards)
        for row, variance in zip(rows, rewards.var(axis=1, ddof=1), strict=True):
            last[row] = step
            mean[row].append((step, variance))
    pool.predict(40)
    similarity = code_products(stream.codes, 99)
    k = np.clip((similarity - stream.floor) / (1 - stream.floor), 0, None) ** 2
    k[environment_of[:, None] == environment_of] = 0
    c = np.exp2(-(40 - last) / config.half_life)
    own = np.array([sum(v * 2 ** (s / 8) for s, v in m) / max(1e-300, sum(2 ** (s / 8) for s, _ in m)) for m in mean])
    sums = pool.evidence.sums.astype(float) * pool.evidence.state.inverse_scale
    np.testing.assert_allclose(sums[:, 3], k @ c, rtol=1e-5)
    np.testing.assert_allclose(sums[:, 2], k @ (c * own), rtol=1e-5)


def code_products(codes, num_tasks):
    rows = ((codes.codes.astype(float) - 128) * codes.scale[:, None])[:num_tasks]
    return rows @ rows.T


def test_state_is_small():
    config = SchedulerConfig().settled(sums=True)
    pool, _ = large_pool([50] * 200, config)
    pool.select(0)
    assert pool.evidence.nbytes / 10_000 <= 40


def test_the_order_of_records_inside_a_step_leaves_no_trace():
    config = SchedulerConfig(batch_size=16).settled(sums=True)
    generator = np.random.default_rng(0)
    rows, rewards = generator.permutation(200)[:16], generator.random((16, 8))
    order = generator.permutation(16)
    pools = [large_pool([10] * 20, config)[0] for _ in range(2)]
    pools[0].observe(0, rows, rewards)
    pools[1].observe(0, rows[order], rewards[order])
    assert np.array_equal(pools[0].predict(1), pools[1].predict(1))


def test_group_moments():
    nan = np.nan
    rewards = np.array([[0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5 + 1e-10], [1, nan, 0, nan], [1, nan, nan, nan]])
    num_valid, mean, variance = group_moments(rewards, ddof=1)
    assert num_valid.tolist() == [4, 4, 2, 1]
    np.testing.assert_allclose(mean, [0.5, 0.5, 0.5, 1])
    np.testing.assert_allclose(variance[:3], [1 / 3, 0, 0.5])
    assert variance[1] == 0
    assert np.isnan(variance[3])
    np.testing.assert_allclose(group_moments(rewards, ddof=0)[2][[0, 2]], [0.25, 0.25])


@pytest.mark.parametrize(
    ("rows", "rewards", "words"),
    [
        ([0, 1], [[0.0, 1.0]], "one row"),
        ([0], [0.5], "one row"),
        ([0.0], [[0.0, 1.0]], "whole numbers"),
        ([-1], [[0.0, 1.0]], "run from -1 to -1"),
        ([0, 12], [[0.0, 1.0]] * 2, "this pool's are 0 to 11"),
        ([3, 3], [[0.0, 1.0]] * 2, "twice"),
        ([0], [[0.0, 1000.0]], "reward 1000 is outside 0 to 1"),
        ([0], [[np.nan, np.inf]], "reward inf"),
    ],
)
def test_what_no_pool_can_have_is_refused_and_nothing_taken_in(rows, rewards, words):
    large, _ = large_pool([4] * 3, SchedulerConfig(batch_size=4).settled(sums=True))
    with pytest.raises(RecordError, match=words):
        large.observe(0, np.array(rows), np.array(rewards))
    assert large.evidence.state.num_visits == 0
    large.observe(0, np.array([0, 11]), np.array([[0.0, 1.0], [np.nan, 0.5]]))
    assert large.evidence.state.num_visits == 2


@pytest.mark.parametrize("half_life", [1e-3, 1e-2, 1e9])
@pytest.mark.parametrize("prior", ["pooled", "residual"])
def test_any_half_life_leaves_finite_predictions_and_scores(half_life, prior):
    names = ("half_life", "own_half_life", "short_half_life")
    config = SchedulerConfig(batch_size=8, prior=prior, calibration_start=16, calibration_full=32, **dict.fromkeys(names, half_life))
    large, _ = large_pool([8] * 8, config.settled(sums=True))
    generator = np.random.default_rng(0)
    for step in range(60):
        rows = large.select(step).rows
        u = large.predict(step)
        assert np.isfinite(u).all()
        assert np.isfinite(large.pairs.calibration()(u)).all()
        large.observe(step, rows, generator.integers(0, 5, (8, 8)) / 4)
