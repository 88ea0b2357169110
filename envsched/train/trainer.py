"""GRPO whose tasks are chosen late: when rollouts of step t begin, every reward up to t - 1 has been observed.

TRL's loader prefetches, so a sampler would be one step blind. Here the loader yields placeholder slots, and
``_generate_and_score_completions`` puts the tasks in that the scheduler picks at that moment: rank 0 decides, every rank takes its
contiguous slice. Letters: B tasks, G rollouts per task.
"""

import errno
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from accelerate.utils import gather_object, set_seed
from datasets import Dataset
from safetensors import SafetensorError
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from envsched.config import VllmConfig
from envsched.errors import MissingExtraError, RecordError, StateError
from envsched.files import digest
from envsched.filters import IdentifierGuard
from envsched.pool import Pool
from envsched.runtime import CheckReport, EnvironmentRuntime
from envsched.train.attempts import Attempt, records_of
from envsched.train.collectives import from_rank_0, refuse_disagreement
from envsched.train.engine import EngineFigures, adapted_engine, push_by_reload
from envsched.train.environments import proxies_of, schemas_of
from envsched.train.greedy import GreedyGeneration
from envsched.train.lockstep import LockstepToolLoop
from envsched.train.prompts import messages_of
from envsched.train.rates import PeriodicRate
from envsched.train.rounds import Rounds
from envsched.train.trimming import TrimmedUpdate
from envsched.train.turns import KeptTurns
from envsched.train.validation import Validation
from envsched.types import RolloutRecord, Status, Task

SEAMS = (
    "_generate_and_score_completions",
    "_calculate_rewards",
    "_generate",
    "_generate_single_turn",
    "_tool_call_loop",
    "_compute_loss",
    "_get_per_token_logps_and_entropies",
    "_save_checkpoint",
    "create_scheduler",
)

_HARDLY_ANY = 1 << 20  # bytes free on a disk

RewardRule = Callable[[Attempt], float | None]


