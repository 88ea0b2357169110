"""What both engines are asked."""

from transformers import AutoTokenizer

from envsched.pool import Pool
from tests.train.killing import ROOT

PROMPTS = 8


def prompts():
    """Token ids of the first turns of some tasks."""
    pool, tokenizer = Pool.bundled(), AutoTokenizer.from_pretrained(ROOT / "models/tiny-policy")
    rows = []
    for task in pool.tasks[:: len(pool) // PROMPTS][:PROMPTS]:
        tools = [dict(tool) for tool in pool.environment(task.environment).tools]
        messages = [{"role": "user", "content": task.prompt}]
        rows.append(tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=True, return_dict=True)["input_ids"])
    return rows
