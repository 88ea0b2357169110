"""The three ways into a batch: cold start, coverage, exploitation (METHOD 8).

Letters: N tasks, M environments, B batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from envsched.select.ledger import Ledger, names_of
from envsched.types import Lane

Similarity = Callable[[np.ndarray, np.ndarray], np.ndarray]  # rows [a], rows [b] -> float64 [a, b] in [0, 1]
NOVELTY_DIGITS = 6  # novelty is compared at this many digits: a backend's rounding noise decides nothing
FIRST_SHORTLIST = 256


@dataclass(frozen=True, slots=True)
class Choice:
    """One pick by row. ``discount`` and ``penalty`` are those that ranked it: 1 and 0 outside exploitation."""

    row: int
    lane: Lane
    discount: float = 1.0
    penalty: float = 0.0
    bound_by: tuple[str, ...] = ()


def fill_by_environment(
    lane: Lane,
    order: np.ndarray,
    offsets: np.ndarray,
    ledger: Ledger,
    wanted: int,
    choose: Callable[[np.ndarray], int],
    ahead: Callable[[np.ndarray, int], np.ndarray],
) -> list[Choice]:
    """Visit environments in ``order``, each once before any twice, and take one task at each visit.

    Args:
        order: environments, int64 [<= M].
        offsets: rows of each environment, int64 [M + 1].
        wanted: picks to make.
        choose: the task to take among the rows [n] that may be picked.
        ahead: which of the rows [n] that may not be picked rank before a chosen one, bool [n].

    A quota binds a pick when it shut out an environment that was due before, or a task of this one that ranks before.
    """
    choices: list[Choice] = []
    bound: set[str] = set()
    due = order.tolist()
    while len(choices) < wanted:
        assert due, "the ledger promised a pick and none is left"
        again = []
        for e in due:
            if len(choices) == wanted:
                break
            rows = np.arange(int(offsets[e]), int(offsets[e + 1]))
            free = ledger.free(rows)
            shut = rows[~free & ~ledger.taken[rows]]
            if not free.any():
                bound |= names_of(ledger.verdict(shut))
                continue
            row = int(choose(rows[free]))
            if len(shut):
                bound |= names_of(ledger.verdict(shut[ahead(shut, row)]))
            ledger.take(row)
            choices.append(Choice(row, lane, bound_by=tuple(sorted(bound))))
            bound = set()
            again.append(e)
        due = again
    return choices


def cold_start(
    ledger: Ledger, offsets: np.ndarray, order: np.ndarray, starts: np.ndarray, wanted: int, similarity: Similarity
) -> list[Choice]:
    """A batch without history: environments in a seeded order, inside one farthest-first from a seeded start.

    Args:
        order: all environments, int64 [M].
        starts: where in its range an environment's first task lies, float64 [M] in [0, 1).
    """

    def choose(rows: np.ndarray) -> int:
        e = ledger.environment_of[rows[0]]
        picked = np.flatnonzero(ledger.taken[offsets[e] : offsets[e + 1]]) + offsets[e]
        if len(picked):
            return int(_least(rows, _closeness(rows, picked, similarity))[0])
        return int(rows[int(starts[e] * len(rows))])

    return fill_by_environment(Lane.COLD_START, order, offsets, ledger, wanted, choose, _none_ahead)


def cover(
    ledger: Ledger,
    offsets: np.ndarray,
    order: np.ndarray,
    exposures: np.ndarray,
    seen: np.ndarray,
    variance: np.ndarray,
    explores: np.ndarray,
    similarity: Similarity,
) -> list[Choice]:
    """The coverage lane: under-observed environments first.

    Inside an environment the pick is the least observed task where ``explores`` says so, else the one of highest predicted
    variance; ties by observation, then novelty (least like any task of the environment that was ever selected), then row.

    Args:
        order: environments by fewest decayed exposures, int64 [M].
        exposures: decayed exposures of tasks, float64 [N].
        seen: tasks selected in any earlier step, bool [N].
        variance: u times headroom, float64 [N].
        explores: one entry per pick of the lane, bool.
    """
    pending = iter(explores)
    rule = {"explore": True}

    def choose(rows: np.ndarray) -> int:
        rule["explore"] = bool(next(pending))
        if not rule["explore"]:
            rows = _least(rows, -variance[rows])
        rows = _least(rows, exposures[rows])
        if len(rows) > 1:
            e = ledger.environment_of[rows[0]]
            known = (seen | ledger.taken)[offsets[e] : offsets[e + 1]]
            rows = _least(rows, _closeness(rows, np.flatnonzero(known) + offsets[e], similarity))
        return int(rows[0])

    def ahead(rows: np.ndarray, row: int) -> np.ndarray:
        return exposures[rows] < exposures[row] if rule["explore"] else variance[rows] > variance[row]

    return fill_by_environment(Lane.COVERAGE, order, offsets, ledger, len(explores), choose, ahead)


_AFTER_ALL_OTHERS = 2.0  # the worth of any task lies in [-penalty, 1]


def exploit(
    ledger: Ledger,
    score: np.ndarray,
    discount: np.ndarray,
    variance: np.ndarray,
    penalty: float,
    wanted: int,
    similarity: Similarity,
    barred: np.ndarray | None = None,
) -> list[Choice]:
    """The exploitation lane: greedy argmax of score * discount - penalty * max_{j in batch} similarity(i, j).

    Exact: the penalty only lowers a score, so score * discount bounds it from above. A shortlist holds the best bounds; a pick
    stands when it beats the best bound outside, else the shortlist doubles. Ties by variance, then row.

    Args:
        score, discount, variance: float64 [N], score in [0, 1].
        penalty: lambda_sim >= 0.
        wanted: picks to make; the batch so far is the ledger's.
        barred: bool [N], tasks that come after all others, whatever their score.
    """
    bounds = score * discount
    if barred is not None:
        bounds = np.where(barred, bounds - _AFTER_ALL_OTHERS * (1 + penalty), bounds)
    choices: list[Choice] = []
    size = FIRST_SHORTLIST
    rows, ceiling = _shortlist(bounds, ledger.taken, size)
    closeness = _closeness_to_batch(rows, ledger.rows, penalty, similarity)
    while len(choices) < wanted:
        worth = bounds[rows] - penalty * closeness
        free = ledger.free(rows)
        best = _best(worth, variance[rows], rows, free)
        if best is None or worth[best] <= ceiling:
            assert ceiling > -np.inf, "the ledger promised a pick and none is left"
            size *= 2
            rows, ceiling = _shortlist(bounds, ledger.taken, size)
            closeness = _closeness_to_batch(rows, ledger.rows, penalty, similarity)
            continue
        row = int(rows[best])
        better = rows[~free & (worth > worth[best])]
        bound_by = tuple(sorted(names_of(ledger.verdict(better))))
        choices.append(Choice(row, Lane.EXPLOITATION, float(discount[row]), float(penalty * closeness[best]), bound_by))
        ledger.take(row)
        closeness = np.maximum(closeness, _closeness_to_batch(rows, [row], penalty, similarity))
    return choices


def _shortlist(bounds: np.ndarray, taken: np.ndarray, size: int) -> tuple[np.ndarray, float]:
    """The tasks of the ``size`` best bounds (with all their ties), and the best bound outside."""
    rows = np.flatnonzero(~taken)
    if len(rows) <= size:
        return rows, -np.inf
    threshold = np.partition(bounds[rows], -size)[-size]
    inside = bounds[rows] >= threshold
    return rows[inside], float(bounds[rows[~inside]].max(initial=-np.inf))


def _best(worth: np.ndarray, variance: np.ndarray, rows: np.ndarray, free: np.ndarray) -> int | None:
    if not free.any():
        return None
    at = np.flatnonzero(free)
    at = at[worth[at] == worth[at].max()]
    at = at[variance[at] == variance[at].max()]
    return int(at[rows[at].argmin()])


def _closeness_to_batch(rows: np.ndarray, batch: Sequence[int], penalty: float, similarity: Similarity) -> np.ndarray:
    if penalty == 0 or not len(batch):
        return np.zeros(len(rows))
    return similarity(rows, np.asarray(batch)).max(axis=1)


def _closeness(rows: np.ndarray, known: np.ndarray, similarity: Similarity) -> np.ndarray:
    if not len(known):
        return np.zeros(len(rows))
    return np.round(similarity(rows, known).max(axis=1), NOVELTY_DIGITS)


def _least(rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    return rows[values == values.min()]


def _none_ahead(rows: np.ndarray, _row: int) -> np.ndarray:
    return np.zeros(len(rows), dtype=bool)
