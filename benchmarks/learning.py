"""Does a scheduler make a policy learn faster? Real GRPO, real environments, the tiny policy, held-out tasks.

Usage: python -m benchmarks.learning --schedulers envsched,random,dps,mopps --seeds 5 --work DIR [--steps 40]

Every scheduler trains for S steps, random for 3 S, each seed in a run directory under --work; every few steps the checkpoint is scored
on the held-out tasks. Stopped at any moment, the same command goes on. Finished arms are kept in benchmarks/results/learning, a folder
for each plan, and not run again; verdict.json and verdict.svg beside them are about all of these. What is compared stands in
benchmarks/learning_plan.json with the digests of pool, held-out tasks, weights, settings and code (written by --plan, before the first
comparison); to train an arm on other inputs is refused. Letters: S steps.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks.learning_pool import MODEL, kind_of, learning_pool, rewards_on, write_learning_pool
from envsched.errors import ConfigError
from envsched.files import canonical_json, digest, write_json
from envsched.history import read_records
from envsched.pool import Pool

ROOT = Path(__file__).parents[1]
CONFIG, PLAN = ROOT / "configs/learning.yaml", ROOT / "benchmarks/learning_plan.json"
HELD_OUT, RESULTS = ROOT / "envsched/pool/bundled/held_out", ROOT / "benchmarks/results/learning"
STRETCH = 3  # random may take three times the steps
THREADS = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def plan_of(steps: int, every: int, samples: int) -> dict[str, Any]:
    """What is compared: digests of all inputs, and the schedule."""
    return {
        "steps": steps,
        "evaluate_every": every,
        "samples_per_held_out_task": samples,
        "pool": learning_pool().fingerprint,
        "held_out": Pool.from_envscaler(HELD_OUT).fingerprint,
        "weights": digest((MODEL / "model.safetensors").read_bytes()),
        "tokenizer": digest((MODEL / "tokenizer.json").read_bytes()),
        "settings": digest(CONFIG.read_bytes()),
        "code": digest(*(f"{path.relative_to(ROOT)} {digest(path.read_bytes())}" for path in sources())),
    }


def sources() -> list[Path]:
    """What an arm is made by: the package, its kernels, the entry script, and the rollouts that score it."""
    folders = ("envsched", "kernels", "scripts/tiny_policy")
    inside = [path for folder in folders for kind in ("*.py", "*.cpp", "*.h") for path in (ROOT / folder).rglob(kind)]
    return sorted([*inside, ROOT / "train.py", Path(__file__)])


def digest_of(plan: Mapping[str, Any]) -> str:
    """Names a plan; arms of different plans are never mixed."""
    return digest(canonical_json(dict(plan)))


def train(run: Path, pool: Path, scheduler: str, seed: int, steps: int, every: int) -> None:
    """Train one arm to its last step; goes on where a stopped one was."""
    flags = ["--config", str(CONFIG), "--pool", str(pool), "--run-dir", str(run)]
    flags += ["--scheduler", scheduler, "--seed", str(seed), "--max-steps", str(steps)]
    words = [sys.executable, "train.py", *flags, "--set", f"train.checkpoint_every={every}", "--resume"]
    done = subprocess.run(words, cwd=ROOT, env={**os.environ, **THREADS}, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{run.name} stopped:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")


def score(run: Path, steps: int, every: int, samples: int) -> dict[int, float]:
    """Mean held-out reward by step, step 0 included; scored checkpoints are kept in the run directory."""
    path = run / "held_out.json"
    scores = {int(step): value for step, value in json.loads(path.read_text()).items()} if path.exists() else {}
    for step in [0, *range(every, steps + 1, every)]:
        if step not in scores:
            scores[step] = score_checkpoint(run / f"checkpoint/checkpoint-{step}" if step else MODEL, samples)
            write_json(path, scores)
    return {step: scores[step] for step in sorted(scores) if step <= steps}


@cache
def score_checkpoint(folder: Path, samples: int) -> float:
    """Mean reward of a policy on the held-out tasks, the same generator for every policy."""
    return fmean(map(fmean, rewards_on(Pool.from_envscaler(HELD_OUT), folder, samples, seed=0).values()))


def arm(work: Path | None, scheduler: str, seed: int, plan: Mapping[str, Any], results: Path) -> dict[str, Any]:
    """Train and score one scheduler with one seed, or give what ``results`` keeps of such an arm under the same plan."""
    kept = results / f"{scheduler}-seed{seed}.json"
    if not kept.exists() or json.loads(kept.read_text())["plan"] != digest_of(plan):
        steps = plan["steps"] * (STRETCH if scheduler == "random" else 1)
        assert work is not None
        run = work.resolve() / f"{scheduler}-seed{seed}"
        train(run, work.resolve() / "pool", scheduler, seed, steps, plan["evaluate_every"])
        scores = score(run, steps, plan["evaluate_every"], plan["samples_per_held_out_task"])
        write_json(kept, {"plan": digest_of(plan), "scheduler": scheduler, "seed": seed, "scores": scores, **figures(run, steps)})
    found = _read_arm(kept)
    print(f"{scheduler} seed {seed}: held-out {found['scores'][0]:.3f} -> best {max(found['scores'].values()):.3f}", flush=True)
    return found


def _read_arm(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text())
    return {**found, "scores": {int(step): value for step, value in found["scores"].items()}}


def kept_arms(folder: Path) -> list[dict[str, Any]]:
    """All finished arms of a plan, of schedulers with two seeds or more: an interval needs two."""
    arms = [_read_arm(path) for path in sorted(folder.glob("*-seed*.json"))]
    seeds = Counter(arm["scheduler"] for arm in arms)
    return [arm for arm in arms if seeds[arm["scheduler"]] > 1]


def figures(run: Path, steps: int) -> dict[str, Any]:
    """What the batches of a run were like, by step: share of groups without signal, variance, reward, kinds of tasks."""
    lines = [json.loads(line) for line in (run / "logs/metrics.jsonl").read_text().splitlines()][:steps]
    records = [read_records(run / f"rollouts/step_{step}.jsonl")[0] for step in range(steps)]
    kinds = Counter(kind_of(record.task) for batch in records for record in batch)
    by_step = {name: [line.get(f"step/{name}") for line in lines] for name in ("zero_signal", "variance", "reward")}
    return {
        "zero_signal_share": fmean(share for share in by_step["zero_signal"] if share is not None),
        "mean_variance": fmean(variance for variance in by_step["variance"] if variance is not None),
        "first_median_reward": median(reward for record in records[0] for reward in record.rewards if reward is not None),
        "different_tasks": len({record.task for batch in records for record in batch}),
        "kinds": {kind: count / kinds.total() for kind, count in sorted(kinds.items())},
        "by_step": by_step,
    }


def interval(values: list[float]) -> tuple[float, float, float]:
    """Mean and a 95% Student interval, of two values or more."""
    from scipy.stats import sem, t

    mean = fmean(values)
    half = float(t.ppf(0.975, len(values) - 1) * sem(values))
    return mean, mean - half, mean + half


def verdict(arms: list[dict[str, Any]], steps: int) -> dict[str, Any]:
    """Each scheduler at S steps against the best that random reaches within 3 S, paired by seed."""
    best = {a["seed"]: max(a["scores"].values()) for a in arms if a["scheduler"] == "random"}
    found = {}
    for scheduler in sorted({a["scheduler"] for a in arms}):
        mine = [a for a in arms if a["scheduler"] == scheduler]
        at_s = {a["seed"]: a["scores"][steps] for a in mine}
        found[scheduler] = {
            "seeds": sorted(at_s),
            "at_S": interval(list(at_s.values())),
            "at_S_minus_best_of_random_in_3S": interval([at_s[seed] - best[seed] for seed in at_s if seed in best]) if best else None,
            "zero_signal_share": fmean(a["zero_signal_share"] for a in mine),
            "mean_variance": fmean(a["mean_variance"] for a in mine),
            "first_median_reward": fmean(a["first_median_reward"] for a in mine),
            "curve": {step: interval([a["scores"][step] for a in mine]) for step in mine[0]["scores"]},
        }
    return found


def draw(found: Mapping[str, Any], steps: int, path: Path) -> None:
    """Curves with their intervals; a line at S, and a dotted one at the best of random's mean curve."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams["svg.hashsalt"] = "envsched"  # the same bytes for the same curves
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for scheduler, result in found.items():
        scored = list(result["curve"])
        mean, low, high = zip(*result["curve"].values(), strict=True)
        axes.plot(scored, mean, label=scheduler)
        axes.fill_between(scored, low, high, alpha=0.15)
    axes.axvline(steps, color="grey", linewidth=0.8)
    if "random" in found:
        axes.axhline(max(mean for mean, _, _ in found["random"]["curve"].values()), color="grey", linewidth=0.8, linestyle="dotted")
    axes.set(xlabel="optimizer steps", ylabel="mean held-out reward")
    axes.legend()
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedulers", default="envsched,random")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40, help="S")
    parser.add_argument("--every", type=int, default=10, help="steps between two scorings")
    parser.add_argument("--samples", type=int, default=2, help="rollouts of each held-out task per scoring")
    parser.add_argument("--jobs", type=int, default=1, help="arms trained side by side, one core each")
    parser.add_argument("--work", type=Path, help="folder of the run directories of this plan")
    parser.add_argument("--plan", action="store_true", help="write benchmarks/learning_plan.json and stop")
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error("--seeds: an interval needs two or more")
    came = plan_of(options.steps, options.every, options.samples)
    if options.plan:
        write_json(PLAN, came)
        return 0
    plan = json.loads(PLAN.read_text())
    folder = RESULTS / digest_of(plan)[:12]
    pairs = [(scheduler, seed) for seed in range(options.seeds) for scheduler in options.schedulers.split(",")]
    if not all((folder / f"{scheduler}-seed{seed}.json").exists() for scheduler, seed in pairs):
        if options.work is None:
            parser.error("--work: a folder for the run directories is needed")
        refuse_other_inputs(plan, came)
        write_learning_pool(options.work.resolve() / "pool")
        write_json(folder / "plan.json", plan)
    with ThreadPoolExecutor(options.jobs) as jobs:
        list(jobs.map(lambda pair: arm(options.work, *pair, plan, folder), pairs))
    found = verdict(kept_arms(folder), plan["steps"])
    write_json(folder / "verdict.json", found)
    draw(found, plan["steps"], folder / "verdict.svg")
    return 0


def refuse_other_inputs(planned: Mapping[str, Any], came: Mapping[str, Any]) -> None:
    """Raises ConfigError when the inputs are not those of the plan."""
    changed = [f"{name}: planned {value}, came {came[name]}" for name, value in planned.items() if came[name] != value]
    if changed:
        raise ConfigError(f"benchmarks/learning_plan.json is for other inputs ({'; '.join(changed)}); write a new plan with --plan")


if __name__ == "__main__":
    sys.exit(main())
