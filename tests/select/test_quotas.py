from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.errors import SelectionError
from envsched.select import Quotas
from envsched.select.guards import LookAhead, Overdraft
from envsched.select.ledger import FREE, Ledger
from envsched.select.quotas import capacity, relax
from tests.select.worlds import DEFAULTS, broken_quotas, environment_of, legal_batches, most_picks, recent_of


def test_recent_picks_count_window_carry_and_streak():
    offsets = np.array([0, 2, 4])
    recent = recent_of([(3, [0]), (4, [0, 1, 2]), (5, [0, 2])], offsets, step=6)
    assert recent.window.tolist() == [3, 2]  # steps 4 and 5
    assert recent.carried.tolist() == [1, 1]  # step 5
    assert recent.streak.tolist() == [3, 0, 2, 0]


def test_recent_picks_ignore_the_future_and_the_order_of_visits():
    offsets = np.array([0, 2, 4])
    batches = [(0, [0, 3]), (1, [1, 3]), (2, [3]), (7, [0, 1, 2, 3])]
    ahead, behind = recent_of(batches, offsets, step=3), recent_of(batches[2::-1], offsets, step=3)
    for name in ("window", "carried", "streak"):
        assert getattr(ahead, name).tolist() == getattr(behind, name).tolist()


def random_past(generator, offsets, steps):
    return [(s, np.flatnonzero(generator.random(offsets[-1]) < 0.5).tolist()) for s in range(steps)]


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_look_ahead_allows_exactly_the_picks_that_keep_the_next_step_whole(seed):
    """By enumeration: every completion of every prefix, at this step and its capacity at the next."""
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, 4, generator.integers(2, 4))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    window_steps = int(generator.integers(1, 4))
    quotas = Quotas(int(generator.integers(1, 4)), int(generator.integers(1, 6)), int(generator.integers(1, 4)))
    past = random_past(generator, offsets, 4)
    batch_size = int(generator.integers(1, min(4, offsets[-1]) + 1))
    legal = list(legal_batches(past, offsets, 4, batch_size, quotas, window_steps))
    if not legal:
        return
    kept = {rows: min(batch_size, most_picks([*past, (4, rows)], offsets, 5, quotas, window_steps)) for rows in legal}
    best = max(kept.values())
    good = [set(rows) for rows in legal if kept[rows] == best]
    recent = recent_of(past, offsets, 4, window_steps)
    guard = LookAhead(quotas, recent, np.zeros(offsets[-1], dtype=bool), environment_of(offsets), batch_size)
    batch, refused = set(), set()
    for _ in range(batch_size):
        open_rows = np.array(sorted(set().union(*(rows for rows in map(set, legal) if batch <= rows)) - batch))
        allowed = set(open_rows[guard.allows(open_rows)].tolist())
        truth = {int(row) for row in open_rows if any(batch | {int(row)} <= rows for rows in good)}
        assert allowed == truth
        assert not allowed & refused, "a refused pick came back"
        refused |= set(open_rows.tolist()) - allowed
        row = int(generator.choice(sorted(allowed)))
        guard.take(row)
        batch.add(row)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_ledger_always_reaches_b_and_breaks_as_few_quotas_as_can_be(seed):
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, 6, generator.integers(1, 5))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    num_tasks = int(offsets[-1])
    quotas = Quotas(int(generator.integers(1, 4)), int(generator.integers(1, 6)), int(generator.integers(1, 4)))
    masked = generator.random(num_tasks) < generator.choice([0, 0.3])
    past = random_past(generator, offsets, 4)
    recent = recent_of(past, offsets, 4)
    batch_size = int(generator.integers(1, num_tasks + 1))
    ledger = Ledger(quotas, recent, masked, environment_of(offsets), batch_size)
    for _ in range(batch_size):
        free = np.flatnonzero(ledger.verdict(np.arange(num_tasks)) == FREE)
        assert len(free)
        ledger.take(int(generator.choice(free)))
    possible = capacity(quotas, recent, masked, environment_of(offsets))
    if possible >= batch_size:
        assert not ledger.relaxed
        assert not masked[ledger.rows].any()
    else:
        assert ledger.relaxed
        assert all(f"{possible} of {batch_size}" in relaxation.reason for relaxation in ledger.relaxed)
    broken = broken_quotas([*past, (4, ledger.rows)], offsets, quotas, judged=4)
    assert broken <= {relaxation.quota for relaxation in ledger.relaxed}
    keeping = _largest_keeping_part(ledger.rows, quotas, recent, masked, offsets)
    assert keeping == min(possible, batch_size)


