"""Graph modes behind the five verbs."""

import numpy as np
import pytest

from envsched import ops
from envsched.audit import make_manifest
from envsched.config import FeatureConfig, SchedulerConfig
from envsched.errors import ConfigError, StateError
from envsched.features import Features, build_features
from envsched.graph import resolve_mode
from envsched.maintained import Follower, StaticGraph, StaticLists, build_lists
from envsched.pool import Pool
from envsched.scheduler import EnvScheduler, carry_over
from envsched.types import Environment, RolloutRecord, Status, Task
from kernels import native
from tests.graph.worlds import make_world

needs_native = pytest.mark.skipif(
    not native.is_built() or not native.has_int8(), reason="no native library with int8 products was built (python -m kernels.build)"
)


@pytest.fixture(scope="module")
def world():
    pool = Pool.synthetic(30, 20)
    return pool, build_features(pool, FeatureConfig(encoder="tfidf"))


def records_of(batch, step, generator, solved, pool):
    for task in batch.tasks:
        rewards = tuple(float(x) for x in generator.binomial(4, solved[pool.row_of(task)], size=8) / 4)
        yield RolloutRecord(task, step, rewards, (Status.OK,) * 8, step)


def run(scheduler, steps, pool, late=0):
    generator, solved = np.random.default_rng(0), np.random.default_rng(1).beta(0.5, 0.5, size=len(pool))
    batches, waiting = [], []
    for step in range(steps):
        batches.append(scheduler.select(step))
        waiting.append(list(records_of(batches[-1], step, generator, solved, pool)))
        if len(waiting) > late:
            scheduler.observe(waiting.pop(0))
    return batches


def config_of(mode, **changes):
    return SchedulerConfig(batch_size=24, graph_mode=mode, calibration_start=48, calibration_full=96, **changes)


@pytest.mark.parametrize("prior", ["pooled", "residual"])
def test_exact_and_incremental_give_the_same_batches(world, prior):
    pool, features = world
    a, b = (run(EnvScheduler(pool, config_of(mode, prior=prior), 0, features), 6, pool) for mode in ("exact", "incremental_exact"))
    assert a == b


def test_residuals_change_batches_and_can_be_ablated(world):
    pool, features = world
    settings = [{"prior": "pooled"}, {"prior": "residual"}, {"prior": "residual", "relations": ()}]
    first, second, third = (run(EnvScheduler(pool, config_of("auto", **changes), 0, features), 6, pool) for changes in settings)
    assert first != second != third != first
    choices = [("auto", {}, "residual"), ("auto", {"estimator": "paper"}, "paper"), ("static", {}, "pooled")]
    for mode, changes, prior in [*choices, ("static", {"prior": "residual"}, "residual")]:
        scheduler = EnvScheduler(pool, config_of(mode, **changes), 0, features)
        assert make_manifest(scheduler.select(0), scheduler).graph["prior"] == prior


@needs_native
@pytest.mark.parametrize("mode", ["live", "static", "kernel", "class"])
def test_sums_of_residuals_make_batches_of_their_own(world, mode):
    """Differences of each relation from the environment's mean are what the terms show; the paper's rule tells no residuals."""
    pool, features = world
    schedulers = [EnvScheduler(pool, config_of(mode, prior=prior), 0, features) for prior in ("pooled", "residual")]
    pooled, told = (run(scheduler, 6, pool) for scheduler in schedulers)
    assert pooled != told
    config = schedulers[1].config
    assert config.num_cross == 16
    for pick in told[-1].picks:
        t = pick.terms
        lift = t["prior"] - (1 + config.optimism) * max(0, t["within"] + t["cross"] - t["environment"])
        assert lift == pytest.approx(schedulers[1]._large._large.evidence.state.lift, abs=1e-9)
    settings = {"estimator": "paper", "num_cross": 12}
    paper = [EnvScheduler(pool, config_of(mode, prior=prior, **settings), 0, features) for prior in ("pooled", "residual")]
    assert run(paper[0], 3, pool) == run(paper[1], 3, pool)


