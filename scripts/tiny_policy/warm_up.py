"""Warm-up of the tiny policy by supervised learning on demonstrations; deterministic, and resumable after any step.

Every step's rows come from (seed, stage, step), so that a resumed run sees what an unbroken one would have seen.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from scripts.tiny_policy.tokenizer import ASSISTANT, SPECIAL
from scripts.tiny_policy.traces import MIXES, WRITTEN, Demonstration, Segment, draw_task

MICRO_BATCH = 8  # rows of like length: less padding, and a third less time than sixteen
Row = tuple[list[int], list[float]]  # token ids, weights in the loss


Source = Callable[[PreTrainedTokenizerFast, random.Random, float], list[Row]]  # from (tokenizer, generator, share of the stage done)


@dataclass(frozen=True)
class Stage:
    """A part of the warm-up. The learning rate rises over the first tenth of ``num_steps`` and falls to zero over the last 60%."""

    name: str
    num_steps: int
    learning_rate: float
    rows: Source


def copies(tokenizer: PreTrainedTokenizerFast, generator: random.Random, done: float, num_rows: int = 64) -> list[Row]:
    """Random words twice over. Every token of the second half is a copy: this is learned here in seconds, from tasks in an hour."""
    words = range(len(SPECIAL) + 256, len(tokenizer))
    rows = []
    for _ in range(num_rows):
        ids = generator.choices(words, k=generator.randint(3, 12))
        rows.append(([*ids, tokenizer.convert_tokens_to_ids(ASSISTANT), *ids], [0.0] * (len(ids) + 1) + [WRITTEN] * len(ids)))
    return rows


@dataclass(frozen=True)
class Demonstrations:
    """Traces of the given kinds in turn; if ``growing``, of one goal at first and of up to four from the middle of the stage on."""

    kinds: tuple[Demonstration, ...]
    growing: bool = False
    mixes: tuple[tuple[str, ...], ...] = MIXES  # of families of goals
    num_rows: int = 32

    def __call__(self, tokenizer: PreTrainedTokenizerFast, generator: random.Random, done: float) -> list[Row]:
        max_goals = min(4, 1 + int(8 * done)) if self.growing else 4
        traces = (self.kinds[i % len(self.kinds)](draw_task(generator, max_goals, self.mixes), generator) for i in range(self.num_rows))
        return [encode(tokenizer, segments) for segments in traces]


def build_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> Qwen3ForCausalLM:
    """A Qwen3 of about a million parameters, freshly initialised."""
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=(len(tokenizer) + 63) // 64 * 64,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return Qwen3ForCausalLM._from_config(config, attn_implementation="eager")  # faster than fused attention at this size


class WarmUp:
    """A stage in progress: model, optimizers and the number of steps done."""

    def __init__(self, model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, stage: Stage, seed: int) -> None:
        self.model, self.tokenizer, self.stage, self.seed, self.step = model, tokenizer, stage, seed, 0
        matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
        others = [p for name, p in model.named_parameters() if p.ndim != 2 or "embed" in name]
        self.optimizers = (
            torch.optim.Muon(matrices, lr=stage.learning_rate, weight_decay=0.05, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(others, lr=stage.learning_rate, betas=(0.9, 0.95), weight_decay=0.0),
        )

    def run_step(self) -> float:
        """One optimizer step; returns the loss per token that the policy writes."""
        generator = random.Random(f"{self.seed} {self.stage.name} {self.step}")
        batch = self.stage.rows(self.tokenizer, generator, self.step / self.stage.num_steps)
        num_written = sum(weights.count(WRITTEN) for _, weights in batch)
        loss = 0.0
        for rows in _by_length(batch, MICRO_BATCH):
            loss += self._accumulate(rows, num_written)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = self.stage.learning_rate * self._rate()
            optimizer.step()
            optimizer.zero_grad()
        self.step += 1
        return loss

    def _rate(self) -> float:
        rising = (self.step + 1) / max(1, self.stage.num_steps // 10)
        return min(1.0, rising, (self.stage.num_steps - self.step) / (0.6 * self.stage.num_steps))

    def _accumulate(self, rows: list[Row], num_written: int) -> float:
        """Backward of one micro-batch; padding is on the right, where a causal model needs no mask."""
        width = max(len(ids) for ids, _ in rows)
        ids = torch.tensor([ids + [self.tokenizer.pad_token_id] * (width - len(ids)) for ids, _ in rows])
        weights = torch.tensor([weights + [0.0] * (width - len(weights)) for _, weights in rows])[:, 1:].flatten()
        with torch.autocast("cpu", torch.bfloat16):
            logits = self.model(input_ids=ids, use_cache=False).logits[:, :-1]
        losses = cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
        (torch.dot(losses, weights) / num_written).backward()
        return float(losses.detach()[weights == WRITTEN].sum()) / num_written

    def state(self) -> dict[str, Any]:
        """What a resume needs."""
        optimizers = [optimizer.state_dict() for optimizer in self.optimizers]
        return {"stage": self.stage.name, "step": self.step, "model": self.model.state_dict(), "optimizers": optimizers}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from ``state``."""
        assert state["stage"] == self.stage.name
        self.step = state["step"]
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)


def encode(tokenizer: PreTrainedTokenizerFast, segments: list[Segment]) -> Row:
    """Token ids of a trace and their weights in the loss."""
    encoded = tokenizer([text for text, _ in segments])["input_ids"]
    ids = [token for part in encoded for token in part]
    return ids, [weight for part, (_, weight) in zip(encoded, segments, strict=True) for _ in part]


def save_policy(folder: Path, model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast) -> None:
    """A folder that ``AutoModelForCausalLM`` and ``AutoTokenizer`` load."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _by_length(batch: list[Row], size: int) -> list[list[Row]]:
    ordered = sorted(batch, key=lambda row: len(row[0]))
    return [ordered[i : i + size] for i in range(0, len(ordered), size)]
