"""Rollouts on the bundled pool, for neighbours.py: by the tiny policy as it ships, or by a scripted expert.

Usage: python -m benchmarks.bundled_rollouts tiny|expert --out rollouts.jsonl [--groups 3] [--group-size 8] [--forget 0.25]

The expert follows the reference solution with each call left out with a fixed probability: calls and checks run for real, only the
choice of calls is scripted. Each of several groups of a task is written as a step of its own.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

import envsched.pool
from envsched.files import canonical_json, write_atomically
from envsched.pool import Pool
from envsched.progress import track
from envsched.runtime import EnvironmentRuntime

SOLUTIONS = Path(envsched.pool.__file__).parent / "bundled" / "solutions.json"
TINY_POLICY = Path(__file__).parents[1] / "models" / "tiny-policy"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policy", choices=("tiny", "expert"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--groups", type=int, default=3, help="groups of each task")
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--forget", type=float, default=0.25, help="expert: probability that a call is left out")
    options = parser.parse_args()
    pool, lines = Pool.bundled(), []
    for step in range(options.groups):
        rewards = (
            tiny(pool, options.group_size, step) if options.policy == "tiny" else expert(pool, options.group_size, options.forget, step)
        )
        for task, group in zip(pool.tasks, rewards, strict=True):
            lines.append(canonical_json({"task": task.key, "step": step, "rewards": group}))
    write_atomically(options.out, "".join(f"{line}\n" for line in lines))
    return 0


def tiny(pool: Pool, group_size: int, seed: int) -> list[list[float]]:
    """Rewards [N, G] of the tiny policy, sampled at temperature 1."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from scripts.tiny_policy.rollouts import rewards_of

    model, tokenizer = AutoModelForCausalLM.from_pretrained(TINY_POLICY), AutoTokenizer.from_pretrained(TINY_POLICY, padding_side="left")
    return rewards_of(model.eval(), tokenizer, pool, list(pool.tasks), group_size, seed)


def expert(pool: Pool, group_size: int, forget: float, seed: int) -> list[list[float | None]]:
    """Rewards [N, G]; none where an environment or its checks failed."""
    solutions = json.loads(SOLUTIONS.read_text())
    with EnvironmentRuntime(pool) as runtime:
        rewards = []
        for row, task in enumerate(track(pool.tasks, "rollouts")):
            rng = np.random.Generator(np.random.Philox(key=[seed, row]))
            rewards.append([_attempt(runtime, task.key, solutions[task.key], forget, rng) for _ in range(group_size)])
    return rewards


def _attempt(runtime: EnvironmentRuntime, task: str, calls: list[dict], forget: float, rng: np.random.Generator) -> float | None:
    with runtime.start(task, 0) as episode:
        for call in calls:
            if rng.random() >= forget:
                episode.call(call["name"], call["arguments"])
        return episode.score().reward


if __name__ == "__main__":
    sys.exit(main())
