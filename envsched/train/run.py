"""A whole run: every process opens the pool, rank 0 opens the run directory and the scheduler, TRL trains."""

import logging
import os
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

from rich.console import Console
from transformers import AutoTokenizer, PrinterCallback
from trl import GRPOConfig

from envsched.config import Config
from envsched.errors import ConfigError, StateError
from envsched.files import canonical_json, digest
from envsched.history import read_records
from envsched.maintained import Leader
from envsched.pool import Pool
from envsched.pool.executable import refuse_without_rollouts
from envsched.pool.opening import open_pool
from envsched.pool.outline import Outline
from envsched.runtime import EnvironmentRuntime
from envsched.scheduler import carry_over
from envsched.train.arguments import grpo_arguments
from envsched.train.checkpoints import read_seal
from envsched.train.collectives import from_rank_0
from envsched.train.combinations import refuse_impossible, sharding_of
from envsched.train.environment_table import EnvironmentTable
from envsched.train.ordering import LengthForecast
from envsched.train.preparation import findings_of, geometry_of, scheduler_of
from envsched.train.rounds import Rounds
from envsched.train.run_directory import RunDirectory
from envsched.train.run_log import RunLog, summary_table
from envsched.train.sharing import shared_graph
from envsched.train.trainer import RewardRule, ScheduledGRPOTrainer
from envsched.train.validation import Validation
from envsched.types import Scheduler

logger = logging.getLogger(__name__)


def train(
    config: Config,
    run_dir: Path | str,
    *,
    resume: bool = False,
    accept_pool_change: bool = False,
    scheduler: Scheduler | None = None,
    reward: RewardRule | None = None,
    validation: Validation | None = None,
) -> None:
    """Train a policy; under a launcher every process calls this alike.

    Args:
        config: sections scheduler, features and train.
        run_dir: a fresh folder, or that of the run to go on with.
        resume: go on from the newest whole checkpoint, from the beginning where there is none.
        accept_pool_change: the pool of the run to resume may have changed: what is known of tasks that stayed is kept.
        scheduler: any object with the five verbs, used on rank 0 in place of the one that the config names.
        reward: replaces the share of passed checks; see ``ScheduledGRPOTrainer``.
        validation: scores the policy on other tasks every so many steps.

    Raises:
        ConfigError: a used directory without ``resume``, settings other than those of the run to resume, sizes that don't divide,
            no such policy.
        PoolError: an environment has no code, so no rollout could start there.
        StateError: the ranks disagree, or files of the run to resume are missing or altered.
    """
    run, pool = RunDirectory(run_dir), open_pool(config.train.pool)
    refuse_without_rollouts(config.train.pool, pool, own_reward=reward is not None)
    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    geometry = geometry_of(config, world_size)
    refuse_impossible(config, world_size, sharding_of(os.environ))
    args = grpo_arguments(config, geometry, run.checkpoints, run.folder / "logs")
    tokenizer = _tokenizer_of(config.train.model)
    first_step, checkpoint = from_rank_0(lambda: _open(run, config, pool, resume, accept_pool_change))
    if args.process_index == 0:
        run.metrics_file.parent.mkdir(parents=True, exist_ok=True)  # trackers look for it before the first line
        _say_start(args, run, first_step)
    with nullcontext() if scheduler else shared_graph(config, pool, run) as leader:
        rounds = _rounds(config, pool, run, scheduler, leader, first_step, checkpoint) if args.process_index == 0 else None
        if first_step < config.train.max_steps:
            _train_steps(config, args, tokenizer, pool, run, rounds, reward, validation, checkpoint)
    if rounds is not None:
        Console().print(summary_table(run.metrics_file))
        assert rounds.table is not None
        Console().print(rounds.table.render())
        print(f"run: {run.folder}")


def _tokenizer_of(model: str) -> Any:
    """The policy's tokenizer; loaded before the run directory is taken, so that a slip in the name leaves nothing behind."""
    try:
        return AutoTokenizer.from_pretrained(model, padding_side="left")
    except (OSError, ValueError) as error:
        why = str(error).splitlines()[0].rstrip(".") if Path(model).is_dir() else "no such folder, and no model of that name from the Hub"
        raise ConfigError(f"--model-path {model}: {why}; give a folder that save_pretrained wrote") from None


