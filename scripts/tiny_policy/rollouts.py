"""Rollouts of the tiny policy on the bundled pool, in this process: the environments are our own and need no worker.

Letters: G rollouts of a task. The turns follow TRL's tool loop: token ids are concatenated and never tokenized again.
"""

import copy
import json
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase, Qwen3ForCausalLM

from envsched.pool import Pool
from envsched.progress import track
from envsched.types import Task
from scripts.tiny_policy.decoder import Decoder

MAX_TURNS, MAX_NEW_TOKENS = 16, 40
LONGEST = 1024  # tokens of a conversation after which no turn begins
WAITING = 16  # tool results are read together, when so many rollouts have one


@dataclass
class Rollout:
    """One attempt: its token ids so far, the live environment, and the calls that were made."""

    task: Task
    environment: Any
    ids: list[int]
    unread: list[int] = field(default_factory=list)  # ids at the end that the policy has not seen
    turn: list[int] = field(default_factory=list)  # ids written in this turn
    num_turns: int = 0
    actions: list[dict[str, Any]] = field(default_factory=list)
    ended: bool = False

    def append(self, ids: list[int]) -> None:
        self.ids += ids
        self.unread += ids


def rewards_of(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerBase, pool: Pool, tasks: list[Task], group_size: int, seed: int = 0,
               batch_size: int = 128) -> list[list[float]]:  # fmt: skip
    """Rewards [tasks, G] of sampled rollouts at temperature 1, about ``batch_size`` of them side by side."""
    generator = torch.Generator().manual_seed(seed)
    rewards: list[list[float]] = []
    at_once = max(1, batch_size // group_size)
    for start in track(range(0, len(tasks), at_once), "rollouts"):
        rollouts = [_begin(tokenizer, pool, task) for task in tasks[start : start + at_once] for _ in range(group_size)]
        _play(model, tokenizer, pool, rollouts, group_size, generator)
        flat = [reward_of(rollout) for rollout in rollouts]
        rewards += [flat[i : i + group_size] for i in range(0, len(flat), group_size)]
    return rewards


def _begin(tokenizer: PreTrainedTokenizerBase, pool: Pool, task: Task) -> Rollout:
    environment = pool.environment(task.environment)
    scope: dict[str, Any] = {}
    exec(environment.source, scope)
    instance = scope[environment.class_name](copy.deepcopy(dict(task.initial_state)))
    messages, tools = [{"role": "user", "content": task.prompt}], [dict(tool) for tool in environment.tools]
    text = tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=True, tokenize=False)
    return Rollout(task, instance, tokenizer(text)["input_ids"])


def _play(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerBase, pool: Pool, rollouts: list[Rollout], group_size: int,
          generator: torch.Generator) -> None:  # fmt: skip
    """All rollouts to their ends; a prompt is read once for its G rollouts."""
    decoder = Decoder(model, len(rollouts), 2 * LONGEST)
    firsts = range(0, len(rollouts), group_size)
    logits = decoder.read([rollouts[i].ids for i in firsts])
    shared = [i // group_size for i in range(len(rollouts))]
    decoder.copy(shared, list(range(len(rollouts))))
    logits, seen = logits[shared], list(range(len(rollouts)))  # the rows that the logits are of
    playing = list(rollouts)  # row r of the decoder is rollout playing[r]
    while playing:
        for row, token in zip(seen, _sample(logits, generator), strict=True):
            _write(playing[row], token, tokenizer, pool)
        playing = _without_ended(playing, decoder)
        if playing:
            seen, logits = _read(playing, decoder)


def _sample(logits: Tensor, generator: torch.Generator) -> list[int]:
    return torch.multinomial(torch.softmax(logits, dim=-1), 1, generator=generator).flatten().tolist()


def _write(rollout: Rollout, token: int, tokenizer: PreTrainedTokenizerBase, pool: Pool) -> None:
    """One more token; at the end of a turn its calls are made, and without any the rollout has ended."""
    rollout.append([token])
    rollout.turn.append(token)
    if token != tokenizer.eos_token_id and len(rollout.turn) < MAX_NEW_TOKENS:
        return
    tools = [dict(tool) for tool in pool.environment(rollout.task.environment).tools]
    try:
        calls = tokenizer.parse_response(rollout.turn, prefix=rollout.ids[: -len(rollout.turn)], tools=tools).get("tool_calls")
    except (ValueError, TypeError):
        calls = None
    rollout.turn, rollout.num_turns = [], rollout.num_turns + 1
    for call in calls or []:
        rollout.append(tokenizer(f"<tool>{_result(rollout, **call['function'])}")["input_ids"])
    rollout.append(tokenizer("<assistant>")["input_ids"])
    rollout.ended = not calls or rollout.num_turns == MAX_TURNS or len(rollout.ids) > LONGEST


def _without_ended(playing: list[Rollout], decoder: Decoder) -> list[Rollout]:
    """The rows of ended rollouts are filled from the end, so that those that play are the first ones."""
    for row in reversed([row for row, rollout in enumerate(playing) if rollout.ended]):
        last = playing.pop()
        if row < len(playing):
            playing[row] = last
            decoder.copy([len(playing)], [row])
    return playing


def _read(playing: list[Rollout], decoder: Decoder) -> tuple[list[int], Tensor]:
    """Read single tokens, and tool results when enough of them wait; the rows that were read, and their logits."""
    short = [row for row, rollout in enumerate(playing) if len(rollout.unread) == 1]
    long = [row for row, rollout in enumerate(playing) if len(rollout.unread) > 1]
    seen, logits = [], []
    if long and len(long) >= min(WAITING, len(playing) / 3):
        logits.append(decoder.read([playing[row].unread for row in long], torch.tensor(long)))
        seen += long
    if short:
        logits.append(decoder.read([rollout.unread if len(rollout.unread) == 1 else [] for rollout in playing])[short])
        seen += short
    for row in seen:
        playing[row].unread = []
    return seen, torch.cat(logits)


def _result(rollout: Rollout, name: str, arguments: dict[str, Any]) -> str:
    rollout.actions.append({"name": name, "arguments": arguments})
    try:
        return str(getattr(rollout.environment, name)(**arguments))
    except Exception as error:
        return f"Error: {error}"


def reward_of(rollout: Rollout) -> float:
    """Share of the task's checks that pass now."""
    passed = 0
    for check in rollout.task.checks:
        scope: dict[str, Any] = {"initial_state": copy.deepcopy(dict(rollout.task.initial_state)), "json": json}
        exec(check.source, scope)
        passed += bool(scope["check_func"](copy.deepcopy(vars(rollout.environment))))
    return passed / len(rollout.task.checks)
