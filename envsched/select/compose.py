"""A batch from its lanes (METHOD 8).

Letters: N tasks, M environments, B batch, rho coverage share, e environment.
"""

from dataclasses import dataclass

import numpy as np

from envsched.config import SchedulerConfig
from envsched.select.draws import Draws
from envsched.select.lanes import Choice, Similarity, cold_start, cover, exploit
from envsched.select.ledger import Ledger
from envsched.select.quotas import Quotas, Recent
from envsched.types import Lane, Relaxation

_LEAST_COVERAGE = 0.25  # of the coverage lane, however few batches sweep the pool


@dataclass(frozen=True, slots=True)
class Candidates:
    """What is known about every task before a batch is chosen."""

    offsets: np.ndarray  # int64 [M + 1], rows of each environment
    score: np.ndarray  # float64 [N] in [0, 1], calibrated
    variance: np.ndarray  # float64 [N], u: breaks ties of the score and ranks inside the coverage lane
    discount: np.ndarray  # float64 [N], c0 / (c0 + exposures) * headroom
    headroom: np.ndarray  # float64 [N], what a high mean reward leaves of a task's rank
    exposures: np.ndarray  # float64 [N], decayed
    seen: np.ndarray  # bool [N], selected in any earlier step
    masked: np.ndarray  # bool [N], shut out by a filter
    recent: Recent
    similarity: Similarity
    barred: np.ndarray | None = None  # bool [N], kept from the exploitation lane while any other task is open

    @property
    def environment_of(self) -> np.ndarray:
        """int64 [N]."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


@dataclass(frozen=True, slots=True)
class Mix:
    """How a batch is mixed."""

    batch_size: int
    coverage_share: float  # rho
    coverage_explore: float  # chance that a coverage pick is the least observed task; 1: always (METHOD 8)
    similarity_penalty: float  # lambda_sim


def mix_of(config: SchedulerConfig, num_tasks: int) -> Mix:
    """How batches of N tasks are mixed.

    The paper's rule (METHOD 8) gives coverage rho B picks, each to the least observed task. Ours (METHOD 12.3) explores less,
    and shrinks the lane where a few batches sweep the pool anyway: rho * clip(N / (B s) - 1, 1/4, 1), s = ``coverage_sweep``.
    docs/replays.md shows what that is worth; the quarter keeps an environment that looks dead from starving.
    """
    config = config.settled()
    assert config.coverage_explore is not None, "settled"
    assert config.similarity_penalty is not None, "settled"
    share, explore = config.coverage_share, 1.0
    if config.estimator == "envsched":
        explore = config.coverage_explore
        if config.coverage_sweep > 0:
            share *= float(np.clip(num_tasks / (config.batch_size * config.coverage_sweep) - 1, _LEAST_COVERAGE, 1))
    return Mix(config.batch_size, share, explore, config.similarity_penalty)


@dataclass(frozen=True, slots=True)
class Composition:
    """B choices in the order they were made, and the quotas that could not be kept."""

    choices: list[Choice]
    relaxed: tuple[Relaxation, ...]


def compose(candidates: Candidates, quotas: Quotas, mix: Mix, draws: Draws) -> Composition:
    """Choose a batch; a pure function of its arguments.

    Nothing selected so far: cold start. Else round(rho * B) picks of coverage, then exploitation.

    Where METHOD is open: environments of equal decayed exposures follow the step's seeded order (row order would explore an
    alphabetical prefix of a large pool first); the coverage lane comes first, so the similarity penalty sees its picks.

    Raises:
        SelectionError: N < B.
    """
    environment_of = candidates.environment_of
    ledger = Ledger(quotas, candidates.recent, candidates.masked, environment_of, mix.batch_size)
    num_environments = len(candidates.offsets) - 1
    order = draws.order(num_environments)
    if not candidates.seen.any():
        choices = cold_start(ledger, candidates.offsets, order, draws.uniform(num_environments), mix.batch_size, candidates.similarity)
        return Composition(choices, tuple(ledger.relaxed))
    exposures_of_environment = np.bincount(environment_of, weights=candidates.exposures, minlength=num_environments)
    num_coverage = round(mix.coverage_share * mix.batch_size)
    choices = cover(
        ledger,
        candidates.offsets,
        order[np.argsort(exposures_of_environment[order], kind="stable")],
        candidates.exposures,
        candidates.seen,
        candidates.variance * candidates.headroom,
        draws.uniform(num_coverage) < mix.coverage_explore,
        candidates.similarity,
    )
    choices += exploit(
        ledger,
        candidates.score,
        candidates.discount,
        candidates.variance,
        mix.similarity_penalty,
        mix.batch_size - num_coverage,
        candidates.similarity,
        candidates.barred,
    )
    exploited = np.array([choice.row for choice in choices if choice.lane is Lane.EXPLOITATION], dtype=np.int64)
    return Composition(choices, tuple(ledger.relaxed) + let_in(exploited, candidates.barred))


def let_in(exploited: np.ndarray, barred: np.ndarray | None) -> tuple[Relaxation, ...]:
    """What is to be said when the exploitation lane, whose rows these are, had nothing but barred tasks left."""
    num_barred = 0 if barred is None else int(barred[exploited].sum())
    return (Relaxation("filters", f"{num_barred} picks: the exploitation lane had only barred tasks left"),) if num_barred else ()
