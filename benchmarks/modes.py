"""How well each graph mode ranks tasks that were never seen, where environment, topology or both decide the variance."""

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
from envsched.maintained import LargePool, StaticGraph, build_lists, build_stream
from envsched.maintained.pool import group_variances
from envsched.pool import Pool
from envsched.predict import Forecast, build_predictor
from envsched.types import Environment, RolloutRecord, Status, Task

STEPS, REGIMES, SHARES = 40, {"environment": (1.0, 0.0), "topology": (0.0, 1.0), "mixed": (0.7, 0.7)}, (0.01, 0.05, 0.2)


def measure(arguments: Namespace) -> Figures:
    figures: Figures = {}
    print(f"  {'regime':12} {'observed':>8} {'exact':>8} {'static':>8} {'kernel':>8}   Spearman with the truth, tasks never seen")
    for regime in REGIMES:
        for share in SHARES:
            rows = [_spearman(regime, share, seed, arguments) for seed in range(arguments.seeds)]
            mean = {mode: float(np.mean([row[mode] for row in rows])) for mode in rows[0]}
            figures[f"{regime}/{share:g}"] = mean
            print(f"  {regime:12} {share:8.0%} {mean['exact']:8.3f} {mean['static']:8.3f} {mean['kernel']:8.3f}")
    return figures


def _spearman(regime: str, share: float, seed: int, arguments: Namespace) -> dict[str, float]:
    generator = np.random.default_rng(seed)
    offsets = offsets_of(arguments.tasks, arguments.environments, generator)
    environment_of = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    features, truth = _world(REGIMES[regime], environment_of, generator)
    pool = Pool(
        [Environment(key=f"e{e:06d}") for e in range(len(offsets) - 1)],
        [Task(key=f"t{i:08d}", environment=f"e{e:06d}") for i, e in enumerate(environment_of)],
    )
    config = SchedulerConfig()
    history, large = History(pool, config), None
    seen = generator.choice(arguments.tasks, max(STEPS, round(share * arguments.tasks)), replace=False)
    stream = build_stream(features, offsets)
    large = LargePool(features, offsets, build_lists(features, offsets, config.num_within, 0), config, stream=stream)
    for step, rows in enumerate(np.array_split(seen, STEPS)):
        rows = np.sort(rows)
        rewards = generator.binomial(1, truth[rows, None].repeat(8, 1)).astype(float)
        history.extend(
            RolloutRecord(pool.tasks[r].key, step, tuple(map(float, x)), (Status.OK,) * 8, step) for r, x in zip(rows, rewards, strict=True)
        )
        large.take(step, rows, np.full(len(rows), step), *group_variances(rewards, config.ddof))
    predicted = {"kernel": large.predict(STEPS)}
    for mode, kind in (("exact", ObservedGraph), ("static", StaticGraph)):
        graph = kind(features, environment_of, config.num_within, config.num_cross)
        forecast = Forecast(build_predictor(config, environment_of, len(offsets) - 1), history, graph, config)
        predicted[mode] = forecast.at(STEPS)[0].variance
    unseen = np.setdiff1d(np.arange(arguments.tasks), seen)
    variance = truth * (1 - truth)
    return {mode: float(scipy.stats.spearmanr(u[unseen], variance[unseen]).statistic) for mode, u in predicted.items()}


def _world(weights: tuple[float, float], environment_of: np.ndarray, generator: np.random.Generator) -> tuple[Features, np.ndarray]:
    """Chance of success from a smooth function of the environment's and the topology's latent; features see both, noisily."""
    num_tasks = len(environment_of)
    place = generator.normal(size=(environment_of[-1] + 1, 24))[environment_of]
    archetype = generator.normal(size=(max(10, num_tasks // 100), 16))[generator.zipf(1.3, num_tasks) % max(10, num_tasks // 100)]
    meaning, shape = place + 0.7 * generator.normal(size=place.shape), archetype + 0.3 * generator.normal(size=archetype.shape)
    by_environment = (place + 0.3 * (meaning - place)) @ generator.normal(size=24) / np.sqrt(24)
    by_topology = np.tanh(shape @ generator.normal(size=16) / 2)
    logit = 3 * (weights[0] * by_environment + weights[1] * by_topology)
    truth = 1 / (1 + np.exp(-logit))
    vectors = (_lifted(latent, size, generator) for latent, size in ((meaning, 96), (shape, 64)))
    return Features(*vectors), truth


def _lifted(latent: np.ndarray, size: int, generator: np.random.Generator) -> np.ndarray:
    rows = latent @ generator.normal(size=(latent.shape[1], size)) + 0.5 * generator.normal(size=(len(latent), size))
    return on_grid(rows / np.linalg.norm(rows, axis=1, keepdims=True))


if __name__ == "__main__":
    main("benchmarks.modes", measure, tasks=4_000, environments=80, seeds=3)
