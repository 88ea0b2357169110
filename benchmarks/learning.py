"""Does a scheduler make a policy learn faster? Real GRPO, real environments, the tiny policy, held-out tasks.

Usage: python -m benchmarks.learning --schedulers envsched,random,dps,mopps --seeds 5 --work DIR [--steps 40] [--out learning.json]

Every scheduler trains for S steps, random for 3 S, each seed in a run directory under --work; every few steps the checkpoint is scored
on the held-out tasks. Stopped at any moment, the same command goes on. What is compared stands in benchmarks/learning_plan.json with
the digests of pool, held-out tasks, weights and settings (written by --plan, before the first comparison); a run on other inputs is
refused. Letters: S steps.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean, median
from typing import Any

from envsched.errors import ConfigError
from envsched.files import digest, write_json
from envsched.history import read_records
from envsched.pool import Pool

ROOT = Path(__file__).parents[1]
CONFIG, MODEL, PLAN = ROOT / "configs/learning.yaml", ROOT / "models/tiny-policy", ROOT / "benchmarks/learning_plan.json"
HELD_OUT = ROOT / "envsched/pool/bundled/held_out"
STRETCH = 3  # random may take three times the steps
THREADS = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def plan_of(steps: int, every: int, samples: int) -> dict[str, Any]:
    """What is compared: digests of all inputs, and the schedule."""
    return {
        "steps": steps,
        "evaluate_every": every,
        "samples_per_held_out_task": samples,
        "pool": Pool.bundled().fingerprint,
        "held_out": Pool.from_envscaler(HELD_OUT).fingerprint,
        "weights": digest((MODEL / "model.safetensors").read_bytes()),
        "tokenizer": digest((MODEL / "tokenizer.json").read_bytes()),
        "settings": digest(CONFIG.read_bytes()),
    }


def train(run: Path, scheduler: str, seed: int, steps: int, every: int) -> None:
    """Train one arm to its last step; goes on where a stopped one was."""
    flags = ["--config", str(CONFIG), "--run-dir", str(run), "--scheduler", scheduler, "--seed", str(seed), "--max-steps", str(steps)]
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
            scores[step] = _score_checkpoint(run / f"checkpoint/checkpoint-{step}" if step else MODEL, samples)
            write_json(path, scores)
    return {step: scores[step] for step in sorted(scores) if step <= steps}


def _score_checkpoint(folder: Path, samples: int) -> float:
    import torch
    from transformers import AutoTokenizer, Qwen3ForCausalLM

    from scripts.tiny_policy.rollouts import rewards_of

    model = Qwen3ForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    pool = Pool.from_envscaler(HELD_OUT)
    rewards = rewards_of(model, AutoTokenizer.from_pretrained(MODEL, padding_side="left"), pool, list(pool.tasks), samples, seed=0)
    return fmean(fmean(group) for group in rewards)


def arm(work: Path, scheduler: str, seed: int, plan: Mapping[str, Any]) -> dict[str, Any]:
    """Train and score one scheduler with one seed."""
    steps = plan["steps"] * (STRETCH if scheduler == "random" else 1)
    run = work / f"{scheduler}-seed{seed}"
    train(run, scheduler, seed, steps, plan["evaluate_every"])
    scores = score(run, steps, plan["evaluate_every"], plan["samples_per_held_out_task"])
    lines = [json.loads(line) for line in (run / "logs/metrics.jsonl").read_text().splitlines()]
    first = read_records(run / "rollouts/step_0.jsonl")[0]
    print(f"{run.name}: held-out {scores[0]:.3f} -> {scores[steps]:.3f}, best {max(scores.values()):.3f}", flush=True)
    return {
        "scheduler": scheduler,
        "seed": seed,
        "scores": scores,
        "zero_signal_share": fmean(line["step/zero_signal"] for line in lines if line.get("step/zero_signal") is not None),
        "variance": fmean(line["step/variance"] for line in lines if line.get("step/variance") is not None),
        "first_median_reward": median(reward for record in first for reward in record.rewards if reward is not None),
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
            "at_S": interval(list(at_s.values())),
            "at_S_minus_best_of_random_in_3S": interval([at_s[seed] - best[seed] for seed in at_s if seed in best]) if best else None,
            "zero_signal_share": fmean(a["zero_signal_share"] for a in mine),
            "variance": fmean(a["variance"] for a in mine),
            "first_median_reward": fmean(a["first_median_reward"] for a in mine),
            "curve": {step: interval([a["scores"][step] for a in mine]) for step in mine[0]["scores"]},
        }
    return found


def draw(found: Mapping[str, Any], path: Path) -> None:
    """Curves with their intervals."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for scheduler, result in found.items():
        steps = list(result["curve"])
        mean, low, high = zip(*result["curve"].values(), strict=True)
        axes.plot(steps, mean, label=scheduler)
        axes.fill_between(steps, low, high, alpha=0.15)
    axes.set(xlabel="optimizer steps", ylabel="mean held-out reward")
    axes.legend()
    figure.savefig(path, dpi=150, bbox_inches="tight")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedulers", default="envsched,random")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40, help="S")
    parser.add_argument("--every", type=int, default=5, help="steps between two scorings")
    parser.add_argument("--samples", type=int, default=2, help="rollouts of each held-out task per scoring")
    parser.add_argument("--jobs", type=int, default=1, help="arms trained side by side, one core each")
    parser.add_argument("--work", type=Path, help="folder of the run directories")
    parser.add_argument("--out", type=Path, default=Path("learning.json"), help="result; the figure goes beside it")
    parser.add_argument("--plan", action="store_true", help="write benchmarks/learning_plan.json and stop")
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error("--seeds: an interval needs two or more")
    plan = plan_of(options.steps, options.every, options.samples)
    if options.plan:
        write_json(PLAN, plan)
        return 0
    refuse_other_inputs(json.loads(PLAN.read_text()), plan)
    pairs = [(scheduler, seed) for seed in range(options.seeds) for scheduler in options.schedulers.split(",")]
    with ThreadPoolExecutor(options.jobs) as jobs:
        arms = list(jobs.map(lambda pair: arm(options.work, *pair, plan), pairs))
    found = verdict(arms, options.steps)
    write_json(options.out, {"plan": plan, "arms": arms, "verdict": found})
    draw(found, options.out.with_suffix(".png"))
    return 0


def refuse_other_inputs(planned: Mapping[str, Any], came: Mapping[str, Any]) -> None:
    """Raises ConfigError when the inputs are not those of the plan."""
    changed = [f"{name}: planned {value}, came {came[name]}" for name, value in planned.items() if came[name] != value]
    if changed:
        raise ConfigError(f"benchmarks/learning_plan.json is for other inputs ({'; '.join(changed)}); write a new plan with --plan")


if __name__ == "__main__":
    sys.exit(main())
