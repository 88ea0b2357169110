"""Fit the simulator's free numbers to the published Random row and to the predictability of real rollouts.

    python scripts/calibrate_simulator.py --output envsched/simulate/calibration.json

Nothing else enters the fit: no scheduler but uniform draws runs here. Worlds: 1000.. for the fit, 2000.. for the check; the court
evaluates on 0.. . About ten minutes on two cores.
"""

import argparse
import platform
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from itertools import repeat
from pathlib import Path

import numpy as np

from envsched.files import write_json
from envsched.progress import track
from envsched.simulate.calibration import FILE, module_digests
from envsched.simulate.learner import Learner, Tempo
from envsched.simulate.measures import leave_one_out_mean, neighbour_mean, slope, spearman
from envsched.simulate.world import Traits, make_world

BATCH_SIZE, GROUP_SIZE, NUM_STEPS = 64, 8, 200
WORKERS = 2
CELL_SIZE = 5  # rollouts of a real cell: 8, 4 and 3 in the three files
CHECKPOINT_STEPS = 400  # steps between the real checkpoints whose own-history figure is fitted
TARGETS = {
    "mean_variance": 0.03208,  # published Random row
    "median_variance": 0.01468,
    "median_reward": 0.595,
    "environment": (0.42 + 0.38 + 0.21) / 3,  # Spearman of the leave-one-out environment mean with a cell's variance, three files
    "text": 0.05,  # slope of (a task - its environment) on (its 6 text neighbours - its environment): .051 and .055 in two files
    "topology": 0.16,  # no public data has topologies: the weaker of the two text-neighbour figures is ASSUMED for it
    "own": 0.26,  # Spearman of a cell's variance with the same task's under the next policy, in the one file of graded rewards
}
STEP_OF = {"ease": 0.1, "log_luck": 0.1, "luck_spread": 0.1, "environment": 0.04, "text": 0.04, "topology": 0.04, "drift_steps": 80.0}
TARGET_OF = dict(zip(STEP_OF, ("median_reward", "mean_variance", "median_variance", "environment", "text", "topology", "own"), strict=True))
BOUNDS = {"environment": (0.0, 0.8), "text": (0.0, 0.5), "topology": (0.0, 0.5), "drift_steps": (20.0, 5000.0)}
START = {"ease": 0.53, "log_luck": 0.2, "luck_spread": 0.8, "environment": 0.28, "text": 0.02, "topology": 0.24, "drift_steps": 205.0}
TEMPOS = {"slow": Tempo(rate=0.1), "fast": Tempo(rate=0.3)}
ROW_ONLY = ("ease", "log_luck", "luck_spread")  # what the fast learner fits anew: the Random row; structure is the slow one's


def measure(traits: Traits, tempo: Tempo, world_seed: int) -> dict[str, float]:
    """The targets' counterparts in one world under uniform draws with replacement."""
    world = make_world(world_seed, traits)
    learner = Learner(world, tempo, seed=world_seed)
    rng = np.random.Generator(np.random.Philox(key=[world_seed, 99]))
    everyone, environment_of = np.arange(len(world)), world.environment_of
    start = learner.roll_out(everyone, CELL_SIZE).var(axis=1, ddof=1)
    environment_mean = leave_one_out_mean(start, environment_of)
    near = neighbour_mean(start, world.within, environment_of, 6, same_environment=True)
    across = neighbour_mean(start, world.cross, environment_of, 12, same_environment=False)
    variances, means = [], []
    for step in range(CHECKPOINT_STEPS):
        rows = rng.integers(len(world), size=BATCH_SIZE)
        rewards = learner.roll_out(rows, GROUP_SIZE)
        if step < NUM_STEPS:
            variances.append(rewards.var(axis=1, ddof=1))
            means.append(rewards.mean(axis=1))
        learner.train(rows, rewards)
    end = learner.roll_out(everyone, CELL_SIZE).var(axis=1, ddof=1)
    return {
        "mean_variance": float(np.mean(variances)),
        "median_variance": float(np.median(variances)),
        "median_reward": float(np.median(means)),
        "environment": spearman(environment_mean, start),
        "text": slope(near - environment_mean, start - environment_mean),
        "topology": spearman(across, start),
        "own": spearman(start, end),
        "rise": float(np.mean(means[-20:]) - np.mean(means[:20])),
        "zero_signal": float(np.mean(np.array(variances) == 0)),
    }


