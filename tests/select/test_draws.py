from envsched.select import Draws

GOLDEN_ORDER = [2, 5, 3, 0, 4, 1]
GOLDEN_UNIFORM = [0.5125744478619486, 0.31390915713858103]


def test_draws_are_the_raw_philox_words_of_seed_and_step():
    """Golden values: a release of numpy that changed them would change every batch."""
    draws = Draws(7, 3)
    assert draws.order(6).tolist() == GOLDEN_ORDER
    assert draws.uniform(2).tolist() == GOLDEN_UNIFORM


def test_draws_differ_by_seed_and_step_and_repeat_otherwise():
    words = {(seed, step): tuple(Draws(seed, step).uniform(4)) for seed in range(4) for step in range(4)}
    assert len(set(words.values())) == 16
    assert all(tuple(Draws(*key).uniform(4)) == value for key, value in words.items())


def test_orders_are_permutations_and_uniform_numbers_fill_the_unit_interval():
    assert sorted(Draws(0, 0).order(1000)) == list(range(1000))
    numbers = Draws(0, 1).uniform(10_000)
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert abs(numbers.mean() - 0.5) < 0.02
    assert Draws(0, 0).order(0).tolist() == []