@needs_native
@pytest.mark.parametrize("rule", [{"prior": "pooled"}, {"estimator": "paper"}, {"prior": "residual"}], ids=["pooled", "paper", "residual"])
def test_maintained_static_sums_follow_the_timeline_over_static_lists(world, rule):
    """On one history: the terms of every pick, and the batches but for near ties of float32 sums. Residuals are told anew here
    whenever they have moved at all."""
    pool, features = world
    config = config_of("static", **rule).settled(sums=True)
    maintained, timeline = EnvScheduler(pool, config, 0, features), EnvScheduler(pool, config, 0, features)
    assert isinstance(maintained._large, Follower)
    maintained._large._follow(0, maintained.history, maintained.seed).evidence.state.told_within = 0.0
    timeline._large, timeline._graph = None, StaticGraph(features, pool.environment_of, config.num_within, config.num_cross)
    timeline._follow_history()
    generator, solved, same = np.random.default_rng(0), np.random.default_rng(1).beta(0.5, 0.5, size=len(pool)), 0
    for step in range(12):
        ours, theirs = maintained.select(step), timeline.select(step)
        same += len(set(ours.tasks) & set(theirs.tasks))
        prediction, score, _ = timeline._forecast.at(step)
        for pick in ours.picks:
            row = pool.row_of(pick.task)
            assert pick.score == pytest.approx(score[row], rel=1e-5, abs=1e-9)
            expected = {name: float(values[row]) for name, values in prediction.terms.items()}
            assert {name: pick.terms[name] for name in expected} == pytest.approx(expected, rel=1e-5, abs=1e-7)
        records = list(records_of(theirs, step, generator, solved, pool))
        maintained.observe(records)
        timeline.observe(records)
    assert same >= 0.95 * 12 * 24


@needs_native
@pytest.mark.parametrize("prior", ["pooled", "residual"])
@pytest.mark.parametrize("mode", ["live", "static", "kernel", "class"])
def test_a_resumed_run_goes_on_bit_for_bit(world, mode, prior):
    pool, features = world
    scheduler = EnvScheduler(pool, config_of(mode, prior=prior), 0, features)
    run(scheduler, 7, pool)
    resumed = EnvScheduler(pool, config_of(mode, prior=prior), 5, features)
    resumed.load_state_dict(scheduler.state_dict())
    assert resumed.select(7) == scheduler.select(7)
    assert resumed.digests(7) == scheduler.digests(7)
    assert resumed.select(3) == scheduler.select(3)


@needs_native
def test_records_that_come_one_step_late_are_taken_in(world):
    pool, features = world
    late = run(EnvScheduler(pool, config_of("static"), 0, features), 8, pool, late=1)
    assert len({batch.tasks for batch in late}) == 8


@pytest.mark.parametrize("backend", ["native", "torch"])
def test_saved_lists_are_taken_and_stale_ones_refused(world, tmp_path, monkeypatch, backend):
    if backend == "native" and not native.is_built():
        pytest.skip("no native library was built (python -m kernels.build)")
    monkeypatch.setattr(ops, "backend", lambda: backend)
    pool, features = world
    config = config_of("static").settled(sums=True)
    build_lists(features, pool.offsets, config.num_within, config.num_cross).save(tmp_path / "lists.npz")
    lists = StaticLists.load(tmp_path / "lists.npz", features, pool.offsets, config.num_within, config.num_cross)
    built, taken = (EnvScheduler(pool, config, 0, features, lists=given) for given in (None, lists))
    assert run(taken, 4, pool) == run(built, 4, pool)
    assert taken.digests(4) == built.digests(4)
    assert taken.graph_header == built.graph_header
    with pytest.raises(StateError, match="graph is stale: its lists were built from other features"):
        EnvScheduler(pool, config.model_copy(update={"num_cross": 3}), 0, features, lists=lists)
    other = Features(features.cross, features.within, features.pool_fingerprint)
    with pytest.raises(StateError, match="graph is stale"):
        EnvScheduler(pool, config, 0, other, lists=lists)
    with pytest.raises(ConfigError, match="here it is incremental_exact: set it to static"):
        EnvScheduler(pool, config_of("auto"), 0, features, lists=lists)


def test_the_automatic_choice_goes_by_size():
    assert [resolve_mode("auto", n) for n in (62, 250_000)] == ["incremental_exact"] * 2
    assert resolve_mode("auto", 250_001, 16) == ("live" if ops.has_int8() else "incremental_exact")
    assert resolve_mode("auto", 250_001, 17) == ("kernel" if ops.has_int8() else "incremental_exact")
    assert resolve_mode("exact", 10**9) == "exact"


MODES = ["exact", "incremental_exact", "static", *(pytest.param(mode, marks=needs_native) for mode in ("live", "kernel", "class"))]


@pytest.mark.parametrize("mode", MODES)
def test_the_manifest_says_how_the_graph_was_made(world, mode):
    pool, features = world
    scheduler = EnvScheduler(pool, config_of(mode), 0, features)
    manifest = make_manifest(scheduler.select(0), scheduler)
    assert manifest.graph["mode"] == mode
    assert manifest.graph["exact"] == (mode in ("exact", "incremental_exact"))
    if mode in ("static", "class"):
        carried, classes = "lists" if mode == "static" else "classes", len(np.unique(features.cross, axis=0))
        assert manifest.graph["cross"] == {"carried": carried, "classes": classes, "recall": 1.0, "certified": 1.0}
    if mode == "live":
        assert manifest.graph["cross"]["slots"] == 12


