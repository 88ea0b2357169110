"""A policy with random weights and a small tokenizer, made on the spot: it has every real part and knows nothing."""

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

MARKS = ["[pad]", "[end]", "[tools]", "[user]", "[assistant]", "[call]", "[tool]"]
CHAT_TEMPLATE = """\
{%- if tools %}[tools]{% for tool in tools %}{{ tool.function.name + ' ' }}{% endfor %}{% endif %}\
{%- for message in messages %}\
{%- if message.role != 'system' %}{{ '[' + message.role + ']' + (message.content or '') }}{% endif %}\
{%- for call in message.tool_calls or [] %}{{ '[call]' + call.function.name + (call.function.arguments | tojson) }}{% endfor %}\
{%- if message.role == 'assistant' %}[end]{% endif %}{% endfor %}\
{%- if add_generation_prompt %}[assistant]{% endif %}"""
RESPONSE_TEMPLATE = {
    "defaults": {"role": "assistant"},
    "start_anchor": "[assistant]",
    "fields": {
        "tool_calls": {
            "open_pattern": r"\[call\](?P<name>\w+)",
            "close_pattern": r"(?=\[call\])|\[end\]",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}},
        },
        "content": {"close_pattern": r"(?=\[call\])|\[end\]", "content": "text"},
    },
}


def save_random_policy(folder: Path, texts: list[str], seed: int = 0) -> Path:
    """Write a Qwen3 of some 30,000 parameters and a byte-level tokenizer fitted to ``texts``."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=800, special_tokens=MARKS, initial_alphabet=alphabet))
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="[end]",
        pad_token="[pad]",
        padding_side="left",
        chat_template=CHAT_TEMPLATE,
        response_template=RESPONSE_TEMPLATE,
    )
    fast.save_pretrained(folder)
    torch.manual_seed(seed)
    shape = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
    config = Qwen3Config(vocab_size=len(fast), head_dim=32, max_position_embeddings=2048, tie_word_embeddings=True, **shape)
    config.eos_token_id, config.pad_token_id = fast.eos_token_id, fast.pad_token_id
    Qwen3ForCausalLM(config).save_pretrained(folder)
    return folder


def save_steady_policy(folder: Path, messages: list[list[dict]], tools: list[dict], seed: int = 0) -> Path:
    """The same, trained until it says in each conversation of ``messages`` what its assistant says there."""
    save_random_policy(folder, [json.dumps([messages, tools])], seed)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = Qwen3ForCausalLM.from_pretrained(folder, dtype=torch.float32)
    ids = [tokenizer.apply_chat_template(talk, tools=tools, return_dict=False) for talk in messages]
    end, assistant = tokenizer.convert_tokens_to_ids(["[end]", "[assistant]"])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(200):
        loss = sum(model(torch.tensor([talk]), labels=torch.tensor([_said(talk, assistant, end)])).loss for talk in ids) / len(ids)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loss.item() < 0.005:
            break
    model.save_pretrained(folder)
    return folder


def _said(talk: list[int], assistant: int, end: int) -> list[int]:
    """Labels: what stands between the assistant's mark and the end of its turn."""
    labels, speaking = [], False
    for token in talk:
        labels.append(token if speaking else -100)
        speaking = token == assistant or (speaking and token != end)
    return labels
