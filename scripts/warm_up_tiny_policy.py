"""Make the tiny policy: its tokenizer, its warm-up on demonstrations, its weights.

Usage: python -m scripts.warm_up_tiny_policy [--out models/tiny-policy] [--work runs/tiny-policy]

Stopped at any moment, the same command goes on from its last save in ``--work``.
"""

import argparse
import os
import random
import re
from pathlib import Path

import torch
import transformers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from envsched.files import digest, write_json
from envsched.pool import Pool
from envsched.progress import track
from scripts.bundled_pool.tasks import EASY, HARD
from scripts.tiny_policy.tokenizer import SPECIAL, build_tokenizer
from scripts.tiny_policy.traces import draw_task, habitual, skilled, unforgotten
from scripts.tiny_policy.warm_up import Demonstrations, Stage, WarmUp, build_model, copies, save_policy

SEED = 0
STAGES = (
    Stage("copy", 400, 5e-3, copies),
    Stage("skill", 1400, 3e-3, Demonstrations((skilled,), growing=True)),
    Stage("polish", 800, 2e-3, Demonstrations((skilled,), mixes=(HARD, EASY + HARD))),
    Stage("habits", 400, 1.5e-3, Demonstrations((habitual, habitual, unforgotten))),
)
SAVE_EVERY = 50


def make_tokenizer() -> PreTrainedTokenizerFast:
    """The tokenizer whose vocabulary is that of four thousand demonstrations."""
    generator = random.Random(f"{SEED} tokenizer")
    special = re.compile("|".join(map(re.escape, SPECIAL)))
    segments = (text for _ in range(4000) for text, _ in skilled(draw_task(generator), generator))
    return build_tokenizer(part for text in segments for part in special.split(text) if part)


def run_stage(stage: Stage, tokenizer: PreTrainedTokenizerFast, start: Path | None, work: Path) -> Path:
    """Run what is left of a stage, from the policy in ``start`` or from nothing; returns the folder of its policy."""
    finished, saved = work / stage.name, work / f"{stage.name}.pt"
    if (finished / "model.safetensors").exists():
        return finished
    model = build_model(tokenizer, SEED) if start is None else AutoModelForCausalLM.from_pretrained(start, dtype=torch.float32)
    warm_up = WarmUp(model, tokenizer, stage, SEED)
    if saved.exists():
        warm_up.load_state(torch.load(saved))
    for step in track(range(warm_up.step, stage.num_steps), f"{stage.name} from step {warm_up.step}"):
        loss = warm_up.run_step()
        if (step + 1) % SAVE_EVERY == 0:
            torch.save(warm_up.state(), saved.with_suffix(".new"))
            os.replace(saved.with_suffix(".new"), saved)
            print(f"{stage.name} step {step + 1}: loss {loss:.4f}", flush=True)
    save_policy(work / "unfinished", model, tokenizer)
    os.replace(work / "unfinished", finished)
    return finished


def main() -> None:
    """Run all stages and write the policy with what it was made from."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("models/tiny-policy"))
    parser.add_argument("--work", type=Path, default=Path("runs/tiny-policy"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    arguments.work.mkdir(parents=True, exist_ok=True)
    tokenizer, folder = make_tokenizer(), None
    for stage in STAGES:
        folder = run_stage(stage, tokenizer, folder, arguments.work)
    save_policy(arguments.out, AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32), tokenizer)
    pool = Pool.bundled()
    made_from = {
        "seed": SEED,
        "stages": [{"name": stage.name, "steps": stage.num_steps, "learning_rate": stage.learning_rate} for stage in STAGES],
        "pool": pool.fingerprint,
        "files": {name: digest((arguments.out / name).read_bytes()) for name in ("model.safetensors", "tokenizer.json")},
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
    }
    write_json(arguments.out / "made_from.json", made_from)
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
