"""The scheduler of envsched: predicted reward variance under quotas, with a lane that keeps environments covered.

Letters: N tasks, M environments, B batch.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from envsched import ops
from envsched.config import SchedulerConfig
from envsched.errors import ConfigError, StateError
from envsched.features import Features, build_features
from envsched.filters import Mask, cases_before, mask_guessed, mask_resting
from envsched.graph import ObservedGraph, RebuiltGraph, resolve_mode
from envsched.history import decayed_exposures, exposures
from envsched.maintained import Follower, StaticGraph
from envsched.pool import Pool
from envsched.predict import Forecast, Prediction, build_predictor
from envsched.scheduler.recorded import RecordedScheduler
from envsched.select import Candidates, Composition, Draws, Mix, Quotas, compose, recent_picks
from envsched.types import Batch, Pick


class EnvScheduler(RecordedScheduler):
    """Chooses tasks by predicted within-task reward variance (METHOD sections 2-8 and 12).

    Args:
        pool: N >= B tasks.
        config: every parameter of METHOD's table; ``estimator`` names the rule.
        seed: of the run.
        features: of this pool; built here where absent. Ranks, resumes and audits load the saved ones instead.
        name: under which manifests know this configuration.

    Raises:
        SelectionError: N < B.
        StateError: the features belong to another pool.
    """

    def __init__(
        self,
        pool: Pool,
        config: SchedulerConfig = SchedulerConfig(),
        seed: int = 0,
        features: Features | None = None,
        name: str = "envsched",
    ) -> None:
        super().__init__(pool, config, seed, name)
        features = features if features is not None else build_features(pool)
        _refuse_other_pool(features, pool)
        self._large, self._graph = _keep_graph(pool, features, config)
        if self._large and config.filters:
            raise ConfigError(
                f"filters ({', '.join(config.filters)}) work with graph_mode exact, incremental_exact, and static without native "
                f"kernels; this scheduler keeps its graph in another way ({config.graph_mode}): choose one of these or no filter"
            )
        self._predictor = build_predictor(config, pool.environment_of, len(pool.environments))
        self._quotas = Quotas(config.max_consecutive, config.max_per_environment_window, config.max_per_environment)
        scored = config.estimator == "envsched"  # METHOD 12.3 and 12.4; the paper's rule is least-observed and undecayed
        explore = config.coverage_explore if scored else 1.0
        self._mix = Mix(config.batch_size, config.coverage_share, explore, config.similarity_penalty)
        self._discount_decays = scored
        self._follow_history()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self._follow_history()

    def metrics(self) -> dict[str, float]:
        """As every scheduler's, with the calibration of all predictions that came true so far."""
        steps = self.history.visits.step
        if not len(steps):
            return super().metrics()
        following = int(steps[-1]) + 1
        report = self._large.report(following, self.history, self.seed) if self._large else self._forecast.at(following)[2]
        return super().metrics() | report

    def digests(self, step: int) -> dict[str, str]:
        made_from = self._large or self._graph
        return super().digests(step) | {"features": made_from.features.digest, "graph": made_from.digest}

    @property
    def graph_header(self) -> Mapping[str, Any]:
        """Mode of the graph and what its lists may lack, as manifests and graph files say it."""
        return (self._large or self._graph).header

    def _follow_history(self) -> None:
        if not self._large:
            self._forecast = Forecast(self._predictor, self.history, self._graph, self.config)

    def _choose(self, step: int) -> Batch:
        if self._large:
            return self._large.choose(step, self.history, self.seed)
        prediction, score, _ = self._forecast.at(step)
        candidates = self._candidates(step, prediction.variance, score)
        return self._batch(step, compose(candidates, self._quotas, self._mix, Draws(self.seed, step)), prediction, score)

    def _candidates(self, step: int, variance: np.ndarray, score: np.ndarray) -> Candidates:
        visits, scale = self.history.visits.before(step), self.config.exposure_scale
        selected = exposures(self.history, step)
        decayed = decayed_exposures(self.history, step, self.config.half_life)
        return Candidates(
            offsets=self.pool.offsets,
            score=score,
            variance=variance,
            discount=scale / (scale + (decayed if self._discount_decays else selected)),
            exposures=decayed,
            seen=selected > 0,
            masked=self.resting(step).rows,
            recent=recent_picks(
                visits.row, visits.step, step, self.pool.environment_of, len(self.pool.environments), self.config.window_steps
            ),
            similarity=self._graph.similarity,
            barred=self.barred(step).rows,
        )

    def resting(self, step: int) -> Mask:
        """Tasks that the progress filter shuts out at ``step``, with the reasons."""
        on = "progress" in self.config.filters
        return mask_resting(self.history.visits, step, len(self.pool), self.config) if on else Mask.of({}, len(self.pool))

    def barred(self, step: int) -> Mask:
        """Tasks kept from the exploitation lane at ``step`` for guessed identifiers, with the reasons."""
        on = "guesses" in self.config.filters
        return mask_guessed(cases_before(self.history, step), step, self.pool, self.config) if on else Mask.of({}, len(self.pool))

    def _batch(self, step: int, composition: Composition, prediction: Prediction, score: np.ndarray) -> Batch:
        picks = []
        for choice in composition.choices:
            task, row = self.pool.tasks[choice.row], choice.row
            terms = {name: float(values[row]) for name, values in prediction.terms.items()}
            terms |= {"variance": float(prediction.variance[row]), "discount": choice.discount, "penalty": choice.penalty}
            picks.append(Pick(task.key, task.environment, choice.lane, float(score[row]), terms, choice.bound_by))
        return Batch(step, tuple(picks), composition.relaxed)


def _keep_graph(pool: Pool, features: Features, config: SchedulerConfig) -> tuple[Follower | None, ObservedGraph | None]:
    """What ``graph_mode`` names: maintained sums, or a graph for the timeline."""
    mode, slots = resolve_mode(config.graph_mode, len(pool)), (config.num_within, config.num_cross)
    if mode == "kernel":
        ops.require_native("graph_mode kernel")
    if mode == "kernel" or (mode == "static" and ops.backend() == "native"):
        return Follower(pool, features, config, mode), None
    kind = {"exact": RebuiltGraph, "incremental_exact": ObservedGraph, "static": StaticGraph}[mode]
    return None, kind(features, pool.environment_of, *slots)


def _refuse_other_pool(features: Features, pool: Pool) -> None:
    if features.pool_fingerprint != pool.fingerprint:
        raise StateError(
            f"the features were made for the pool with fingerprint {features.pool_fingerprint[:12]!r}, this pool has "
            f"{pool.fingerprint[:12]!r}; build the features again, or give the pool they belong to"
        )
