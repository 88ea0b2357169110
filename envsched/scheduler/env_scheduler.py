"""The scheduler of envsched: predicted reward variance under quotas, with a lane that keeps environments covered.

Letters: N tasks, M environments, B batch.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from envsched import ops
from envsched.config import SchedulerConfig
from envsched.errors import ConfigError, StateError
from envsched.features import Features, build_features
from envsched.files import digest
from envsched.filters import Findings, Mask, cases_before, mask_guessed, mask_resting
from envsched.graph import ObservedGraph, RebuiltGraph, resolve_mode
from envsched.history import decayed_exposures, exposures
from envsched.maintained import BUILDERS, Closed, Composer, Follower, Leader, StaticGraph, StaticLists, limits_of
from envsched.pool import Pool
from envsched.predict import Calibration, Forecast, ListedPredictor, Prediction, Predictor, build_predictor
from envsched.scheduler.leases import Leases
from envsched.scheduler.recorded import RecordedScheduler
from envsched.scheduler.state import State
from envsched.select import Candidates, Composition, Draws, Quotas, compose, mix_of, recent_picks
from envsched.types import Batch, Pick


class EnvScheduler(RecordedScheduler):
    """Chooses tasks by predicted within-task reward variance (METHOD sections 2-8 and 12).

    Args:
        pool: N >= B tasks.
        config: every parameter of METHOD's table; ``estimator`` names the rule.
        seed: of the run.
        features: of this pool; built here where absent. Ranks, resumes and audits load the saved ones instead.
        name: under which manifests know this configuration.
        findings: what ``pool check`` found about this pool; none: nothing is known.
        leader: where ranks share the graph (``train.shared_graph``); made with this pool's features, offsets and config.

        lists: of graph_mode static, as ``StaticLists.load`` gives them; built here where absent.

    A task that was selected and whose record is still out holds a lease for ``lease_steps`` steps: it is not picked again.

    Raises:
        SelectionError: N < B.
        StateError: the features belong to another pool, or the lists to other features.
        ConfigError: lists for another mode.
    """

    def __init__(
        self,
        pool: Pool,
        config: SchedulerConfig = SchedulerConfig(),
        seed: int = 0,
        features: Features | None = None,
        name: str = "envsched",
        findings: Findings | None = None,
        leader: Leader | None = None,
        lists: StaticLists | None = None,
    ) -> None:
        mode = leader.mode if leader else resolve_mode(config.graph_mode, len(pool), _slots_of_sums(config))
        config = config.settled(sums=mode not in ("exact", "incremental_exact"))
        super().__init__(pool, config, seed, name)
        features = features if features is not None else build_features(pool)
        _refuse_other_pool(features, pool)
        self._large, self._graph = _keep_graph(pool, features, config, mode, leader, lists)
        self._features_digest, self.findings = features.digest, findings
        self._leases = Leases(config.lease_steps)
        natively = self._graph is not None and self._graph.mode == "incremental_exact" and ops.backend() == "native"
        kind = ListedPredictor if natively else Predictor
        self._predictor = build_predictor(config, pool.environment_of, len(pool.environments), kind)
        self._composer = Composer(features, pool.offsets, config) if natively else None
        self._quotas = Quotas(config.max_consecutive, config.max_per_environment_window, config.max_per_environment)
        self._mix = mix_of(config, len(pool))
        self._discount_decays = config.estimator == "envsched"  # METHOD 12.4
        self._follow_history()

    def select(self, step: int) -> Batch:
        """As every scheduler's; what it gives is under a lease until its records are observed."""
        batch = super().select(step)
        self._leases.note(step, batch.tasks)
        return batch

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
        digests = super().digests(step) | {"features": self._features_digest, "graph": (self._large or self._graph).digest}
        leased = self._leases.mask(step, self.history).reasons
        if leased:
            digests["leases"] = digest("envsched leases 1", *(f"{row} {words}" for row, words in sorted(leased.items())))
        return digests | ({"findings": self.findings.digest} if self.findings else {})

    def _saved_state(self) -> State:
        return replace(super()._saved_state(), leases=self._leases.out(self.history))

    def _go_on_from(self, state: State) -> None:
        super()._go_on_from(state)
        self._leases = Leases(self.config.lease_steps, state.leases)

    @property
    def graph_header(self) -> Mapping[str, Any]:
        """Mode of the graph, what its lists may lack and what neighbours tell, as manifests say it."""
        return {**(self._large or self._graph).header, "prior": "paper" if self.config.estimator == "paper" else self.config.prior}

    def predict(self, step: int) -> np.ndarray:
        """Predicted variance [N] of every task at ``step``, from what was observed before it."""
        if self._large:
            return self._large.predict(step, self.history, self.seed)
        return self._forecast.at(step)[0].variance

    def _follow_history(self) -> None:
        if not self._large:
            self._forecast = Forecast(self._predictor, self.history, self._graph, self.config)

    def _choose(self, step: int) -> Batch:
        if self._large:
            shut, barred = self.masked(step), self.barred(step)
            closed = Closed(*self._leases.live(step, self.history), shut.rows, barred.rows)
            batch = self._large.choose(step, self.history, self.seed, closed)
            picks = tuple(replace(pick, terms={**pick.terms, **self._floor(self.pool.row_of(pick.task))}) for pick in batch.picks)
            return replace(batch, picks=picks, masked=self._by_key(shut.union([barred])))
        prediction, calibration = self._forecast.outlook(step)
        shut, barred = self.masked(step), self.barred(step)
        closed = Closed(*self._leases.live(step, self.history), shut.rows, barred.rows)
        composition = self._compose(step, prediction, calibration, closed)
        return self._batch(step, composition, prediction, calibration, self._by_key(shut.union([barred])))

    def _compose(self, step: int, prediction: Prediction, calibration: Calibration, closed: Closed) -> Composition:
        variance, headroom = prediction.variance, prediction.terms["headroom"]
        selected = exposures(self.history, step)
        decayed = decayed_exposures(self.history, step, self.config.half_life)
        if self._composer:
            visits = self.history.visits.before(step)
            made = self._composer.compose(step, self.seed, visits, selected, decayed, variance, headroom, calibration, closed)
            if made:
                return made
        candidates = self._candidates(step, variance, headroom, calibration, selected, decayed, closed)
        return compose(candidates, self._quotas, self._mix, Draws(self.seed, step))

    def _candidates(
        self,
        step: int,
        variance: np.ndarray,
        headroom: np.ndarray,
        calibration: Calibration,
        selected: np.ndarray,
        decayed: np.ndarray,
        closed: Closed,
    ) -> Candidates:
        visits, scale = self.history.visits.before(step), self.config.exposure_scale
        return Candidates(
            offsets=self.pool.offsets,
            score=calibration(variance) / calibration.max_variance,
            variance=variance,
            discount=scale / (scale + (decayed if self._discount_decays else selected)) * headroom,
            headroom=headroom,
            exposures=decayed,
            seen=selected > 0,
            masked=closed.shut(len(variance)),
            recent=recent_picks(
                np.concatenate([visits.row, closed.leased]),
                np.concatenate([visits.step, closed.since]),
                step,
                self.pool.environment_of,
                len(self.pool.environments),
                self.config.window_steps,
            ),
            similarity=self._graph.similarity,
            barred=closed.barred,
        )

    def masked(self, step: int) -> Mask:
        """Tasks that are not picked at ``step``: by what ``pool check`` found, under a lease, resting; with the reasons."""
        nobody = Mask.of({}, len(self.pool))
        found = self.findings.mask if self.findings else nobody
        return found.union([self._leases.mask(step, self.history), self.resting(step)])

    def resting(self, step: int) -> Mask:
        """Tasks that the progress filter shuts out at ``step``, with the reasons."""
        if "progress" not in self.config.filters:
            return Mask.of({}, len(self.pool))
        floors, shut = (self.findings.floors, self.findings.mask.rows) if self.findings else (None, None)
        return mask_resting(self.history.visits, step, len(self.pool), self.config, floors, shut)

    def barred(self, step: int) -> Mask:
        """Tasks kept from the exploitation lane at ``step`` for guessed identifiers, with the reasons."""
        on = "guesses" in self.config.filters
        return mask_guessed(cases_before(self.history, step), step, self.pool, self.config) if on else Mask.of({}, len(self.pool))

    def _by_key(self, mask: Mask) -> dict[str, str]:
        return {self.pool.tasks[row].key: words for row, words in sorted(mask.reasons.items())}

    def _floor(self, row: int) -> dict[str, float]:
        """Reward of doing nothing, where it is known."""
        known = self.findings and not np.isnan(self.findings.floors[row])
        return {"floor": float(self.findings.floors[row])} if self.findings and known else {}

    def _batch(
        self, step: int, composition: Composition, prediction: Prediction, calibration: Calibration, masked: Mapping[str, str]
    ) -> Batch:
        picks = []
        rows = [choice.row for choice in composition.choices]
        score = dict(zip(rows, calibration(prediction.variance[rows]) / calibration.max_variance, strict=True))
        for choice in composition.choices:
            task, row = self.pool.tasks[choice.row], choice.row
            terms = {name: float(values[row]) for name, values in prediction.terms.items()}
            terms |= self._floor(row)
            terms |= {"variance": float(prediction.variance[row]), "discount": choice.discount, "penalty": choice.penalty}
            picks.append(Pick(task.key, task.environment, choice.lane, float(score[row]), terms, choice.bound_by))
        return Batch(step, tuple(picks), composition.relaxed, masked=masked)


