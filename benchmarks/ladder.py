"""The way from the paper's rule to ours, one change at a time (METHOD section 12): what each step is worth.

    python -m benchmarks.ladder --learner slow --worlds 8 --json ladder.json

Worlds from 7000 on, on which nothing was chosen. A rung keeps the changes of those before it; the last is the default.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from envsched.baselines import build_scheduler
from envsched.config import SchedulerConfig
from envsched.files import canonical_json, digest, write_json
from envsched.scheduler import EnvScheduler
from envsched.simulate.calibration import load_kind
from envsched.simulate.court import journal_of, package_digest, run_jobs
from envsched.simulate.intervals import Interval, compared, interval
from envsched.simulate.runs import Setting, environment_pool, make_learner, run_schedule, summary, world_features
from envsched.types import Scheduler

FIRST_WORLD = 7000
REFERENCES = ("random", "oracle")


def _count_rollouts(scheduler: EnvScheduler, ours: EnvScheduler) -> None:
    scheduler._predictor.unit = ours._predictor.unit


def _decay_exposures(scheduler: EnvScheduler, ours: EnvScheduler) -> None:
    scheduler._discount_decays = ours._discount_decays


def _score_coverage(scheduler: EnvScheduler, ours: EnvScheduler) -> None:
    scheduler._mix = ours._mix


def _average_over_tasks(scheduler: EnvScheduler, ours: EnvScheduler) -> None:
    scheduler._predictor.prior = ours._predictor.prior


def _remember_by_visits(scheduler: EnvScheduler, ours: EnvScheduler) -> None:
    scheduler._predictor.half_life = ours._predictor.half_life
    scheduler._predictor.visit_half_life = ours._predictor.visit_half_life


def _leave_headroom(scheduler: EnvScheduler, ours: EnvScheduler) -> None:
    scheduler._predictor.mastery_weight = ours._predictor.mastery_weight


def _tell_residuals(scheduler: EnvScheduler, ours: EnvScheduler) -> None:
    """The residual prior, with the settings that depend on it."""
    default = EnvScheduler(scheduler.pool, SchedulerConfig(), scheduler.seed, scheduler._graph.features)
    scheduler._predictor.prior = default._predictor.prior
    scheduler._predictor.own_shrinkage = default._predictor.own_shrinkage
    scheduler._mix, scheduler._graph = default._mix, default._graph
    scheduler._follow_history()


# what each rung takes over from ours: settings of the config, or a part of the scheduler
Change = dict[str, Any] | Callable[[EnvScheduler, EnvScheduler], None]
RUNGS: dict[str, Change] = {
    "paper, without its isotonic map": {},
    "+ isotonic map (= paper)": {"calibrate": True},
    "+ evidence in rollouts": _count_rollouts,
    "+ decayed exposures in the discount": _decay_exposures,
    "+ scored coverage pick": _score_coverage,
    "+ task-averaged means": _average_over_tasks,
    "+ own evidence that fades by visits": _remember_by_visits,
    "+ rank by headroom": _leave_headroom,
    "+ neighbours tell residuals (= envsched)": _tell_residuals,
}
PAPER = {"estimator": "paper", "calibrate": False}


@dataclass(frozen=True)
class LadderJob:
    """One run of a rung, or of a reference."""

    name: str
    setting: Setting

    def key(self) -> str:
        return digest(canonical_json([self.name, asdict(self.setting)]), package_digest(), Path(__file__).read_text(encoding="utf-8"))


def climb(rung: str, setting: Setting) -> Scheduler:
    """The scheduler that stands on a rung, in the world of ``setting``."""
    pool = environment_pool(setting.num_environments, setting.tasks_per_environment)
    features = world_features(make_learner(setting, load_kind(setting.learner))[0], pool)
    names = list(RUNGS)
    changes = [RUNGS[name] for name in names[: names.index(rung) + 1]]
    settings = {name: value for change in changes if isinstance(change, dict) for name, value in change.items()}
    given = PAPER | settings, {"prior": "pooled"}
    scheduler, ours = (EnvScheduler(pool, SchedulerConfig(**one), setting.seed, features) for one in given)
    scheduler._composer = None  # it was built for the paper's settings; Python composes the same batches
    for change in changes:
        if not isinstance(change, dict):
            change(scheduler, ours)
    return scheduler


def run_job(job: LadderJob) -> dict[str, Any]:
    """A pure function of the job."""
    setting = job.setting
    pool = environment_pool(setting.num_environments, setting.tasks_per_environment)
    _, learner = make_learner(setting, load_kind(setting.learner))
    config = SchedulerConfig()
    scheduler = build_scheduler(job.name, pool, config, setting.seed) if job.name in REFERENCES else climb(job.name, setting)
    return summary(run_schedule(scheduler, learner, pool, setting.steps, config.group_size))["figures"]


def measure(settings: Sequence[Setting], workers: int, journal: Path | None) -> dict[str, dict[str, Interval]]:
    """Figures by rung, each with its interval over worlds; ``gained`` is the share that the rung adds, paired by world."""
    names = [*RUNGS, *REFERENCES]
    found = run_jobs([LadderJob(name, setting) for setting in settings for name in names], run_job, workers, journal, "runs")
    by_name = {name: found[i :: len(names)] for i, name in enumerate(names)}
    worlds = list(zip(by_name["random"], by_name["oracle"], strict=True))
    out, before = {}, None
    for rung in RUNGS:
        runs = [compared(one, low, high) for one, (low, high) in zip(by_name[rung], worlds, strict=True)]
        shares = [run["captured_share"] for run in runs]
        out[rung] = {
            "over_random": interval([one["mean_variance"] / low["mean_variance"] - 1 for one, (low, _) in zip(runs, worlds, strict=True)]),
            "captured_share": interval(shares),
            "gained": interval([b - a for a, b in zip(before, shares, strict=True)] if before else []),
            "environments": interval([run["environments"] for run in runs]),
            "final_hit_rate": interval([run["final_hit_rate"] for run in runs]),
            "distinct_tasks": interval([run["distinct_tasks"] for run in runs]),
        }
        before = shares
    return out


def row(rung: str, figures: dict[str, Interval]) -> str:
    """A line of the table in Markdown."""

    def cell(name: str, style: str) -> str:
        part = figures[name]
        if part["mean"] is None:
            return ""
        bounds = "" if part["low"] is None else f" [{part['low']:{style}}, {part['high']:{style}}]"
        return f"{part['mean']:{style}}{bounds}"

    return f"| {rung} | {figures['over_random']['mean']:+.0%} | {cell('captured_share', '.3f')} | {cell('gained', '+.3f')} | " + (
        f"{figures['environments']['mean']:.1f} | {figures['final_hit_rate']['mean']:.3f} | {figures['distinct_tasks']['mean']:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--learner", default="slow")
    parser.add_argument("--worlds", type=int, default=8)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    settings = [Setting(options.learner, FIRST_WORLD + i, options.steps) for i in range(options.worlds)]
    found = measure(settings, options.workers, journal_of(options.json))
    print("| rule | over random | share | gained | environments | hits, last 20 | tasks |\n|---|---|---|---|---|---|---|")
    for rung, figures in found.items():
        print(row(rung, figures))
    if options.json:
        write_json(options.json, {"learner": options.learner, "worlds": options.worlds, "steps": options.steps, "rungs": found})


if __name__ == "__main__":
    main()
