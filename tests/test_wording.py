import pytest

from envsched.wording import counted


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [
        (0, "task", "0 tasks"),
        (1, "task", "1 task"),
        (2550, "task", "2,550 tasks"),
        (2, "topology", "2 topologies"),
        (3, "day", "3 days"),
        (1, "topology", "1 topology"),
    ],
)
def test_a_number_agrees_with_its_noun(number, noun, words):
    assert counted(number, noun) == words
