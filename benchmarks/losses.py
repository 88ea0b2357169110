"""Where our scheduler loses against the oracle: the same runs with a part of the truth told to it.

    python -m benchmarks.losses --worlds 3 --json losses.json

Worlds from 5000 on, which neither the calibration nor the court uses. Letters: N tasks.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from envsched.baselines import build_scheduler
from envsched.config import SchedulerConfig
from envsched.files import write_json
from envsched.predict import Calibration, Forecast, Prediction
from envsched.progress import track
from envsched.scheduler import EnvScheduler
from envsched.simulate.calibration import load_kind
from envsched.simulate.intervals import captured_share, interval
from envsched.simulate.runs import Setting, environment_pool, make_learner, run_schedule, summary, world_features

FIRST_WORLD = 5000


class ToldForecast(Forecast):
    """A forecast that knows the true variance of some tasks; ``reveal`` the truth [N] before each step."""

    # (visits [N], truth [N], truth at the last visit [N]) -> tasks that are told bool [N], variances [N]
    tell: Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]

    def reveal(self, truth: np.ndarray) -> None:
        steps = self.history.visits.step
        visited = self.history.visits.at(int(steps[-1])).row if len(steps) else np.empty(0, dtype=np.int64)
        then, now = getattr(self, "_truth", (np.zeros_like(truth), truth))
        then[visited] = now[visited]
        self._truth = then, truth

    def outlook(self, step: int) -> tuple[Prediction, Calibration]:
        prediction, calibration = super().outlook(step)
        then, now = self._truth
        visits = np.bincount(self.history.visits.before(step).row, minlength=len(now))
        told, variance = self.tell(visits, now, then)
        if not told.any():
            return prediction, calibration
        known = np.where(told, variance, calibration(prediction.variance))
        return replace(prediction, variance=known), replace(calibration, blend=0.0)


LEVELS = {
    "nothing": lambda visits, now, then: (visits < 0, now),
    "observed tasks, as they were at their last visit": lambda visits, now, then: (visits > 0, then),
    "tasks observed at least twice, as they are": lambda visits, now, then: (visits > 1, now),
    "observed tasks, as they are": lambda visits, now, then: (visits > 0, now),
    "unobserved tasks, as they are": lambda visits, now, then: (visits == 0, now),
}


def run(level: str, setting: Setting, config: SchedulerConfig) -> dict[str, float | None]:
    """Figures of one run; ``level`` is one of ``LEVELS`` or a scheduler's name."""
    pool = environment_pool(setting.num_environments, setting.tasks_per_environment)
    world, learner = make_learner(setting, load_kind(setting.learner))
    features = world_features(world, pool)
    if level not in LEVELS:
        return summary(run_schedule(build_scheduler(level, pool, config, setting.seed, features), learner, pool, setting.steps, 8))[
            "figures"
        ]
    scheduler = EnvScheduler(pool, config, setting.seed, features)
    forecast = ToldForecast(scheduler._predictor, scheduler.history, scheduler._graph, config)
    forecast.tell = LEVELS[level]
    scheduler._forecast = forecast

    def reveal() -> None:
        forecast.reveal(learner.moments()[1])

    reveal()
    return summary(run_schedule(scheduler, learner, pool, setting.steps, config.group_size, reveal))["figures"]


def measure(learner: str, worlds: int, config: SchedulerConfig) -> dict[str, dict[str, float | None]]:
    """Captured share by what was told, over ``worlds``."""
    shares: dict[str, list[float | None]] = {level: [] for level in [*LEVELS, "oracle_coverage"]}
    for seed in track(range(FIRST_WORLD, FIRST_WORLD + worlds), "worlds"):
        found = {level: run(level, Setting(learner, seed), config)["mean_variance"] for level in [*shares, "random", "oracle"]}
        for level in shares:
            shares[level].append(captured_share(*(found[name] for name in (level, "random", "oracle"))))
    return {level: interval(values) for level, values in shares.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--learner", default="slow")
    parser.add_argument("--worlds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = measure(options.learner, options.worlds, SchedulerConfig())
    for level, share in found.items():
        print(f"{level:52} {share['mean']:.3f}" + ("" if share["low"] is None else f" [{share['low']:.3f}, {share['high']:.3f}]"))
    if options.json:
        write_json(options.json, {"learner": options.learner, "worlds": options.worlds, "captured_share": found})


if __name__ == "__main__":
    main()
