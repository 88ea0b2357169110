"""Rollouts on the bundled pool, for neighbours.py and ``envsched replay``: by the tiny policy, or by a scripted expert.

Usage: python -m benchmarks.bundled_rollouts tiny|expert --out rollouts.jsonl [--groups 3] [--group-size 8] [--forget 0.25]
       python -m benchmarks.bundled_rollouts tiny --out stages.jsonl --groups 1 --run RUN

With --run the tiny policy is recorded as it ships (step 0) and at every checkpoint of a training run (steps 10, 20, ...): one chain of
policies for ``envsched replay --rollouts stages.jsonl --pool bundled``. Stages that the file has already are not made again.
The expert follows the reference solution with each call left out with a fixed probability: calls and checks run for real, only the
choice of calls is scripted. Each of several groups of a task is written as a step of its own.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
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
    parser.add_argument("--run", type=Path, help="tiny: run directory whose checkpoints are recorded after the policy as it ships")
    parser.add_argument("--forget", type=float, default=0.25, help="expert: probability that a call is left out")
    options = parser.parse_args()
    pool = Pool.bundled()
    if options.run is not None:
        record_stages(pool, stages_of(options.run), options.group_size, options.out)
        return 0
    lines = []
    for step in range(options.groups):
        rewards = (
            tiny(pool, options.group_size, step) if options.policy == "tiny" else expert(pool, options.group_size, options.forget, step)
        )
        lines += _lines(pool, rewards, options.policy, step)
    write_atomically(options.out, "".join(lines))
    return 0


def stages_of(run: Path) -> dict[int, Path]:
    """Step -> folder of the policy as it ships and of a run's checkpoints."""
    checkpoints = {int(path.name.rpartition("-")[2]): path for path in (run / "checkpoint").glob("checkpoint-*")}
    return {0: TINY_POLICY, **dict(sorted(checkpoints.items()))}


def record_stages(pool: Pool, stages: Mapping[int, Path], group_size: int, out: Path) -> None:
    """A group of every task under every stage, written stage by stage."""
    text = out.read_text(encoding="utf-8") if out.exists() else ""
    known = {json.loads(line)["step"] for line in text.splitlines()}
    for step, folder in stages.items():
        if step not in known:
            text += "".join(_lines(pool, tiny(pool, group_size, step, folder), "tiny", step))
            write_atomically(out, text)


def _lines(pool: Pool, rewards: Sequence[Sequence[float | None]], policy: str, step: int) -> list[str]:
    """JSON lines with the names that both readers know."""
    return [
        canonical_json(
            {"environment": task.environment, "policy": policy, "rewards": group, "step": step, "task": task.key, "task_id": task.key}
        )
        + "\n"
        for task, group in zip(pool.tasks, rewards, strict=True)
    ]


def tiny(pool: Pool, group_size: int, seed: int, folder: Path = TINY_POLICY) -> list[list[float]]:
    """Rewards [N, G] of the tiny policy in ``folder``, sampled at temperature 1."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from scripts.tiny_policy.rollouts import rewards_of

    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(TINY_POLICY, padding_side="left")
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
