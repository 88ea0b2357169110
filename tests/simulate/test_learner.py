import numpy as np
import pytest

from envsched.simulate.learner import HALF_TEACHING_VARIANCE, Learner, Tempo
from envsched.simulate.world import Traits, make_world

STILL = Tempo(rate=0.3, craft=0.05, skill=0.05, forgetting=0.0, drift_steps=1e30)


@pytest.fixture
def world():
    return make_world(3, Traits(), num_environments=4, tasks_per_environment=10, dead=1)


def awake(world):
    return np.flatnonzero(world.awakening[world.environment_of] == 0)


def test_the_same_seed_gives_the_same_world_and_rewards(world):
    again = make_world(3, Traits(), num_environments=4, tasks_per_environment=10, dead=1)
    assert np.array_equal(world.within, again.within)
    a, b = Learner(world, STILL, 5), Learner(again, STILL, 5)
    b.moments()  # asking changes nothing
    assert np.array_equal(a.roll_out(np.arange(40), 8), b.roll_out(np.arange(40), 8))
    assert not np.array_equal(a.roll_out(np.arange(40), 8), Learner(world, STILL, 6).roll_out(np.arange(40), 8))


def test_vectors_are_unit_and_nearer_inside_a_topic(world):
    for vectors in (world.within, world.cross):
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(40), abs=1e-5)


def test_exact_moments_are_those_of_many_rollouts(world):
    learner = Learner(world, STILL, 1)
    mean, variance = learner.moments()
    rewards = learner.roll_out(np.arange(40), 20000)
    assert rewards.mean(axis=1) == pytest.approx(mean, abs=0.01)
    assert rewards.var(axis=1) == pytest.approx(variance, abs=0.006)


def test_rewards_are_shares_of_passed_checks(world):
    rewards = Learner(world, STILL, 1).roll_out(np.arange(40), 8)
    passed = rewards * world.checks.sum(axis=1)[:, None]
    assert passed == pytest.approx(passed.round())
    assert rewards.min() >= 0
    assert rewards.max() <= 1


def test_a_group_without_variance_teaches_nothing(world):
    learner = Learner(world, STILL, 1)
    before = learner.logits.copy()
    learner.train(awake(world)[:4], np.full((4, 8), 0.5))
    assert learner.logits == pytest.approx(before)


def test_a_group_with_variance_teaches_its_task_by_hand(world):
    """Rewards 0 and 1 alternating: v = 2/7, s = v / (v + .01); own gain .3 s plus craft and skill along its own unit vectors."""
    learner = Learner(world, STILL, 1)
    row, before = awake(world)[0], learner.logits.copy()
    learner.train(np.array([row]), np.array([[0.0, 1.0] * 4]))
    taught = 0.3 * (2 / 7) / (2 / 7 + HALF_TEACHING_VARIANCE)
    gained = learner.logits - before
    assert gained[row] == pytest.approx(taught * (1 + 0.05 + 0.05), rel=1e-4)
    same = world.environment_of == world.environment_of[row]
    others = same & (np.arange(40) != row)
    assert gained[others] == pytest.approx(
        taught * 0.05 * (world.within[others] @ world.within[row] + world.cross[others] @ world.cross[row])
    )
    assert gained[~same] == pytest.approx(taught * 0.05 * (world.cross[~same] @ world.cross[row]))


def test_what_was_learned_is_forgotten(world):
    learner = Learner(world, Tempo(rate=0.3, forgetting=0.1, drift_steps=1e30), 1)
    row, before = awake(world)[0], learner.logits.copy()
    learner.train(np.array([row]), np.array([[0.0, 1.0] * 4]))
    peak = learner.logits[row] - before[row]
    for _ in range(20):
        learner.train(np.array([row]), np.full((1, 8), 0.5))
    assert 0 < learner.logits[row] - before[row] < 0.2 * peak + 1e-6


def test_a_dead_environment_wakes_after_its_exposures(world):
    learner = Learner(world, STILL, 1)
    (dead,) = np.flatnonzero(world.awakening)
    rows = np.flatnonzero(world.environment_of == dead)[:1]
    for exposure in range(world.awakening[dead]):
        assert learner.asleep[rows[0]], exposure
        assert not learner.roll_out(rows, 8).any()
        learner.train(rows, np.zeros((1, 8)))
    assert not learner.asleep.any()
    assert learner.moments()[0][rows[0]] > 0


def test_own_parts_wander_without_a_trend_and_keep_their_spread():
    world = make_world(0, Traits(), 20, 50)
    learner = Learner(world, Tempo(rate=0.0, forgetting=0.0, drift_steps=20.0), 1)
    start, spread = learner.luck.copy(), np.log(learner.luck).std()
    for _ in range(60):
        learner.train(np.array([0]), np.full((1, 8), 0.5))
    assert np.log(learner.luck).std() == pytest.approx(spread, rel=0.1)
    correlation = np.corrcoef(np.log(start), np.log(learner.luck))[0, 1]
    shared = Traits().environment + Traits().text + Traits().topology
    assert correlation == pytest.approx(shared + (1 - shared) * np.exp(-3), abs=0.1)


def test_stronger_structure_is_capped():
    doubled = Traits(environment=0.4, text=0.1, topology=0.3).scaled(2)
    assert doubled.environment + doubled.text + doubled.topology == pytest.approx(0.95)
    assert doubled.environment / doubled.topology == pytest.approx(4 / 3)
    assert Traits().scaled(0.5).environment == pytest.approx(Traits().environment / 2)
