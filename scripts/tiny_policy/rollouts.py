"""Rollouts of the tiny policy on the bundled pool, in this process: the environments are our own and need no worker.

Letters: G rollouts of a task. The turns follow TRL's tool loop: token ids are concatenated and never tokenized again.
"""

import copy
import json
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from envsched.pool import Pool
from envsched.progress import track
from envsched.train.turns import Turns
from envsched.types import Task

MAX_TURNS, MAX_NEW_TOKENS = 16, 40


@dataclass
class Rollout:
    """One attempt: its token ids so far, the live environment, and the calls that were made."""

    task: Task
    environment: Any
    ids: list[int]
    actions: list[dict[str, Any]] = field(default_factory=list)
    ended: bool = False


def rewards_of(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, pool: Pool, tasks: list[Task], group_size: int, seed: int = 0,
               batch_size: int = 128) -> list[list[float]]:  # fmt: skip
    """Rewards [tasks, G] of sampled rollouts at temperature 1."""
    torch.manual_seed(seed)
    flat = [task for task in tasks for _ in range(group_size)]
    flat_rewards: list[float] = []
    config = GenerationConfig(
        max_new_tokens=MAX_NEW_TOKENS, temperature=1.0, pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id
    )
    for start in track(range(0, len(flat), batch_size), "rollouts"):
        turns = Turns(model, config)
        rollouts = [_begin(tokenizer, pool, task) for task in flat[start : start + batch_size]]
        for _ in range(MAX_TURNS):
            running = [rollout for rollout in rollouts if not rollout.ended]
            if running:
                _take_turn(turns, tokenizer, pool, running)
        flat_rewards += [reward_of(rollout) for rollout in rollouts]
    return [flat_rewards[i : i + group_size] for i in range(0, len(flat_rewards), group_size)]


def _begin(tokenizer: PreTrainedTokenizerBase, pool: Pool, task: Task) -> Rollout:
    environment = pool.environment(task.environment)
    scope: dict[str, Any] = {}
    exec(environment.source, scope)
    instance = scope[environment.class_name](copy.deepcopy(dict(task.initial_state)))
    messages, tools = [{"role": "user", "content": task.prompt}], [dict(tool) for tool in environment.tools]
    text = tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=True, tokenize=False)
    return Rollout(task, instance, tokenizer(text)["input_ids"])


def _take_turn(turns: Turns, tokenizer: PreTrainedTokenizerBase, pool: Pool, rollouts: list[Rollout]) -> None:
    for rollout, written in zip(rollouts, turns.take([rollout.ids for rollout in rollouts]), strict=True):
        tools = [dict(tool) for tool in pool.environment(rollout.task.environment).tools]
        try:
            calls = tokenizer.parse_response(written, prefix=rollout.ids, tools=tools).get("tool_calls")
        except (ValueError, TypeError):
            calls = None
        rollout.ids += written
        rollout.ended = not calls
        for call in calls or []:
            rollout.ids += tokenizer(f"<tool>{_result(rollout, **call['function'])}")["input_ids"]
        if calls:
            rollout.ids += tokenizer("<assistant>")["input_ids"]


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