def _open(run: RunDirectory, config: Config, pool: Pool, resume: bool, accept_pool_change: bool) -> tuple[int, Path | None]:
    """Step to begin with and the checkpoint to load."""
    run.begin(config, resume, accept_pool_change)
    step, checkpoint = run.rewind()
    if checkpoint is None:
        if accept_pool_change:
            run.change_pool(0, None)
        return step, checkpoint
    seal = read_seal(checkpoint)
    if seal["digests"]["rollouts"] != run.rollouts_digest(step):
        raise _other(checkpoint, "rollouts", seal["digests"]["rollouts"], run.rollouts_digest(step))
    if seal["digests"]["pool"] != pool.fingerprint:
        if not accept_pool_change:
            raise _other(
                checkpoint, "pool", seal["digests"]["pool"], pool.fingerprint, ", or go on with the changed one: --accept-pool-change"
            )
        _, change = carry_over(seal["scheduler"], pool, step)
        print(f"the pool changes at step {step}: {change}", flush=True)
        run.change_pool(step, Outline.from_json(seal["scheduler"]["pool"]))
    return step, checkpoint


def _other(checkpoint: Path, what: str, sealed: str, now: str, remedy: str = "") -> StateError:
    return StateError(f"{checkpoint}: sealed with {what} {sealed[:12]}, now {now[:12]}; restore the {what} of this run{remedy}")


def _rounds(
    config: Config,
    pool: Pool,
    run: RunDirectory,
    scheduler: Scheduler | None,
    leader: Leader | None,
    first_step: int,
    checkpoint: Path | None,
) -> Rounds:
    scheduler = scheduler or scheduler_of(config, pool, run, leader)
    if checkpoint is not None:
        seal = read_seal(checkpoint)
        changed = seal["digests"]["pool"] != pool.fingerprint
        scheduler.load_state_dict(carry_over(seal["scheduler"], pool, first_step)[0] if changed else seal["scheduler"])
    t = config.train
    forecast, table = LengthForecast(pool), EnvironmentTable(pool, config.scheduler)
    for step in range(first_step):
        records = read_records(run.layout.rollouts(step))[0]
        forecast.observe(records)
        table.observe(records)
    findings = findings_of(config, pool, run)
    floors = findings.floor_of(pool) if findings else {}

    def saved_after(num_steps: int) -> bool:
        return num_steps % t.checkpoint_every == 0 or num_steps == t.max_steps

    return Rounds(scheduler, run, forecast, table, t.keep_checkpoints, config.scheduler, t.overlap, saved_after, floors)


def _train_steps(
    config: Config,
    args: GRPOConfig,
    tokenizer: Any,
    pool: Pool,
    run: RunDirectory,
    rounds: Rounds | None,
    reward: RewardRule | None,
    validation: Validation | None,
    checkpoint: Path | None,
) -> None:
    t = config.train
    with EnvironmentRuntime(pool, config.runtime) as runtime, closing(rounds) if rounds else nullcontext():
        if args.process_index == 0:
            print(f"environments run behind: {runtime.protections}", flush=True)
        trainer = ScheduledGRPOTrainer(
            t.model,
            args,
            pool=pool,
            runtime=runtime,
            rounds=rounds,
            system_prompt=t.system_prompt,
            max_advantage=t.max_advantage,
            learning_rate_period=t.learning_rate_period,
            reward=reward,
            engine=config.vllm,
            validation=validation,
            validation_tokens=t.eval_tokens,
            fingerprint=digest(canonical_json(config.model_dump(mode="json"))),
            processing_class=tokenizer,
            callbacks=[RunLog(run.metrics_file, t.max_steps)] if rounds else [],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)


def _say_start(args: GRPOConfig, run: RunDirectory, first_step: int) -> None:
    processes = "1 process" if args.world_size == 1 else f"{args.world_size} processes"
    print(f"training on {processes} ({args.device.type}), from step {first_step} of {args.max_steps}, run {run.folder}", flush=True)
    if args.world_size == 1 and args.use_cpu:
        print(
            "one process: `accelerate launch --cpu --num_processes N` starts only one; "
            "for N on a CPU: torchrun --nproc_per_node N train.py ...",
            flush=True,
        )
