"""Build an engine as the trainer does, with drafts, and let it write; run by test_engine in a process of its own."""

import json

import trl.generation.vllm_generation as seam
from vllm import SamplingParams

from envsched.config import load_config
from envsched.train.engine import adapted_engine
from tests.train.killing import ROOT

TOKEN = 300  # any: what repeats one token is drafted, and drafts are right

if __name__ == "__main__":
    config = load_config(overrides=["vllm.mode=colocate", "vllm.speculation=ngram", "vllm.speculative_tokens=3"])
    with adapted_engine(config.vllm, on_cpu=True, dtype="float32"):
        engine = seam.LLM(model=str(ROOT / "models/tiny-policy"), max_model_len=768, max_num_seqs=8)
    drafts = engine.llm_engine.vllm_config.speculative_config
    print("drafts", json.dumps([drafts.method, drafts.num_speculative_tokens, drafts.prompt_lookup_max]), flush=True)
    rows = [{"prompt_token_ids": [TOKEN] * 40}]
    engine.generate(rows, SamplingParams(temperature=1, max_tokens=24, allowed_token_ids=[TOKEN]), use_tqdm=False)
    print("written", flush=True)
