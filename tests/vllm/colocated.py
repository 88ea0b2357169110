"""Train with a colocated engine, push the final weights, write greedy outputs; run by test_engine in a process of its own."""

import json
import sys
from pathlib import Path

from vllm import SamplingParams

from envsched.config import load_config
from envsched.train import run
from tests.vllm.prompts import prompts


class Kept(run.ScheduledGRPOTrainer):
    """Lets the engine be asked after training."""

    last = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        Kept.last = self


if __name__ == "__main__":
    settings, folder, target = sys.argv[1:]
    run.ScheduledGRPOTrainer = Kept
    run.train(load_config(settings, ["vllm.mode=colocate"]), folder)
    engine = Kept.last.vllm_generation
    engine.sync_weights()
    rows = [{"prompt_token_ids": ids} for ids in prompts()]
    made = engine.llm.generate(rows, SamplingParams(temperature=0, max_tokens=24), use_tqdm=False)
    Path(target).write_text(json.dumps([list(output.outputs[0].token_ids) for output in made]))
