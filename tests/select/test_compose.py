import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.config import SchedulerConfig
from envsched.select import Draws, Mix, Quotas, compose, mix_of
from envsched.select import lanes as lanes_module
from envsched.select.lanes import cold_start, exploit
from envsched.select.ledger import FREE, Ledger
from envsched.types import Lane
from tests.select.worlds import DEFAULT_MIX, DEFAULTS, broken_quotas, environment_of, make_candidates, recent_of, table_similarity


def naive_greedy(candidates, quotas, penalty, batch, wanted):
    """METHOD 8.3 in plain Python: look at every task for every pick."""
    ledger = Ledger(quotas, candidates.recent, candidates.masked, environment_of(candidates.offsets), len(batch) + wanted)
    for row in batch:
        ledger.take(row)
    picked = []
    for _ in range(wanted):
        best = None
        for row in range(len(candidates.score)):
            if ledger.verdict(np.array([row]))[0] != FREE:
                continue
            nearest = max((candidates.similarity(np.array([row]), np.array([j]))[0, 0] for j in ledger.rows), default=0.0)
            worth = candidates.score[row] * candidates.discount[row] - penalty * nearest
            key = (worth, candidates.variance[row], -row)
            if best is None or key > best[0]:
                best = (key, row)
        ledger.take(best[1])
        picked.append(best[1])
    return picked


@pytest.mark.parametrize("first_shortlist", [1, 2, 7, 1024])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_exploitation_equals_naive_greedy(first_shortlist, seed):
    generator = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(generator.integers(1, 9, generator.integers(2, 8)))])
    num_tasks = int(offsets[-1])
    past = [(s, np.flatnonzero(generator.random(num_tasks) < 0.3).tolist()) for s in range(3)]
    levels = generator.choice([0, 2, 5])
    candidates = make_candidates(generator, offsets, recent_of(past, offsets, 3), levels=levels)
    quotas = Quotas(int(generator.integers(1, 3)), int(generator.integers(3, 9)), int(generator.integers(1, 5)))
    batch_size = int(generator.integers(2, num_tasks + 1))
    penalty = float(generator.choice([0, 0.08, 1.0]))
    ledger = Ledger(quotas, candidates.recent, candidates.masked, environment_of(offsets), batch_size)
    for _ in range(int(generator.integers(0, batch_size))):
        ledger.take(int(generator.choice(np.flatnonzero(ledger.verdict(np.arange(num_tasks)) == FREE))))
    batch, wanted = list(ledger.rows), batch_size - len(ledger.rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes_module, "FIRST_SHORTLIST", first_shortlist)
        choices = exploit(ledger, candidates.score, candidates.discount, candidates.variance, penalty, wanted, candidates.similarity)
    assert [choice.row for choice in choices] == naive_greedy(candidates, quotas, penalty, batch, wanted)


def test_exploitation_names_the_quota_that_shut_a_better_task_out():
    offsets = np.array([0, 6, 8])
    candidates = make_candidates(np.random.default_rng(0), offsets, recent_of([], offsets, 0), exposures=np.zeros(8))
    score = np.array([0.9, 0.89, 0.88, 0.87, 0.86, 0.85, 0.2, 0.1])
    ledger = Ledger(DEFAULTS, candidates.recent, candidates.masked, environment_of(offsets), 6)
    choices = exploit(ledger, score, candidates.discount, candidates.variance, 0.0, 6, candidates.similarity)
    assert [choice.row for choice in choices] == [0, 1, 2, 3, 6, 7]
    assert [choice.bound_by for choice in choices] == [(), (), (), (), ("max_per_environment",), ("max_per_environment",)]
    assert all(choice.penalty == 0 and choice.discount == 1 for choice in choices)


def run(num_environments, tasks_each, steps, mix=DEFAULT_MIX, quotas=DEFAULTS, seed=0, half_life=8, hot=None, first=()):
    """Drive ``compose`` over steps with its own picks as history; scores random, higher in the ``hot`` first environments.

    ``first`` holds batches of the steps before, which something else chose.
    """
    offsets = np.arange(num_environments + 1) * tasks_each
    num_tasks = int(offsets[-1])
    generator = np.random.default_rng(seed)
    similarity = table_similarity(generator, num_tasks)
    exposures, seen, batches, compositions = np.zeros(num_tasks), np.zeros(num_tasks, dtype=bool), list(enumerate(first)), []
    for rows in first:
        seen[rows] = True
    for step in range(len(first), len(first) + steps):
        candidates = make_candidates(
            generator, offsets, recent_of(batches, offsets, step), seen=seen, exposures=exposures, similarity=similarity
        )
        if hot is not None:
            candidates.score[environment_of(offsets) < hot] += 1
        composition = compose(candidates, quotas, mix, Draws(seed, step))
        rows = [choice.row for choice in composition.choices]
        batches.append((step, rows))
        compositions.append(composition)
        exposures = exposures * 2 ** (-1 / half_life)
        exposures[rows] += 1
        seen = seen.copy()
        seen[rows] = True
    return offsets, batches, compositions


