"""Set blocks against |A n B| / sqrt(|A| |B|) counted by hand."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.features.sets import exact_block, hashed_block

sets_strategy = st.lists(st.frozensets(st.sampled_from("abcdefghij")), min_size=1, max_size=12)


def overlap(a, b):
    return len(a & b) / np.sqrt(len(a) * len(b)) if a and b else 0.0


@settings(max_examples=100, deadline=None)
@given(sets=sets_strategy, num_environments=st.integers(1, 3))
def test_exact_block_gives_the_overlap_inside_each_environment(sets, num_environments):
    environment_of = np.sort(np.arange(len(sets)) % num_environments)
    block = exact_block(sets, environment_of)
    for i, a in enumerate(sets):
        for j, b in enumerate(sets):
            if environment_of[i] == environment_of[j]:
                np.testing.assert_allclose(block[i] @ block[j], overlap(a, b), atol=1e-12)


def test_elements_that_always_occur_together_share_a_column():
    many = frozenset(f"state.{i}" for i in range(445))
    block = exact_block([many, many | {"other"}, frozenset()], np.zeros(3, dtype=int))
    assert block.shape == (3, 2)
    np.testing.assert_allclose(block[0] @ block[1], overlap(many, many | {"other"}))
    assert not block[2].any()


def test_no_elements_at_all():
    assert exact_block([frozenset(), frozenset()], np.array([0, 1])).shape[0] == 2


def test_hashed_block_is_exact_without_collisions_and_never_lower():
    words = [frozenset(f"token{i + j}" for j in range(5)) for i in range(20)]
    block = hashed_block(words, 1 << 16)
    for i, a in enumerate(words):
        for j, b in enumerate(words):
            np.testing.assert_allclose(block[i] @ block[j], overlap(a, b), atol=1e-12)
    narrow = hashed_block(words, 8)
    np.testing.assert_allclose(np.linalg.norm(narrow, axis=1), 1)
    assert (narrow @ narrow.T).mean() > (block @ block.T).mean()
