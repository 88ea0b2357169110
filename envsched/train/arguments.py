"""TRL's arguments from our config: one generation of B * G rollouts per optimizer step."""

import os
from pathlib import Path
from typing import Any

from trl import GRPOConfig

from envsched.config import Config
from envsched.train.combinations import is_on_cpu
from envsched.train.geometry import Geometry

PROJECT = "envsched"  # under which trackers list the run


def grpo_arguments(config: Config, geometry: Geometry, checkpoints: Path, logs: Path) -> GRPOConfig:
    """The real ``GRPOConfig`` of a run.

    Args:
        config: settings of the run.
        geometry: how a step's rollouts divide over devices; see ``geometry.divide``.
        checkpoints: transformers writes ``checkpoint-K`` under it.
        logs: trackers that write files write them here.
    """
    t, v = config.train, config.vllm
    on_cpu = is_on_cpu(t.device)
    for name in ("TENSORBOARD_LOGGING_DIR", "WANDB_DIR"):
        os.environ.setdefault(name, str(logs))
    os.environ.setdefault("WANDB_PROJECT", PROJECT)
    return GRPOConfig(
        output_dir=str(checkpoints),
        seed=t.seed,
        use_cpu=on_cpu,
        bf16=t.precision == "bf16",
        model_init_kwargs={"dtype": "float32"},  # a step of 1e-6 is lost in bf16 weights; bf16 is for the activations
        per_device_train_batch_size=geometry.device_batch,
        gradient_accumulation_steps=geometry.accumulation,
        num_generations=geometry.group_size,
        max_steps=t.max_steps,
        learning_rate=t.learning_rate,
        optim={"adamw": "adamw_torch_fused", "sgd": "sgd"}[t.optimizer],
        lr_scheduler_type="constant",  # periods are the trainer's
        max_grad_norm=t.max_grad_norm,
        epsilon=t.policy_clip,
        beta=t.kl_weight,
        scale_rewards=t.scale_rewards,
        loss_type=t.loss,
        temperature=t.temperature,
        max_completion_length=t.max_completion_tokens,
        max_tool_calling_iterations=t.max_turns,
        generation_kwargs=_turn_budget(t.max_turn_tokens, v.mode),
        use_vllm=v.mode != "off",
        vllm_mode="colocate" if v.mode == "off" else v.mode,
        vllm_gpu_memory_utilization=v.memory_share,
        vllm_max_model_length=v.max_model_tokens,
        vllm_server_host=v.host,
        vllm_server_port=v.port,
        vllm_server_timeout=v.server_seconds,
        chat_template_kwargs={"enable_thinking": t.thinking},
        gradient_checkpointing=t.gradient_checkpointing,
        save_strategy="steps",
        save_steps=t.checkpoint_every,
        logging_steps=1,
        report_to=list(t.trackers) or "none",
        project=PROJECT,
        run_name=checkpoints.parent.name,
        disable_tqdm=True,  # the run draws its own bar
        ignore_data_skip=True,  # the loader only yields slots; every step seeds its own generators
    )


def _turn_budget(tokens: int | None, engine: str) -> dict[str, Any] | None:
    """The budget of one turn under the name that transformers or vLLM has for it."""
    return None if tokens is None else {"max_new_tokens" if engine == "off" else "max_tokens": tokens}