def _largest_keeping_part(rows, quotas, recent, masked, offsets):
    """How many of ``rows`` could stay if every quota were kept."""
    e_of = environment_of(offsets)
    fine = [row for row in rows if not masked[row] and recent.streak[row] < quotas.max_consecutive]
    counts = np.bincount(e_of[fine], minlength=len(offsets) - 1) if fine else np.zeros(len(offsets) - 1, dtype=int)
    room = np.minimum(quotas.max_per_environment, quotas.max_per_environment_window - recent.window).clip(0)
    return int(np.minimum(counts, room).sum())


def relaxed(batches, sizes, needed, quotas=DEFAULTS, masked=None, step=2):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    masked = np.zeros(offsets[-1], dtype=bool) if masked is None else masked
    return relax(quotas, recent_of(batches, offsets, step), masked, environment_of(offsets), needed)


def test_a_quota_that_does_not_help_is_not_touched():
    batches = [(0, [0, 1, 2, 3]), (1, [0, 1, 2, 3])]  # the one environment's window holds 8 and C_task shuts 4 of 50 out
    quotas, relaxations = relaxed(batches, [50], needed=4)
    assert quotas == replace(DEFAULTS, max_per_environment_window=12)
    assert [r.quota for r in relaxations] == ["max_per_environment_window"]
    assert relaxations[0].reason == "the quotas leave 3 of 4 picks; raised from 11 to 12"


def test_c_task_is_relaxed_before_c3_and_c1_before_the_filters():
    always = [(0, [0, 1]), (1, [0, 1])]
    assert [r.quota for r in relaxed(always, [2, 2], needed=4)[1]] == ["max_consecutive"]
    assert [r.quota for r in relaxed([], [9, 1], needed=6)[1]] == ["max_per_environment"]
    masked = np.array([True, False, False])
    quotas, relaxations = relaxed([], [3], needed=3, masked=masked)
    assert quotas.filters == 1
    assert relaxations[0].reason == "the quotas leave 2 of 3 picks; masked tasks are let in"


def test_the_dearer_quota_is_drawn_back_first():
    """Environment 0 has 9 of 11 window picks behind it, the one task of environment 1 must rest: 2 of 4 picks are left.

    C_task and one more pick of C3 do; C_task could stay if C3 gave two.
    """
    quotas, relaxations = relaxed([(0, [0, 1, 2, 3, 4, 20]), (1, [5, 6, 7, 8, 20])], [20, 1], needed=4)
    assert quotas == replace(DEFAULTS, max_consecutive=3, max_per_environment_window=12)
    assert [r.quota for r in relaxations] == ["max_consecutive", "max_per_environment_window"]


def test_two_quotas_that_bind_together_are_raised_together():
    quotas, relaxations = relaxed([(1, [0])], [9], needed=6, quotas=Quotas(2, 5, 4))
    assert (quotas.max_per_environment, quotas.max_per_environment_window) == (6, 7)
    assert [r.quota for r in relaxations] == ["max_per_environment_window", "max_per_environment"]


def test_overdraft_lets_exactly_the_missing_picks_break_a_quota():
    offsets = np.array([0, 6, 7])
    recent = recent_of([], offsets, 0)
    masked = np.zeros(7, dtype=bool)
    guard = Overdraft(DEFAULTS, recent, masked, environment_of(offsets), 6)  # 4 + 1 keep the quotas: one must break C1
    for row in range(4):
        assert guard.allows(np.array([row]))[0]
        guard.take(row)
    assert guard.allows(np.array([4, 5])).all()
    guard.take(4)
    assert guard.allows(np.array([5, 6])).tolist() == [False, True]


def test_a_batch_larger_than_the_pool_is_refused_with_the_remedy():
    offsets = np.array([0, 3])
    with pytest.raises(SelectionError, match=r"the batch needs 4 tasks, the pool has 3.*at most 3"):
        Ledger(DEFAULTS, recent_of([], offsets, 0), np.zeros(3, dtype=bool), environment_of(offsets), 4)