@pytest.mark.parametrize("hot", [None, 9])
@pytest.mark.parametrize("coverage_share", [0.0, 0.5])
def test_eighteen_environments_at_the_defaults_need_no_relaxation_in_200_steps(hot, coverage_share):
    mix = Mix(64, coverage_share, 0.25, 0.08)
    offsets, batches, compositions = run(18, 12, 200, mix, seed=1, hot=hot)
    assert all(not composition.relaxed for composition in compositions)
    assert broken_quotas(batches, offsets) == set()


def test_a_greedy_fill_does_not_spoil_the_step_after_it():
    """The 14 best environments were filled before; filled again they would leave 14 * 3 + 4 * 4 = 58 picks for a batch of 64."""
    tasks_each = 12
    first = [e * tasks_each + i for e in range(14) for i in range(4)] + [e * tasks_each + i for e in range(14, 18) for i in range(2)]
    offsets, batches, compositions = run(18, tasks_each, 20, Mix(64, 0.0, 0.25, 0.08), hot=14, first=[first])
    assert all(not composition.relaxed for composition in compositions)
    assert broken_quotas(batches, offsets) == set()
    bound = {name for choice in compositions[0].choices for name in choice.bound_by}
    assert bound == {"max_per_environment", "look_ahead"}


def test_seventeen_environments_relax_c3_and_say_so():
    offsets, batches, compositions = run(17, 12, 30, seed=1)
    relaxed = {relaxation.quota for composition in compositions for relaxation in composition.relaxed}
    assert relaxed == {"max_per_environment_window"}
    assert broken_quotas(batches, offsets) == {"max_per_environment_window"}
    reasons = [relaxation.reason for composition in compositions for relaxation in composition.relaxed]
    assert all("of 64 picks; raised from 11 to 1" in reason for reason in reasons)


def test_pool_of_one_and_a_half_batches_keeps_c_task():
    quotas = Quotas(max_consecutive=2, max_per_environment_window=99, max_per_environment=99)
    offsets, batches, compositions = run(6, 4, 60, Mix(16, 0.5, 0.25, 0.08), quotas)
    assert all(not composition.relaxed for composition in compositions)
    assert broken_quotas(batches, offsets, quotas) == set()


def test_a_pool_as_large_as_a_batch_relaxes_c_task_and_still_gives_b():
    quotas = Quotas(max_consecutive=2, max_per_environment_window=99, max_per_environment=99)
    _, batches, compositions = run(4, 4, 6, Mix(16, 0.5, 0.25, 0.08), quotas)
    assert all(sorted(rows) == list(range(16)) for _, rows in batches)
    assert [[relaxation.quota for relaxation in composition.relaxed] for composition in compositions[:3]] == [[], [], ["max_consecutive"]]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_every_batch_is_full_and_breaks_no_quota_that_it_does_not_name(seed):
    """Pools of any shape, quotas of any size, filters, over steps whose own picks are the history."""
    generator = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(generator.integers(0, 7, generator.integers(2, 8))), [0]])
    offsets[-1] = offsets[-2] + 1
    num_tasks = int(offsets[-1])
    quotas = Quotas(int(generator.integers(1, 4)), int(generator.integers(1, 9)), int(generator.integers(1, 5)))
    mix = Mix(int(generator.integers(1, num_tasks + 1)), float(generator.random()), float(generator.random()), 0.08)
    masked = generator.random(num_tasks) < generator.choice([0, 0.2])
    seen, batches = np.zeros(num_tasks, dtype=bool), []
    for step in range(7):
        candidates = make_candidates(generator, offsets, recent_of(batches, offsets, step), seen=seen.copy(), masked=masked, levels=4)
        composition = compose(candidates, quotas, mix, Draws(seed, step))
        rows = [choice.row for choice in composition.choices]
        assert len(set(rows)) == len(rows) == mix.batch_size
        named = {relaxation.quota for relaxation in composition.relaxed}
        assert broken_quotas([*batches, (step, rows)], offsets, quotas, judged=step) <= named
        assert "filters" in named or not masked[rows].any()
        batches.append((step, rows))
        seen[rows] = True


def test_full_coverage_visits_all_51_environments_in_every_batch():
    mix = Mix(64, 1.0, 0.25, 0.08)
    offsets, batches, _ = run(51, 50, 40, mix)
    assert {len(set(environment_of(offsets)[rows])) for _, rows in batches} == {51}


def test_cold_start_visits_every_environment_once_before_any_twice_and_goes_farthest_first():
    offsets = np.array([0, 5, 10, 12])
    generator = np.random.default_rng(3)
    similarity = table_similarity(generator, 12)
    ledger = Ledger(Quotas(2, 99, 99), recent_of([], offsets, 0), np.zeros(12, dtype=bool), environment_of(offsets), 10)
    choices = cold_start(ledger, offsets, np.array([2, 0, 1]), np.array([0.0, 0.5, 0.99]), 10, similarity)
    rows = [choice.row for choice in choices]
    assert environment_of(offsets)[rows].tolist() == [2, 0, 1, 2, 0, 1, 0, 1, 0, 1]
    assert rows[0] == 11  # .99 of a range of two
    assert rows[1] == 0
    assert rows[2] == 7
    for position, row in enumerate(rows[3:], start=3):
        e = environment_of(offsets)[row]
        before = [r for r in rows[:position] if environment_of(offsets)[r] == e]
        rest = [r for r in range(offsets[e], offsets[e + 1]) if r not in before]
        nearest = {r: round(similarity([r], before).max(), 6) for r in rest}
        assert row == min(rest, key=lambda r: (nearest[r], r))
    assert all(choice.lane is Lane.COLD_START for choice in choices)


