"""What the ranks of a run tell each other. One process needs none of it and passes straight through."""

from collections.abc import Callable
from typing import TypeVar

from accelerate.state import PartialState
from accelerate.utils import broadcast_object_list, gather_object

from envsched.errors import EnvschedError, StateError

Value = TypeVar("Value")


def from_rank_0(make: Callable[[], Value]) -> Value:
    """Run ``make`` on rank 0 and give its value to every rank.

    A failure on rank 0 stops every rank with its words: the others would wait in the next collective for ever.
    """
    state = PartialState()
    box: list[tuple[Value | None, str | None]] = [(None, None)]
    failure: Exception | None = None
    if state.is_main_process:
        try:
            box = [(make(), None)]
        except Exception as error:
            failure, box = error, [(None, f"{type(error).__name__}: {error}")]
    if state.num_processes > 1:
        broadcast_object_list(box, from_process=0)
    if failure is not None:
        raise failure
    value, words = box[0]
    if words is not None:
        raise EnvschedError(f"rank 0 stopped the run: {words}")
    return value


def refuse_disagreement(what: str, digest: str) -> None:
    """Compare a digest over the ranks.

    Raises:
        StateError: on every rank, with each digest and the ranks that have it.
    """
    digests = gather_object([digest])
    ranks_of: dict[str, list[int]] = {}
    for rank, value in enumerate(digests):
        ranks_of.setdefault(value, []).append(rank)
    if len(ranks_of) > 1:
        seen = "; ".join(f"rank {', '.join(map(str, ranks))}: {value}" for value, ranks in ranks_of.items())
        raise StateError(f"the ranks disagree on {what}: {seen}. Give every rank the same pool, config and code, then --resume")
