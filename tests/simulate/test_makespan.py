from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsched.simulate.makespan import makespan, shortest_makespan


def test_by_hand():
    """Two slots: 1 and 2 start at 0, 3 at time 1, 4 at time 2; the last ends at 6. Longest first: 4, 3, then 2 at 3, 1 at 4."""
    assert makespan([1, 2, 3, 4], 2) == 6
    assert makespan([4, 3, 2, 1], 2) == 5
    assert shortest_makespan([1, 2, 3, 4], 2) == 5
    assert makespan([], 3) == 0


def test_more_slots_than_rollouts_end_with_the_longest():
    assert makespan([1, 5, 2], 8) == shortest_makespan([1, 5, 2], 8) == 5


@given(st.lists(st.integers(1, 50), min_size=1, max_size=6), st.integers(1, 3))
def test_between_the_bound_and_what_graham_proved(durations, slots):
    """Longest first is within 4/3 - 1/(3 W) of the best order, any order within 2 - 1/W, and none undercuts the bound."""
    best = min(makespan(order, slots) for order in permutations(durations))
    assert best >= shortest_makespan(durations, slots) - 1e-9
    assert makespan(durations, slots) <= (2 - 1 / slots) * best + 1e-9
    assert makespan(sorted(durations, reverse=True), slots) <= (4 / 3 - 1 / (3 * slots)) * best + 1e-9


@pytest.mark.parametrize("slots", [1, 2, 5])
def test_one_slot_or_equal_rollouts_care_for_no_order(slots):
    assert makespan([3] * 10, slots) == 3 * -(-10 // slots)