def test_cold_start_depends_on_the_seed_alone():
    batches = [run(30, 8, 1, Mix(20, 0.5, 0.25, 0.08), seed=seed)[1][0][1] for seed in (5, 6)]
    assert batches[0] != batches[1]
    offsets = np.arange(31) * 8
    candidates = make_candidates(np.random.default_rng(5), offsets, recent_of([], offsets, 0), seen=np.zeros(240, dtype=bool))
    twice = [[c.row for c in compose(candidates, DEFAULTS, Mix(20, 0.5, 0.25, 0.08), Draws(5, 0)).choices] for _ in range(2)]
    assert twice[0] == twice[1]


def coverage_rows(explore, **changes):
    offsets = np.array([0, 4, 8, 12])
    generator = np.random.default_rng(2)
    values = {
        "exposures": np.array([2.0, 1, 1, 3, 0, 0, 0, 0.5, 9, 9, 9, 9]),
        "seen": np.array([True] * 4 + [False] * 3 + [True] * 5),
        "masked": np.zeros(12, dtype=bool),
    } | changes
    candidates = make_candidates(generator, offsets, recent_of([], offsets, 0), **values)
    choices = compose(candidates, DEFAULTS, Mix(5, 1.0, explore, 0.08), Draws(0, 1)).choices
    return candidates, choices


def test_coverage_takes_environments_by_fewest_exposures_then_the_least_observed_and_most_novel_task():
    candidates, choices = coverage_rows(explore=1.0)
    rows = [choice.row for choice in choices]
    assert [row // 4 for row in rows] == [1, 0, 2, 1, 0]
    nearest = candidates.similarity(np.array([4, 5, 6]), np.array([7]))[:, 0]
    assert rows[0] == 4 + int(nearest.argmin())  # ties of exposure 0: least like the seen task 7
    nearest = candidates.similarity(np.array([1, 2]), np.arange(4)[candidates.seen[:4]])
    assert rows[1] == 1 + int(nearest.max(axis=1).argmin())
    assert all(choice.lane is Lane.COVERAGE and choice.bound_by == () for choice in choices)


def test_scored_coverage_takes_the_highest_predicted_variance():
    candidates, choices = coverage_rows(explore=0.0)
    rows = [choice.row for choice in choices]
    assert rows[:3] == [4 + candidates.variance[4:8].argmax(), candidates.variance[:4].argmax(), 8 + candidates.variance[8:].argmax()]
    assert rows[:3] != [choice.row for choice in coverage_rows(explore=1.0)[1]][:3]


def test_a_quota_that_shuts_a_due_environment_out_is_named():
    masked = np.zeros(12, dtype=bool)
    masked[4:8] = True
    _, choices = coverage_rows(explore=1.0, masked=masked)
    assert choices[0].row // 4 == 0
    assert choices[0].bound_by == ("filters",)
    assert choices[1].bound_by == ()


def test_coverage_share_rounds_and_fills_the_rest_by_score():
    offsets = np.arange(21) * 5
    candidates = make_candidates(np.random.default_rng(0), offsets, recent_of([], offsets, 0))
    for share, expected in ((0.0, 0), (0.5, 8), (0.3, 5), (1.0, 16)):
        choices = compose(candidates, DEFAULTS, Mix(16, share, 0.25, 0.08), Draws(0, 1)).choices
        assert sum(choice.lane is Lane.COVERAGE for choice in choices) == expected
        assert len({choice.row for choice in choices}) == 16


@pytest.mark.parametrize(
    ("num_tasks", "changes", "share"),
    [
        (2550, {}, 0.5),  # 40 batches sweep the pool
        (768, {}, 0.25),  # 12 do: half of the lane
        (512, {}, 0.125),  # 8 or fewer: a quarter
        (80, {"batch_size": 16}, 0.125),
        (80, {"batch_size": 16, "coverage_sweep": 0}, 0.5),
        (80, {"batch_size": 16, "estimator": "paper"}, 0.5),
        (96, {"batch_size": 16, "coverage_sweep": 4, "coverage_share": 1.0}, 0.5),
    ],
)
def test_the_coverage_lane_shrinks_where_few_batches_sweep_the_pool(num_tasks, changes, share):
    mix = mix_of(SchedulerConfig(prior="pooled", **changes), num_tasks)
    assert mix.coverage_share == pytest.approx(share)
    assert mix.coverage_explore == (1.0 if changes.get("estimator") == "paper" else 0.25)
