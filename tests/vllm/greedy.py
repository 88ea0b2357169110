"""What a policy says without chance, by transformers and by the server."""

import json
import urllib.request

import torch
from transformers import AutoModelForCausalLM

from tests.vllm.serving import MODEL, Server


def greedy_by_transformers(checkpoint, questions, max_tokens=24):
    model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32)
    made = []
    for ids in questions:
        row = torch.tensor([ids])
        out = model.generate(row, attention_mask=torch.ones_like(row), do_sample=False, max_new_tokens=max_tokens)[0, len(ids) :].tolist()
        made.append(out)
    return made


def greedy_by_server(questions, max_tokens=24):
    body = {"model": MODEL, "prompt": questions, "max_tokens": max_tokens, "temperature": 0, "return_token_ids": True}
    request = urllib.request.Request(f"{Server.url}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    return [choice["token_ids"] for choice in json.load(urllib.request.urlopen(request, timeout=300))["choices"]]


def same_prefix(ours, theirs):
    """Whether two greedy continuations agree up to the shorter one's end (the engines differ in what follows the end mark)."""
    length = min(len(ours), len(theirs))
    return length > 0 and ours[:length] == theirs[:length]
