"""The timeline: what was predicted at each past step, how well it came true, and what is predicted now.

A pure function of (history, graph, config, step). It walks forward once and goes on from where it stood; a record of a step that
it passed already, or a question about one, makes it walk again from the start. It passes a step once the step has records: those
that all come late, when the next batch is out, cost nothing.

Letters: N tasks, V visits, t the step now, s a past step, u predicted and v realised variance of a visit, w its decayed weight.
"""

from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np

from envsched.config import SchedulerConfig
from envsched.history import History, decay
from envsched.history.statistics import statistics_of
from envsched.predict.calibration import Calibration, fit_calibration
from envsched.predict.predictor import Prediction, Predictor
from envsched.predict.priors import Graph
from envsched.predict.skill import cross_weight, report


class GrowingGraph(Graph, Protocol):
    """What the timeline asks of ``envsched.graph.ObservedGraph``."""

    def observe(self, rows: np.ndarray) -> None: ...

    def reset(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Pairs:
    """Visits with evidence and what was predicted of them just before, in columns sorted by step, then row."""

    step: np.ndarray  # int64 [V]
    policy_version: np.ndarray  # int64 [V]
    predicted: np.ndarray  # u, float64 [V]
    realised: np.ndarray  # v, float64 [V]
    environment: np.ndarray  # mean of the environment at the time, float64 [V]
    cross: np.ndarray  # what the cross relation said, float64 [V], NaN where it said nothing

    def __len__(self) -> int:
        return len(self.step)


class Forecast:
    """Predictions of a run, step by step.

    Args:
        predictor: predicts from statistics and graph.
        history: what came true; read, never written.
        graph: both relations; the timeline owns it from now on (it is reset, and observes what the history shows).
        config: half-lives and calibration.
    """

    def __init__(self, predictor: Predictor, history: History, graph: GrowingGraph, config: SchedulerConfig) -> None:
        self.predictor = predictor
        self.history = history
        self.graph = graph
        self.config = config
        self._start()

    def at(self, step: int) -> tuple[Prediction, np.ndarray, dict[str, float]]:
        """Prediction for ``step`` from what was known before it, score [N] in [0, 1], and how good past predictions were.

        The score is the calibrated prediction over the largest possible variance. The report has plain floats under
        ``calibration/...``; a figure that is not defined yet (a correlation of constants) is absent.
        """
        prediction, calibration = self.outlook(step)
        past, k_c = self._pairs(), self._predict(step)[1]
        numbers = {"calibration/blend": calibration.blend, "calibration/cross_weight": k_c}
        figures = numbers | report(past.step, past.predicted, past.realised, step, self.config.half_life)
        return prediction, calibration(prediction.variance) / calibration.max_variance, figures

    def outlook(self, step: int) -> tuple[Prediction, Calibration]:
        """Prediction for ``step`` from what was known before it, and the map to what comes true."""
        if step < self._frontier or self.history.digest_before(self._frontier) != self._replayed:
            self._start()
        steps = self.history.visits.before(step).step
        for past in np.unique(steps[steps >= self._frontier]).tolist():
            self._replay(past)
            self._frontier = past + 1
        self._replayed = self.history.digest_before(self._frontier)
        return self._predict(step)[0], self._calibration(step)

    def _start(self) -> None:
        self.graph.reset()
        self._frontier = 0
        self._latest: tuple[tuple[int, str], Prediction, float] | None = None
        self._replayed = self.history.digest_before(0)
        self._observed = np.zeros(len(self.history.pool), dtype=bool)
        self._chunks = [Pairs(*(np.empty(0, kind) for kind in (np.int64, np.int64, float, float, float, float)))]

    def _replay(self, step: int) -> None:
        """Predict ``step`` as it was then, note what came of it, and let the graph see what it showed."""
        prediction, _ = self._predict(step)
        visits = self.history.visits.at(step)
        known = ~np.isnan(visits.variance)
        row = visits.row[known]
        said = prediction.terms["cross_mass"][row] > 0
        self._chunks.append(
            Pairs(
                step=visits.step[known],
                policy_version=visits.policy_version[known],
                predicted=prediction.variance[row],
                realised=visits.variance[known],
                environment=prediction.terms["environment"][row],
                cross=np.where(said, prediction.terms["cross"][row], np.nan),
            )
        )
        first = row[~self._observed[row]]
        if len(first):
            self._observed[first] = True
            self.graph.observe(first)

    def _predict(self, step: int) -> tuple[Prediction, float]:
        """Prediction and k_c from visits and pairs earlier than ``step``; all steps before it are replayed.

        The latest one is kept: what is asked for a step now is what the replay of that step needs next, unless records came since.
        """
        asked = step, self.history.digest_before(step)
        if self._latest is not None and self._latest[0] == asked:
            return self._latest[1:]
        predictor, num_tasks = self.predictor, len(self.history.pool)
        visits, unit = self.history.visits.before(step), predictor.unit
        own = statistics_of(visits, step, predictor.half_life, unit, num_tasks, predictor.visit_half_life)
        long = statistics_of(visits, step, self.config.half_life, unit, num_tasks)
        short = statistics_of(visits, step, self.config.short_half_life, unit, num_tasks)
        k_c = self._cross_weight(step) if predictor.prior.weighs_cross else 1.0
        self._latest = (asked, predictor.predict(own, long, short, self.graph, k_c), k_c)
        return self._latest[1:]

    def _cross_weight(self, step: int) -> float:
        pairs = self._pairs()
        said = ~np.isnan(pairs.cross)  # never at the first step: nothing was observed before it
        d = (pairs.cross - pairs.environment)[said]
        r = (pairs.realised - pairs.environment)[said]
        return cross_weight(d, r, decay(step, pairs.policy_version[said], self.config.half_life))

    def _calibration(self, step: int) -> Calibration:
        """Fitted on all pairs but those of the first step with visits, where nothing told predictions apart."""
        maximum = self.predictor.max_variance
        if not self.config.calibrate:
            return Calibration(np.empty(0), np.empty(0), 0.0, maximum)
        pairs, visited = self._pairs(), self.history.visits.step
        later = pairs.step > visited[0] if len(visited) else np.zeros(0, dtype=bool)
        w = decay(step, pairs.policy_version[later], self.config.half_life)
        start, full = self.config.calibration_start, self.config.calibration_full
        return fit_calibration(pairs.predicted[later], pairs.realised[later], w, start=start, full=full, max_variance=maximum)

    def _pairs(self) -> Pairs:
        if len(self._chunks) > 1:
            self._chunks = [Pairs(*(np.concatenate([getattr(chunk, f.name) for chunk in self._chunks]) for f in fields(Pairs)))]
        return self._chunks[0]