def averaged(traits: Traits, tempo: Tempo, seeds: range) -> dict[str, float]:
    with ProcessPoolExecutor(WORKERS) as workers:
        runs = list(workers.map(measure, repeat(traits), repeat(tempo), seeds))
    return {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}


def placed(values: dict[str, float], tempo: Tempo) -> tuple[Traits, Tempo]:
    traits = {name: value for name, value in values.items() if name != "drift_steps"}
    return Traits(**traits), replace(tempo, drift_steps=values["drift_steps"])


def fit(values: dict[str, float], names: tuple[str, ...], tempo: Tempo, seeds: range, rounds: int) -> dict[str, float]:
    """Broyden's method: one Jacobian by differences, then rank-one updates; a step is halved where it is long."""
    target = np.array([TARGETS[TARGET_OF[name]] for name in names])
    scale = np.array([STEP_OF[name] for name in names])

    def misfit(vector: np.ndarray) -> np.ndarray:
        found = averaged(*placed(values | dict(zip(names, vector, strict=True)), tempo), seeds)
        return np.array([found[TARGET_OF[name]] for name in names]) / target - 1

    def bounded(vector: np.ndarray) -> np.ndarray:
        limits = np.array([BOUNDS.get(name, (-10.0, 10.0)) for name in names])
        return np.clip(vector, limits[:, 0], limits[:, 1])

    here = np.array([values[name] for name in names])
    error = misfit(here)
    jacobian = np.stack([(misfit(here + unit) - error) / unit.sum() for unit in track(list(np.diag(scale)), "Jacobian")], axis=1)
    best, best_error = here, error
    for _ in track(range(rounds), "fit"):
        move = -np.linalg.lstsq(jacobian * scale, error, rcond=1e-3)[0] * scale
        move /= max(1.0, np.abs(move / scale).max() / 3)
        there = bounded(here + move)
        new_error = misfit(there)
        moved = there - here
        if moved @ moved > 0:
            weighted = moved / scale**2
            jacobian += np.outer(new_error - error - jacobian @ moved, weighted) / (moved @ weighted)
        here, error = there, new_error
        if np.abs(error).max() < np.abs(best_error).max():
            best, best_error = here, error
        print("  ".join(f"{name} {value:.4f} ({miss:+.1%})" for name, value, miss in zip(names, here, error, strict=True)), flush=True)
        if np.abs(best_error).max() < 0.004:
            break
    return values | {name: round(float(value), 5) for name, value in zip(names, best, strict=True)}


def residuals(found: dict[str, float]) -> dict[str, dict[str, float]]:
    return {name: {"target": round(goal, 5), "found": round(found[name], 5)} for name, goal in TARGETS.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=FILE)
    parser.add_argument("--worlds", type=int, default=40, help="worlds of the fit, and as many others for the check")
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    fit_seeds, check_seeds = range(1000, 1000 + options.worlds), range(2000, 2000 + options.worlds)
    values, learners = dict(START), {}
    for name, tempo in TEMPOS.items():
        values = fit(values, tuple(STEP_OF) if name == "slow" else ROW_ONLY, tempo, fit_seeds, options.rounds)
        traits, tempo = placed(values, tempo)
        found, check = averaged(traits, tempo, fit_seeds), averaged(traits, tempo, check_seeds)
        learners[name] = {
            "traits": asdict(traits),
            "tempo": asdict(tempo),
            "fit": residuals(found),
            "check": residuals(check),
            "not_fitted": {"rise": round(found["rise"], 4), "zero_signal": round(found["zero_signal"], 4)},
        }
    write_json(
        options.output,
        {
            "what": "written by scripts/calibrate_simulator.py; targets are documented there",
            "worlds": {"fit": list(fit_seeds), "check": list(check_seeds)},
            "python": platform.python_version(),
            "modules": module_digests(),
            "learners": learners,
        },
    )


if __name__ == "__main__":
    main()
