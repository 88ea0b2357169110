import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsched.errors import ConfigError
from envsched.train.geometry import divide

SIZES = st.integers(1, 96)


@given(batch=SIZES, group=st.integers(2, 16), world=st.integers(1, 32), most=st.integers(1, 64))
def test_every_rollout_has_one_place_or_the_split_is_refused(batch, group, world, most):
    if batch * group % world:
        with pytest.raises(ConfigError):
            divide(batch, group, world, most)
        return
    made = divide(batch, group, world, most)
    assert made.world_size * made.device_batch * made.accumulation == batch * group
    assert made.device_batch <= most


@pytest.mark.parametrize("world", [1, 8, 16])
def test_the_published_batch_fits_usual_hosts(world):
    made = divide(64, 8, world, 8)
    assert (made.device_batch, made.accumulation) == (8, 64 // world)


def test_a_split_that_leaves_a_rest_names_the_nearest_that_do_not():
    with pytest.raises(ConfigError, match=r"16 x group_size 4 = 64 .* over 3 processes.*batch_size 15 or 18.*2 or 4 processes"):
        divide(16, 4, 3, 8)


def test_a_prime_share_falls_back_to_one_rollout_at_a_time():
    assert divide(7, 3, 3, 4).device_batch == 1
