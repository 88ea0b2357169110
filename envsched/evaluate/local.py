"""A policy from a folder, by transformers on this machine: greedy, so that a score is repeatable."""

from collections.abc import Sequence
from pathlib import Path

import torch

from envsched.errors import ConfigError, MissingExtraError
from envsched.evaluate.tokens import TokenPolicy

try:
    from transformers import AutoModelForCausalLM, AutoTokenizer
except ImportError as error:
    raise MissingExtraError("a local policy needs transformers; install the extra: pip install 'envsched[train]'") from error


def local_policy(folder: Path | str, max_new_tokens: int, thinking: bool) -> TokenPolicy:
    """The policy of a folder, on a GPU where there is one.

    Args:
        max_new_tokens: of one message.
        thinking: let the chat template open a thinking block.

    Raises:
        ConfigError: the folder holds no policy, or its chat template is missing.
    """
    if not Path(folder).is_dir():  # transformers would take it for a name on the Hub
        raise ConfigError(f"--model-path {folder}: no such folder; give one that save_pretrained wrote")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
        model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto").to(device).eval()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"--model-path {folder}: {str(error).splitlines()[0].rstrip('.')}; give a folder that save_pretrained wrote"
        ) from None
    if tokenizer.chat_template is None:
        raise ConfigError(f"--model-path {folder}: the tokenizer has no chat template; give the folder of a chat model")

    def generate(prompts: list[list[int]]) -> Sequence[Sequence[int]]:
        batch = tokenizer.pad({"input_ids": prompts}, return_tensors="pt").to(device)
        with torch.no_grad():
            made = model.generate(**batch, max_new_tokens=max_new_tokens, do_sample=False, pad_token_id=tokenizer.pad_token_id)
        return [_until_end(row, ends) for row in made[:, batch["input_ids"].shape[1] :].tolist()]

    ends = _ends(model, tokenizer)
    limit = getattr(model.config, "max_position_embeddings", 1 << 30) - max_new_tokens
    return TokenPolicy(tokenizer, generate, limit, {"enable_thinking": thinking})


def _ends(model: AutoModelForCausalLM, tokenizer: AutoTokenizer) -> set[int]:
    stated = model.generation_config.eos_token_id
    return {tokenizer.eos_token_id, *(stated if isinstance(stated, list) else [stated])}


def _until_end(ids: list[int], ends: set[int]) -> list[int]:
    place = next((i + 1 for i, token in enumerate(ids) if token in ends), len(ids))
    return ids[:place]