class ScheduledGRPOTrainer(PeriodicRate, GreedyGeneration, LockstepToolLoop, TrimmedUpdate, KeptTurns, GRPOTrainer):
    """``trl.GRPOTrainer`` that asks a scheduler for the tasks of each optimizer step.

    Args:
        model: as in TRL, a path or a ``PreTrainedModel``.
        args: one generation per optimizer step (``steps_per_generation`` = accumulation, ``num_iterations`` = 1).
        pool: the tasks; each rank has its own copy, compared every step.
        runtime: runs the environments of this rank.
        rounds: the scheduler and where batches and records are kept; acts on rank 0, other ranks may give none.
        system_prompt: see ``prompts.messages_of``.
        max_advantage: advantages are clamped to [-max_advantage, max_advantage]; none: not at all.
        learning_rate_period: see ``rates.share_of_peak``; 0: the rate is constant.
        reward: replaces the share of passed checks, a function of the finished attempt alone.
        engine: how vLLM is built, where ``args.use_vllm`` says so.
        validation: scores the policy every so many steps, each rank its share; none: never.
        validation_tokens: budget of one message there.
        fingerprint: what else all ranks must share, for instance the resolved config.

    Raises:
        StateError: the ranks disagree on a batch; names each digest.
        MissingExtraError: this version of TRL has other seams.
    """

    def __init__(
        self,
        model: Any,
        args: GRPOConfig,
        *,
        pool: Pool,
        runtime: EnvironmentRuntime,
        rounds: Rounds | None,
        system_prompt: str = "environment",
        max_advantage: float | None = None,
        learning_rate_period: int = 0,
        reward: RewardRule | None = None,
        engine: VllmConfig = VllmConfig(),
        validation: Validation | None = None,
        validation_tokens: int = 1024,
        fingerprint: str = "",
        **trl: Any,
    ) -> None:
        _require_seams()
        self._pool, self._runtime, self._rounds, self._reward = pool, runtime, rounds, reward
        self._system_prompt, self._max_advantage, self._fingerprint = system_prompt, max_advantage, fingerprint
        self._validation, self._validation_tokens, self._rate_period = validation, validation_tokens, learning_rate_period
        self._attempts: list[Attempt] = []
        self._step_began = self._began = self._scored = 0.0  # seconds: choosing, rolling out, updating begin
        self._turn_ends: list[float] = []
        self._model_tokens: list[int] = []
        self._has_rewards = True  # any rollout of this step, on any rank
        self._engine_figures = EngineFigures()
        on_cpu = args.device.type == "cpu"
        with adapted_engine(engine, on_cpu, "bfloat16" if args.bf16 else "float32"):
            super().__init__(
                model,
                reward_funcs=[self.checks_passed],
                args=args,
                train_dataset=_slots(args),
                environment_factory=proxies_of(pool, runtime),
                **trl,
            )
        if engine.mode == "colocate" and on_cpu:
            self.vllm_generation.sync_weights = partial(push_by_reload, self.vllm_generation)
        self.add_callback(_AroundUpdate(self))
        assert args.num_iterations == 1, "a batch is used for one optimizer step"
        assert args.steps_per_generation == args.gradient_accumulation_steps, "one generation per optimizer step"
        self._env_tools = schemas_of(pool)  # the pool's schemas, not ones guessed from the proxies' signatures

    def rows_of(self, task: Task, step: int) -> list[dict[str, Any]]:
        """G rows of one task: what its environment is reset with and what its prompt says."""
        messages = messages_of(self._pool.environment(task.environment), task, self._system_prompt)
        seed = int(digest(str(self.args.seed), str(step), task.key)[:8], 16)
        shared = {"prompt": messages, "environment": task.environment, "task": task.key, "seed": seed, "step": step}
        return [{**shared, "number": number} for number in range(self.num_generations)]

    def checks_passed(self, **_columns: Any) -> list[float | None]:
        """The reward function that TRL calls: the attempts were scored just before."""
        return [attempt.reward for attempt in self._attempts]

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        if self.model.training:
            self._step_began = time.perf_counter()
            step = self.state.global_step
            set_seed(int(digest(str(self.args.seed), str(step))[:8], 16), device_specific=True)  # resumable at any step
            tasks = self._decide(step)
            rows = [row for key in tasks for row in self.rows_of(self._pool.task(key), step)]
            start = self.accelerator.process_index * len(inputs)
            inputs = rows[start : start + len(inputs)]
        self._began, self._turn_ends = time.perf_counter(), []
        episodes = self._runtime.start_many([row["task"] for row in inputs], [row["seed"] for row in inputs])
        inputs = [{**row, "episode": episode} for row, episode in zip(inputs, episodes, strict=True)]
        outputs = super()._generate_and_score_completions(inputs)
        if self._max_advantage is not None:
            outputs["advantages"] = outputs["advantages"].clamp(-self._max_advantage, self._max_advantage)
        self._scored = time.perf_counter()
        return outputs

    def _end_step(self) -> None:
        """After the optimizer: the scheduler's figures, where the time went, and the validation, all for this step's line."""
        now, num_steps, step_metrics = time.perf_counter(), self.state.global_step, self._metrics["train"]
        settled = from_rank_0(lambda: self._rounds.settle())
        whole = time.perf_counter() - self._step_began
        times = {"time/rollouts": self._scored - self._began, "time/update": now - self._scored, "time/step": whole}
        for name, value in {**settled, **times, "scheduler/share": settled["scheduler/seconds"] / whole}.items():
            step_metrics[name].append(value)
        if self._validation is not None and (num_steps % self._validation.every == 0 or num_steps == self.args.max_steps):
            for name, value in self._validate(num_steps).items():
                step_metrics[name].append(value)

    def _validate(self, num_steps: int) -> dict[str, float]:
        """Scores of the policy after ``num_steps`` steps, over all ranks; rank 0 keeps the verdicts."""
        assert self._validation is not None
        began = time.perf_counter()
        self._ready_for_greedy()
        rank, world_size = self.accelerator.process_index, self.accelerator.num_processes
        alone = self._is_shared_server()
        verdicts = []
        if not alone or rank == 0:
            verdicts = self._validation.verdicts(
                partial(self._greedy, max_tokens=self._validation_tokens),
                self.processing_class,
                self._longest_prompt(),
                *((0, 1) if alone else (rank, world_size)),
            )
        verdicts = sorted(gather_object(verdicts), key=lambda verdict: verdict["task"])
        if self.use_vllm and rank == 0:
            self._engine_figures.since_last(self.vllm_generation)  # the next step's figures are of its rollouts alone
        metrics = {**self._validation.metrics(verdicts), "time/validation": time.perf_counter() - began}
        if rank == 0:
            self._rounds.keep_validation(num_steps, metrics, verdicts)
        return metrics

    def _longest_prompt(self) -> int:
        limit = self.args.vllm_max_model_length if self.use_vllm else None
        return (limit or getattr(self.model.config, "max_position_embeddings", 1 << 30)) - self._validation_tokens

    def _decide(self, step: int) -> tuple[str, ...]:
        """The tasks of this step, the same on every rank."""
        num_tasks = self.args.generation_batch_size // self.num_generations
        tasks = from_rank_0(lambda: self._rounds.begin(step, num_tasks))
        refuse_disagreement(f"the batch of step {step}", digest(str(step), *tasks, self._pool.fingerprint, self._fingerprint))
        return tasks

    def _generate(self, prompts: list) -> tuple:
        made = super()._generate(prompts)
        self._model_tokens = [len(ids) for ids in made[1]] if made[2] is None else [sum(mask) for mask in made[2]]  # none: no tools
        if self.use_vllm and self.accelerator.is_main_process:
            metrics = self._metrics["train" if self.model.training else "eval"]
            for name, value in self._engine_figures.since_last(self.vllm_generation).items():
                metrics[name].append(value)
        return made

    def _generate_single_turn(self, *args: Any, **kwargs: Any) -> tuple:
        made = super()._generate_single_turn(*args, **kwargs)
        self._turn_ends.append(time.perf_counter())
        return made

    def _calculate_rewards(self, inputs: list, prompts: list, completions: list, completion_ids_list: list) -> torch.Tensor:
        self._attempts = self._finished(inputs, completions, completion_ids_list)
        rewards = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        if self.model.training:
            self._has_rewards = not bool(torch.isnan(rewards).all())  # of all ranks: TRL gathers them
            attempts = gather_object(self._attempts)
            step = self.state.global_step
            metrics = from_rank_0(lambda: self._rounds.finish(step, self._judged(records_of(attempts, self.num_generations, step))))
            for name, value in metrics.items():
                self._metrics["train"][name].append(value)
        return rewards

    def _judged(self, records: list[RolloutRecord]) -> list[RolloutRecord]:
        """With the rewards that guessed identifiers earned, where the scheduler's filter asks for them."""
        if "guesses" not in self._rounds.config.filters:
            return records
        return IdentifierGuard(self._runtime).annotate(records, self._rounds.floors)

    def _finished(self, rows: list, completions: list, ids: list) -> list[Attempt]:
        """Score this rank's episodes and end them."""
        reports = self._runtime.score_many([proxy._episode for proxy in self.environments])
        attempts = [
            self._attempt(i, row, report, self._was_cut(completion, tokens), sum(m["role"] == "assistant" for m in completion))
            for i, (row, report, completion, tokens) in enumerate(zip(rows, reports, completions, ids, strict=True))
        ]
        for proxy in self.environments:
            proxy._episode.close()
        return attempts

    def _attempt(self, i: int, row: dict[str, Any], report: CheckReport, was_cut: bool, num_turns: int) -> Attempt:
        proxy = self.environments[i]
        problem = proxy._episode.problem
        attempt = Attempt(
            task=row["task"],
            step=row["step"],
            number=row["number"],
            reward=report.reward,
            status=Status.TRUNCATED if report.status is Status.OK and was_cut else report.status,
            tokens=self._model_tokens[i],
            seconds=self._turn_ends[min(num_turns, len(self._turn_ends)) - 1] - self._began,
            actions=tuple(proxy._actions),
            num_refused=proxy._num_refused,
            passed=report.passed,
            errors=(*report.errors, problem) if problem else report.errors,
        )
        if self._reward is None or attempt.status.is_missing:
            return attempt
        try:
            return replace(attempt, reward=self._reward(attempt))
        except Exception as error:
            where = f"task {attempt.task!r}, step {attempt.step}, rollout {attempt.number}"
            raise RecordError(f"{where}: the reward function raised {type(error).__name__}: {error}; mend it, then --resume") from error

    def _was_cut(self, completion: Sequence[dict[str, Any]], ids: Sequence[int]) -> bool:
        """No end of turn, or a last message whose tool calls were never answered: a budget ran out."""
        return not ids or ids[-1] not in self.eos_token_ids or bool(completion[-1].get("tool_calls"))

    def _issue_warnings_after_load(self, load_result: Any) -> None:
        """A head that is tied to the embedding lies in a checkpoint under the embedding's name alone; it is not missing."""
        named, missing = dict(self.model.named_parameters(remove_duplicate=False)), load_result.missing_keys
        loaded = {id(parameter) for name, parameter in named.items() if name not in missing}
        truly = [name for name in missing if name not in named or id(named[name]) not in loaded]
        super()._issue_warnings_after_load(load_result._replace(missing_keys=truly))

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        num_steps = self.state.global_step
        try:
            super()._save_checkpoint(model, trial)
        except (OSError, RuntimeError, SafetensorError) as error:
            said = _unwritten(error, self.args.output_dir)
            if said is None:
                raise
            raise StateError(
                f"the checkpoint after step {num_steps} could not be written to {self.args.output_dir}: {said}; "
                "make room there, then --resume goes on from the one before"
            ) from error
        self.accelerator.wait_for_everyone()  # every rank's generators and shards are on disk before the seal
        digests = {"pool": self._pool.fingerprint, "run": self._fingerprint}
        from_rank_0(lambda: self._rounds.save(self.args.output_dir, num_steps, digests))


