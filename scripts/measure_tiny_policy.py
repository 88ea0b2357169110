"""How a policy's rewards spread over the bundled pool before any training: what a uniform draw of tasks would see.

Usage: python -m scripts.measure_tiny_policy [--policy models/tiny-policy] [--split train|held_out] [--group-size 8] [--out FILE]
"""

import argparse
from collections import defaultdict
from pathlib import Path
from statistics import mean, median, variance

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from envsched.files import write_json
from envsched.pool import Pool
from scripts.build_bundled_pool import FOLDER
from scripts.bundled_pool.build import drafts
from scripts.tiny_policy.rollouts import rewards_of

SILENT = 1e-9  # a group whose rewards differ by no more gives no signal


def spread(groups: list[list[float]]) -> dict[str, float]:
    """Statistics of groups of rewards: of their means, of their variances (ddof 1), and shares of groups."""
    silent = [max(group) - min(group) <= SILENT for group in groups]
    return {
        "tasks": len(groups),
        "mean_reward": mean(map(mean, groups)),
        "median_reward": median(map(mean, groups)),
        "mean_variance": mean(map(variance, groups)),
        "zero_signal": mean(silent),
        "all_solved": mean(min(group) == 1.0 for group in groups),
        "all_zero": mean(max(group) == 0.0 for group in groups),
    }


def measure(policy: Path, split: str, group_size: int, seed: int) -> dict[str, dict]:
    """Spread over all tasks, per environment, and per family of goals (a task counts in each family that it has)."""
    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(policy, dtype=torch.float32).eval()
    pool = Pool.bundled() if split == "train" else Pool.from_envscaler(FOLDER / "held_out")
    rewards = rewards_of(model, AutoTokenizer.from_pretrained(policy), pool, list(pool.tasks), group_size, seed)
    by_environment, by_family, made = defaultdict(list), defaultdict(list), drafts(split)
    for task, group in zip(pool.tasks, rewards, strict=True):
        by_environment[task.environment].append(group)
        for family in {goal.family for goal in made[task.key].goals}:
            by_family[family].append(group)
    return {
        "all": {split: spread(rewards)},
        "environment": {name: spread(groups) for name, groups in sorted(by_environment.items())},
        "family": {name: spread(groups) for name, groups in sorted(by_family.items())},
        "task_means": {task.key: mean(group) for task, group in zip(pool.tasks, rewards, strict=True)},
    }


def main() -> None:
    """Print the tables; with ``--out`` keep them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", type=Path, default=Path("models/tiny-policy"))
    parser.add_argument("--split", choices=("train", "held_out"), default="train")
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    measured = measure(arguments.policy, arguments.split, arguments.group_size, arguments.seed)
    for kind in ("all", "environment", "family"):
        columns = list(next(iter(measured[kind].values())))
        print(f"{kind:14s}" + "".join(f"{column:>15s}" for column in columns))
        for name, row in measured[kind].items():
            print(f"{name:14s}" + "".join(f"{row[column]:15.3f}" for column in columns))
    if arguments.out:
        write_json(arguments.out, measured)


if __name__ == "__main__":
    main()
