"""A policy with random weights and a small tokenizer, made on the spot: it has every real part and knows nothing."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from trl.chat_template_utils import qwen3_chat_template

MARKS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>"]


def save_random_policy(folder: Path, texts: list[str], seed: int = 0) -> Path:
    """Write a Qwen3 of some 30,000 parameters and a byte-level tokenizer fitted to ``texts``."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=400, special_tokens=MARKS[:3], initial_alphabet=alphabet))
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", padding_side="left")
    fast.add_tokens(MARKS[3:])
    fast.chat_template = qwen3_chat_template
    fast.save_pretrained(folder)
    torch.manual_seed(seed)
    shape = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
    config = Qwen3Config(vocab_size=len(fast), head_dim=8, max_position_embeddings=4096, tie_word_embeddings=True, **shape)
    config.eos_token_id, config.pad_token_id = fast.eos_token_id, fast.pad_token_id
    Qwen3ForCausalLM(config).save_pretrained(folder)
    return folder