def _keep_graph(
    pool: Pool, features: Features, config: SchedulerConfig, mode: str, leader: Leader | None, lists: StaticLists | None
) -> tuple[Follower | None, ObservedGraph | None]:
    """What the mode asks for: maintained sums, or a graph for the timeline."""
    if leader:
        return Follower(pool, features, config, mode, leader), None
    slots = config.num_within, config.num_cross
    if lists and mode != "static":
        raise ConfigError(f"lists of all tasks are for graph_mode static; here it is {mode}: set it to static, or leave the lists out")
    if lists:
        lists.refuse_stale(features, pool.offsets, *slots)
    if mode in BUILDERS and (mode != "static" or ops.backend() == "native"):
        ops.require_built(f"graph_mode {mode}")
        return Follower(pool, features, config, mode, lists=lists), None
    if mode == "static":
        return None, StaticGraph(features, pool.environment_of, *slots, limits_of(config), lists)
    kind = {"exact": RebuiltGraph, "incremental_exact": ObservedGraph}[mode]
    return None, kind(features, pool.environment_of, *slots)


def _slots_of_sums(config: SchedulerConfig) -> int:
    """Of the longer lists, in the modes that keep sums."""
    settled = config.settled(sums=True)
    return max(settled.num_within, settled.num_cross)


def _refuse_other_pool(features: Features, pool: Pool) -> None:
    if features.pool_fingerprint != pool.fingerprint:
        raise StateError(
            f"the features were made for the pool with fingerprint {features.pool_fingerprint[:12]!r}, this pool has "
            f"{pool.fingerprint[:12]!r}; build the features again, or give the pool they belong to"
        )