def test_approximate_lists_are_told_in_log_and_manifest(world, caplog):
    pool, features = world
    scheduler = EnvScheduler(pool, config_of("static", build_seconds=0, build_recall=0.9), 0, features)
    assert "cross-environment lists are approximate" in caplog.text
    assert 0.9 <= make_manifest(scheduler.select(0), scheduler).graph["cross"]["recall"] <= 1


@needs_native
def test_the_class_prior_stands_in_header_and_digest(world):
    pool, features = world
    plain, joined = (EnvScheduler(pool, config_of("kernel", class_prior=value), 0, features) for value in (False, True))
    classes = len(np.unique(features.cross, axis=0))
    assert joined.graph_header["cross"] == {**plain.graph_header["cross"], "with": {"carried": "classes", "classes": classes}}
    assert joined.digests(0)["graph"] != plain.digests(0)["graph"]


@needs_native
def test_live_lists_have_a_largest_size(world):
    pool, features = world
    with pytest.raises(ConfigError, match=r"at most 16 neighbours; num_cross is 17"):
        EnvScheduler(pool, config_of("live", num_cross=17), 0, features)


@pytest.mark.parametrize("mode", MODES)
def test_filters_work_in_every_mode(world, mode):
    """Mastered tasks rest: after a while they are picked far less than without the filter, and never while they rest."""
    pool, features = world
    shares = []
    for filters in ((), ("progress", "guesses")):
        scheduler = EnvScheduler(pool, config_of(mode, filters=filters, open_batches=1), 0, features)
        picks = []
        for step in range(12):
            batch, resting = scheduler.select(step), scheduler.resting(step).rows
            rows = [pool.row_of(task) for task in batch.tasks]
            assert not resting[rows].any()
            picks += rows if step >= 6 else []
            for task, row in zip(batch.tasks, rows, strict=True):  # odd rows are mastered
                rewards = (1.0,) * 8 if row % 2 else (0.0, 1.0) * 4
                scheduler.observe([RolloutRecord(task, step, rewards, (Status.OK,) * 8, step)])
        shares.append(np.mean(np.array(picks) % 2))
    assert shares[1] <= shares[0]


EDGES = {
    "isolated tasks": ([2] * 8, np.concatenate([np.eye(16), np.zeros((0, 16))])),
    "environments of one task": ([1] * 16, None),
    "all alike": ([4] * 4, np.tile(np.eye(1, 16), (16, 1))),
    "no topology at all": ([4] * 4, np.zeros((16, 16))),
    "one environment": ([16], None),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("edge", EDGES)
def test_edges_of_the_definition_give_batches_in_every_mode(mode, edge):
    """Fewer tasks than slots throughout; finite scores, no task twice, and the same again after a resume."""
    sizes, vectors = EDGES[edge]
    pool = Pool(
        [Environment(key=f"e{e:02d}") for e in range(len(sizes))],
        [Task(key=f"t{e:02d}-{i}", environment=f"e{e:02d}") for e, size in enumerate(sizes) for i in range(size)],
    )
    random, _ = make_world(sizes)
    features = Features(*((random.within, random.cross) if vectors is None else (vectors, vectors)), pool_fingerprint=pool.fingerprint)
    config = SchedulerConfig(batch_size=6, graph_mode=mode, max_per_environment=6, max_per_environment_window=18)
    scheduler = EnvScheduler(pool, config, 0, features)
    run(scheduler, 8, pool)
    batch = scheduler.select(8)
    assert len(set(batch.tasks)) == 6
    assert all(np.isfinite([pick.score, *pick.terms.values()]).all() for pick in batch.picks)
    resumed = EnvScheduler(pool, config, 1, features)
    resumed.load_state_dict(scheduler.state_dict())
    assert resumed.select(8) == batch


@pytest.mark.parametrize("mode", MODES)
def test_a_task_added_and_one_removed_between_two_saves(mode):
    """The old state is refused by name, and carried over by key."""
    whole = Pool.synthetic(6, 6)
    before, after = Pool(whole.environments, whole.tasks[:-1]), Pool(whole.environments, whole.tasks[1:])
    encoder = FeatureConfig(encoder="tfidf")
    config = SchedulerConfig(batch_size=8, graph_mode=mode)
    old = EnvScheduler(before, config, 0, build_features(before, encoder))
    run(old, 5, before)
    new = EnvScheduler(after, config, 0, build_features(after, encoder))
    with pytest.raises(StateError, match=r"1 task added: .*; 1 task removed: "):
        new.load_state_dict(old.state_dict())
    state, change = carry_over(old.state_dict(), after, 5)
    new.load_state_dict(state)
    assert (len(change.added), len(change.removed)) == (1, 1)
    batch = new.select(5)
    assert whole.tasks[0].key not in batch.tasks
    again = EnvScheduler(after, config, 7, build_features(after, encoder))
    again.load_state_dict(new.state_dict())
    assert again.select(5) == batch
