"""How well each graph mode ranks tasks that were never seen, where environment, topology or both decide the variance.

Three regimes at 1%, 5% and 20% of tasks observed over 40 steps, with topologies that all differ and with canonical ones that many
tasks share; and a long run of 200 steps in which most evidence is dead: 12 half-lives old on average. Each under both priors.
"""

import itertools
from argparse import Namespace

import numpy as np
import scipy.stats

from benchmarks.measure import Figures, main
from benchmarks.worlds import offsets_of
from envsched.config import SchedulerConfig
from envsched.features import Features
from envsched.features.features import on_grid
from envsched.graph import ObservedGraph
from envsched.history import History
from envsched.maintained import BUILDERS, LargePool
from envsched.maintained.pool import group_moments
from envsched.pool import Pool
from envsched.predict import Forecast, build_predictor
from envsched.types import Environment, RolloutRecord, Status, Task

REGIMES = {"environment": (1.0, 0.0), "topology": (0.0, 1.0), "mixed": (0.7, 0.7)}
RUNS = ((0.01, 40), (0.05, 40), (0.2, 40), (0.2, 200))  # share of tasks observed, steps
MODES = {name: (name, False) for name in BUILDERS} | {"static+prior": ("static", True), "kernel+prior": ("kernel", True)}
PRIORS = ("pooled", "residual")


def measure(arguments: Namespace) -> Figures:
    figures: Figures = {}
    print("  Spearman with the truth, tasks never seen")
    print(
        f"  {'topologies':10} {'regime':12} {'observed':>8} {'steps':>5} {'prior':>8} {'exact':>8}"
        + "".join(f" {name:>12}" for name in MODES)
        + " live - exact, 95%   live - exact with residuals"
    )
    for kind in ("different", "canonical"):
        for regime in REGIMES:
            for share, steps in RUNS:
                rows = [_spearman(kind == "canonical", regime, share, steps, seed, arguments) for seed in range(arguments.seeds)]
                for prior in PRIORS:
                    mean = {mode: float(np.mean([row[prior][mode] for row in rows])) for mode in ("exact", *MODES)}
                    behind = {
                        name: _interval([row[prior]["live"] - row[of]["exact"] for row in rows])
                        for name, of in (("live_minus_exact", prior), ("live_minus_exact_with_residuals", "residual"))
                    }
                    figures[f"{kind}/{regime}/{share:g}/{steps}/{prior}"] = mean | behind
                    shown = "".join(f" {mean[mode]:12.3f}" for mode in MODES)
                    shown += "".join(f" {low:+.3f} to {high:+.3f}" for low, high in behind.values())
                    print(f"  {kind:10} {regime:12} {share:8.0%} {steps:5} {prior:>8} {mean['exact']:8.3f}{shown}", flush=True)
    return figures


def _interval(differences: list[float]) -> tuple[float, float]:
    """95% interval of the mean (Student's t); with one seed the difference itself, twice."""
    half = 0.0
    if len(differences) > 1:
        half = float(scipy.stats.sem(differences) * scipy.stats.t.ppf(0.975, len(differences) - 1))
    return float(np.mean(differences)) - half, float(np.mean(differences)) + half


def _spearman(canonical: bool, regime: str, share: float, steps: int, seed: int, arguments: Namespace) -> dict[str, dict[str, float]]:
    """By prior and mode."""
    generator = np.random.default_rng(seed)
    offsets = offsets_of(arguments.tasks, arguments.environments, generator)
    environment_of = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    features, truth = _world(REGIMES[regime], environment_of, canonical, generator)
    pool = Pool(
        [Environment(key=f"e{e:06d}") for e in range(len(offsets) - 1)],
        [Task(key=f"t{i:08d}", environment=f"e{e:06d}") for i, e in enumerate(environment_of)],
    )
    history, larges = History(pool, SchedulerConfig()), {}
    for prior, (name, (mode, by_class)) in itertools.product(PRIORS, MODES.items()):
        config = SchedulerConfig(graph_mode=mode, class_prior=by_class, prior=prior)
        larges[prior, name] = LargePool(features, offsets, BUILDERS[mode](features, offsets, config), config)
    seen = generator.choice(arguments.tasks, max(steps, round(share * arguments.tasks)), replace=False)
    for step, rows in enumerate(np.array_split(seen, steps)):
        rows = np.sort(rows)
        rewards = generator.binomial(1, truth[rows, None].repeat(8, 1)).astype(float)
        history.extend(
            RolloutRecord(pool.tasks[r].key, step, tuple(map(float, x)), (Status.OK,) * 8, step) for r, x in zip(rows, rewards, strict=True)
        )
        for large in larges.values():
            large.take(step, rows, np.full(len(rows), step), *group_moments(rewards, large.config.ddof))
    predicted = {names: large.predict(steps) for names, large in larges.items()}
    for prior in PRIORS:
        config = SchedulerConfig(prior=prior).settled()
        graph = ObservedGraph(features, environment_of, config.num_within, config.num_cross)
        forecast = Forecast(build_predictor(config, environment_of, len(offsets) - 1), history, graph, config)
        predicted[prior, "exact"] = forecast.at(steps)[0].variance
    unseen = np.setdiff1d(np.arange(arguments.tasks), seen)
    variance = truth * (1 - truth)
    found: dict[str, dict[str, float]] = {prior: {} for prior in PRIORS}
    for (prior, mode), u in predicted.items():
        found[prior][mode] = float(scipy.stats.spearmanr(u[unseen], variance[unseen]).statistic)
    return found


def _world(
    weights: tuple[float, float], environment_of: np.ndarray, canonical: bool, generator: np.random.Generator
) -> tuple[Features, np.ndarray]:
    """Chance of success from a smooth function of the environment's and the topology's latent; features see both, noisily.

    Canonical topologies: 20 tasks share one on average, by the same heavy-tailed law, and a task's own chance differs a little.
    """
    num_tasks = len(environment_of)
    place = generator.normal(size=(environment_of[-1] + 1, 24))[environment_of]
    num_archetypes = max(10, num_tasks // (20 if canonical else 100))
    archetype = generator.normal(size=(num_archetypes, 16))
    kind = generator.zipf(1.3, num_tasks) % num_archetypes
    own = 0.3 * generator.normal(size=(num_tasks, 16))
    meaning, shape = place + 0.7 * generator.normal(size=place.shape), archetype[kind] + own
    by_environment = (place + 0.3 * (meaning - place)) @ generator.normal(size=24) / np.sqrt(24)
    by_topology = np.tanh(shape @ generator.normal(size=16) / 2)
    truth = 1 / (1 + np.exp(-3 * (weights[0] * by_environment + weights[1] * by_topology)))
    cross = _lifted(archetype, 64, generator)[kind] if canonical else _lifted(shape, 64, generator)
    return Features(_lifted(meaning, 96, generator), cross), truth


def _lifted(latent: np.ndarray, size: int, generator: np.random.Generator) -> np.ndarray:
    rows = latent @ generator.normal(size=(latent.shape[1], size)) + 0.5 * generator.normal(size=(len(latent), size))
    return on_grid(rows / np.linalg.norm(rows, axis=1, keepdims=True))


if __name__ == "__main__":
    main("benchmarks.modes", measure, tasks=4_000, environments=80, seeds=3)