class _AroundUpdate(TrainerCallback):
    """Before the optimizer steps, and after it, when the step's line is not written yet."""

    def __init__(self, trainer: ScheduledGRPOTrainer) -> None:
        self._trainer = trainer

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if not self._trainer._has_rewards:  # gradients of 0 would still move weights along the optimizer's momentum
            self._trainer.model.zero_grad(set_to_none=True)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._trainer._end_step()


def _unwritten(error: Exception, folder: str) -> str | None:
    """Why a checkpoint could not be written; none where the error is of another kind.

    torch and safetensors have errors of their own for a full disk, and torch's does not say so.
    """
    if isinstance(error, RuntimeError) and shutil.disk_usage(folder).free < _HARDLY_ANY:
        return os.strerror(errno.ENOSPC)
    return None if isinstance(error, RuntimeError) else str(error).splitlines()[0]


def _require_seams() -> None:
    missing = [name for name in SEAMS if not hasattr(GRPOTrainer, name)]
    if missing:
        raise MissingExtraError(f"this TRL has no {', '.join(missing)}; envsched is built on trl>=1.16,<1.17: install the extra 'train'")


def _slots(args: GRPOConfig) -> Dataset:
    """Placeholder rows for one epoch of all steps; each rank throws them away and takes the scheduler's tasks."""
    num_tasks = args.generation_batch_size // args.num_generations
    return Dataset.from_dict({"prompt": [[{"role": "user", "content": ""}]] * (num_tasks * args.max_steps)})
