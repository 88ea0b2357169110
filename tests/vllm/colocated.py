"""Train with a colocated engine and score the policy on the way, push the final weights, write greedy outputs; run by test_engine in a
process of its own."""

import json
import sys
from pathlib import Path
from typing import ClassVar

from vllm import SamplingParams

from envsched.config import load_config
from envsched.evaluate.validation import BfclValidation
from envsched.train import run
from tests.vllm.prompts import prompts
from tests.vllm.scores import EVAL_TOKENS


class Kept(run.ScheduledGRPOTrainer):
    """Lets the engine be asked after training."""

    last = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        Kept.last = self


class Written(BfclValidation):
    """Keeps what the policy was asked and what it said, one list of pairs for each score."""

    said: ClassVar[list[list[tuple[list[int], list[int]]]]] = []

    def verdicts(self, generate, *args, **kwargs):
        self.said.append([])

        def kept(prompts):
            made = [list(ids) for ids in generate(prompts)]
            self.said[-1] += zip(prompts, made, strict=True)
            return made

        return super().verdicts(kept, *args, **kwargs)


if __name__ == "__main__":
    settings, folder, target, dialogues = sys.argv[1:]
    run.ScheduledGRPOTrainer = Kept
    validation = Written(dialogues, every=2, num_tasks=1, template={"enable_thinking": False})
    config = load_config(settings, ["vllm.mode=colocate", f"train.eval_tokens={EVAL_TOKENS}"])
    run.train(config, folder, validation=validation)
    validation.close()
    engine = Kept.last.vllm_generation
    engine.sync_weights()
    rows = [{"prompt_token_ids": ids} for ids in prompts()]
    made = engine.llm.generate(rows, SamplingParams(temperature=0, max_tokens=24), use_tqdm=False)
    final = [list(output.outputs[0].token_ids) for output in made]
    Path(target).write_text(json.dumps({"final": final, "validation": Written.said}))
