"""Every default, once. The values are METHOD's table; a changed default comes with a simulation table.

A config file is YAML with one section per class below; flat names (``half_life``) belong to ``scheduler``, dotted ones
(``features.encoder``) to the section they name.
"""

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from envsched.errors import ConfigError
from envsched.types import Status
from envsched.yaml_files import parse_yaml, read_yaml

MAX_COUNT = 10**9  # of tasks, picks, steps; arrays count in int64
MAX_NEIGHBOURS = 4096  # every task has that many slots in memory
MAX_REWARD_RANGE = 1e100  # a variance squares it


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _numbers_are_no_switches(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, bool) and cls.model_fields[info.field_name or ""].annotation is not bool:
            raise ValueError("true and false are not allowed here")
        return value


# Settings that are left open until the prior is known.
_POOLED = {"graph_shrinkage": 2.0, "own_shrinkage": 2.0, "num_cross": 12, "coverage_explore": 0.25, "similarity_penalty": 0.08}
_WITH_RESIDUALS = {"graph_shrinkage": 0.5, "own_shrinkage": 4.0, "num_cross": 32, "coverage_explore": 0.11, "similarity_penalty": 0.06}
_WITH_RESIDUALS_IN_SUMS = _WITH_RESIDUALS | {"num_cross": 16}


class SchedulerConfig(Section):
    """What is scheduled, how its variance is predicted, how the batch is chosen."""

    batch_size: int = Field(default=64, ge=1, le=MAX_COUNT, description="tasks per step, B")
    group_size: int = Field(default=8, ge=2, le=MAX_COUNT, description="rollouts per task, G")

    estimator: Literal["envsched", "paper"] = Field(default="envsched", description="which rule predicts the variance")
    relations: tuple[Literal["within", "cross"], ...] = Field(default=("within", "cross"), description="relations that carry evidence")
    half_life: float = Field(default=8, gt=0, description="half-life of history, in policy versions")
    own_half_life: float = Field(
        default=40, gt=0, description="half-life of a task's own evidence, in policy versions (estimator envsched; paper: half_life)"
    )
    visit_half_life: float = Field(
        default=3, gt=0, description="later visits of a task that halve an earlier one: training moves what it visits (estimator envsched)"
    )
    short_half_life: float = Field(default=2, gt=0, description="half-life that notices a recent decline")
    decline_weight: float = Field(default=0.5, ge=0, le=1, description="how far a recent decline cuts a prediction (eta)")
    mastery_weight: float = Field(
        default=1, ge=0, description="how far a mean reward above one half costs a task its rank: training lifts it (estimator envsched)"
    )
    graph_shrinkage: float | None = Field(
        default=None, gt=0, description="pseudo-evidence of a prior's parent (lambda_g); none: a half with prior residual, else 2"
    )
    own_shrinkage: float | None = Field(
        default=None, gt=0, description="pseudo-evidence of the graph prior (lambda_s); none: 4 with prior residual, else 2"
    )
    prior: Literal["auto", "pooled", "residual"] = Field(
        default="auto",
        description="pooled: neighbours tell their variances, with half_life; residual: every task ever seen tells what it shows beyond "
        "its environment (estimator envsched); auto: residual in graph_mode exact and incremental_exact, pooled where sums are kept",
    )
    residual_shrinkage: float = Field(default=5, gt=0, description="pseudo-evidence that neighbours show nothing more (prior residual)")
    optimism: float = Field(default=0.5, ge=0, description="share of the graph prior added to it (prior residual)")
    optimism_spread: float = Field(
        default=0.4, ge=0, description="standard deviations of all variances seen, added to the graph prior (prior residual)"
    )
    num_within: int = Field(default=6, ge=0, le=MAX_NEIGHBOURS, description="observed neighbours in the same environment")
    num_cross: int | None = Field(
        default=None,
        ge=0,
        le=MAX_NEIGHBOURS,
        description="neighbours in other environments; none: with prior residual 32, or 16 in graph modes that keep "
        "sums (live, static, class), else 12",
    )
    graph_mode: Literal["auto", "exact", "incremental_exact", "live", "static", "kernel", "class"] = Field(
        default="auto",
        description="exact: observed neighbours, from scratch each step; incremental_exact: the same, kept up to date; "
        "live: observed neighbours by likeness and evidence that is still alive; static: neighbours among all tasks; "
        "kernel: the cross relation streams to all tasks; class: it goes between groups of tasks of one topology; "
        "auto: incremental_exact up to 250,000 tasks, live above",
    )
    class_prior: bool = Field(
        default=False, description="static, kernel: tasks of one topology lend each other evidence besides (class does so anyway)"
    )
    build_seconds: float = Field(
        default=1800, ge=0, description="longest exact search for cross-environment neighbours among all tasks; beyond it, approximate"
    )
    build_recall: float = Field(default=0.95, gt=0, le=1, description="share of true neighbours that an approximate search must find")
    prior_variance: float | None = Field(
        default=None, ge=0, description="variance before any evidence; none: a twelfth of the squared reward range"
    )
    calibrate: bool = Field(default=True, description="map predictions through an isotonic fit of past ones")
    calibration_start: int = Field(default=256, ge=2, description="pairs at which the isotonic map starts to blend in")
    calibration_full: int = Field(default=512, ge=3, description="pairs at which it has taken over")

    coverage_share: float = Field(default=0.5, ge=0, le=1, description="share of the batch for under-observed environments (rho)")
    coverage_sweep: float = Field(
        default=8,
        ge=0,
        description="batches that it takes to sweep the pool, N / B, up to which a quarter of the coverage lane is kept; it is whole "
        "from twice as many on (estimator envsched); 0: always whole",
    )
    coverage_explore: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="chance that a coverage pick is the least observed, not the best predicted; none: .11 with prior residual, "
        "else a quarter",
    )
    exposure_scale: float = Field(default=16, gt=0, description="exposures that halve an exploitation score (c0)")
    similarity_penalty: float | None = Field(
        default=None, ge=0, description="cost of resembling the batch (lambda_sim); none: .06 with prior residual, else .08"
    )
    max_per_environment: int = Field(default=4, ge=1, le=MAX_COUNT, description="picks of one environment per step (C1)")
    window_steps: int = Field(default=3, ge=1, le=MAX_COUNT, description="steps of the environment window, this one included")
    max_per_environment_window: int = Field(default=11, ge=1, le=MAX_COUNT, description="picks of one environment per window (C3)")
    max_consecutive: int = Field(default=2, ge=1, le=MAX_COUNT, description="steps in a row for one task (C_task)")

    lease_steps: int = Field(
        default=4, ge=0, le=1000, description="steps that a selected task without a record is not picked again; 0: it may be at once"
    )
    filters: tuple[Literal["progress", "guesses"], ...] = Field(
        default=(), description="filters that let tasks rest (METHOD 10): no progress; rewards from guessed identifiers"
    )
    top_visits: int = Field(default=3, ge=2, description="visits in a row at the highest reward that put a task to rest")
    flat_visits: int = Field(default=4, ge=2, description="visits in a row with the same equal rewards that put a task to rest")
    top_tolerance: float = Field(default=0.02, ge=0, lt=1, description="distance from the top that counts as it, of the reward range")
    rest_steps: int = Field(default=8, ge=1, description="steps of the first rest; each further one is twice as long")
    longest_rest_steps: int = Field(default=64, ge=1, description="steps of the longest rest")
    probation_picks: int = Field(default=4, ge=1, description="rested tasks that may be picked again in one step")
    open_batches: int = Field(default=3, ge=1, description="batches' worth of tasks that never rest")
    guess_cases: int = Field(default=2, ge=1, description="rewards proven to come from guessed identifiers that bar a task")
    guess_rest_steps: int = Field(default=16, ge=1, description="steps that it is then kept from exploitation")

    reward_low: float = Field(default=0.0, description="lowest reward of the pool")
    reward_high: float = Field(default=1.0, description="highest reward of the pool")
    ddof: Literal[0, 1] = Field(default=1, description="variance of a group: 1 sample, 0 population")
    timeout_counts: bool = Field(
        default=True, description="the reward of a rollout that ran into a time limit stands; false: it is missing"
    )
    truncated_counts: bool = Field(default=True, description="the reward of a rollout whose budget ran out stands; false: it is missing")

    @model_validator(mode="after")
    def _consistent(self) -> "SchedulerConfig":
        if self.reward_high <= self.reward_low:
            raise ValueError(f"reward_high ({self.reward_high}) must exceed reward_low ({self.reward_low})")
        if self.reward_range > MAX_REWARD_RANGE:
            raise ValueError(f"rewards may span {MAX_REWARD_RANGE:g} at most, came {self.reward_low:g} to {self.reward_high:g}")
        if self.calibration_full <= self.calibration_start:
            raise ValueError("calibration_full must exceed calibration_start")
        return self

    def settled(self, sums: bool = False) -> "SchedulerConfig":
        """With what was left open: the prior, and settings that depend on it (docs/court.md has the table behind them). ``sums``: for
        a graph mode that keeps sums; there ``auto`` is no prior residual, and with one lists are shorter. The paper's rule never has one.
        """
        residual = self.estimator == "envsched" and (self.prior == "residual" or (self.prior == "auto" and not sums))
        values = (_WITH_RESIDUALS_IN_SUMS if sums else _WITH_RESIDUALS) if residual else _POOLED
        depending = {name: value for name, value in values.items() if getattr(self, name) is None}
        return self.model_copy(update={"prior": "residual" if residual else "pooled"} | depending)

    def is_evidence(self, status: Status) -> bool:
        """Whether a rollout that ended so counts (METHOD 2)."""
        if status is Status.TIMEOUT:
            return self.timeout_counts
        if status is Status.TRUNCATED:
            return self.truncated_counts
        return not status.is_missing

    @property
    def reward_range(self) -> float:
        return self.reward_high - self.reward_low


class FeatureConfig(Section):
    """How tasks become vectors."""

    encoder: str = Field(
        default="auto", description="auto (sentence-transformers when installed, else tfidf), tfidf, minilm, or a model's path"
    )
    text_weight: float = Field(default=1.0, ge=0, description="weight of prompt text in the within-environment similarity")
    tool_weight: float = Field(default=1.0, ge=0, description="weight of tool sets")
    state_weight: float = Field(default=1.0, ge=0, description="weight of state keys")
    verifier_weight: float = Field(default=1.0, ge=0, description="weight of verifier tokens")

    @field_validator("text_weight", "tool_weight", "state_weight", "verifier_weight")
    @classmethod
    def _weighs(cls, value: float) -> float:
        if value and not 1e-6 <= value <= 1e6:  # rows are brought to norm 1, which squares
            raise ValueError("a weight is 0, or from 1e-6 to 1e6")
        return value


class RuntimeConfig(Section):
    """How environments run: workers, wall-clock and resource limits, sizes."""

    num_workers: int = Field(default=2, ge=1, description="persistent worker processes")
    sandbox: Literal["on", "require", "off"] = Field(
        default="on",
        description="on: every wall that the machine allows; require: all of them or no run; off: none (tests of the walls)",
    )
    start_seconds: float = Field(default=30.0, gt=0, description="wall clock to construct an environment")
    call_seconds: float = Field(default=5.0, gt=0, description="wall clock of one tool call")
    episode_seconds: float = Field(default=120.0, gt=0, description="wall clock of all calls of an episode together")
    score_seconds: float = Field(default=10.0, gt=0, description="wall clock of one run of a task's checks")
    check_seconds: float = Field(default=2.0, gt=0, description="wall clock of one check, where the run of all did not end")
    memory_mb: int = Field(default=512, ge=64, description="address space of one episode's process, MiB")
    cpu_seconds: int = Field(default=120, ge=1, description="CPU time of one episode")
    file_mb: int = Field(default=8, ge=0, description="largest file that an environment can write, MiB")
    folder_mb: int = Field(default=64, ge=1, description="all files of a worker's environments together, MiB")
    reply_mb: int = Field(default=8, ge=1, description="longest message that is accepted from an environment's process, MiB")
    result_chars: int = Field(default=16_000, ge=1, description="longest tool result that the policy is shown")


class TrainConfig(Section):
    """How the policy is trained between two batches; per-device sizes follow from the number of processes."""

    pool: str = Field(
        default="bundled", description="bundled, a folder in EnvScaler's format, or a JSONL file whose environments have code"
    )
    findings: str = Field(default="", description="what envsched pool check --json wrote about the pool; empty: nothing is known of it")
    scheduler: str = Field(default="envsched", description="envsched, or the name of a baseline")
    model: str = Field(default="", description="folder (or hub name) of the policy")
    seed: int = Field(default=0, ge=0, description="every generator of a step comes from this and the step")
    max_steps: int = Field(default=201, ge=1, description="optimizer steps; one batch of tasks each")

    learning_rate: float = Field(default=1e-6, gt=0, description="constant over the run, or the peak of a period")
    learning_rate_period: int = Field(
        default=0,
        ge=0,
        description="steps in which the learning rate rises, over the first fifth, and falls to zero along a cosine; 0: constant",
    )
    optimizer: Literal["adamw", "sgd"] = Field(
        default="adamw", description="adamw, or sgd: steps as long as the gradient, so that groups without signal don't move the policy"
    )
    policy_clip: float = Field(default=0.2, gt=0, description="clip of the probability ratio (epsilon)")
    max_advantage: float | None = Field(default=0.2, gt=0, description="advantages are clamped to [-x, x]; none: not at all")
    scale_rewards: Literal["none", "group", "batch"] = Field(
        default="none", description="what a group's rewards are divided by: nothing, or a std"
    )
    loss: Literal["dapo", "grpo", "dr_grpo", "bnpo"] = Field(default="dapo", description="how token losses are averaged")
    kl_weight: float = Field(default=0.0, ge=0, description="weight of the KL term; 0 keeps no reference policy")
    max_grad_norm: float = Field(default=1.0, gt=0, description="gradients are clipped to this norm")

    temperature: float = Field(default=1.0, gt=0, description="of sampling")
    max_completion_tokens: int = Field(default=8192, ge=8, description="budget of a whole episode, tool results included")
    max_turn_tokens: int | None = Field(default=None, ge=4, description="budget of one assistant turn; none: what the episode has left")
    max_turns: int = Field(default=32, ge=1, description="assistant turns that may call tools")
    thinking: bool = Field(default=True, description="let the chat template open a thinking block")
    system_prompt: Literal["environment", "none"] = Field(default="environment", description="what is said before the task")

    max_device_batch: int = Field(default=8, ge=1, description="most rollouts of one forward and backward on a device")
    precision: Literal["bf16", "fp32"] = Field(default="bf16", description="type of activations; weights and optimizer stay fp32")
    gradient_checkpointing: bool = Field(default=True, description="recompute activations to save memory")
    device: Literal["auto", "cpu"] = Field(default="auto", description="auto: CUDA where there is one")

    checkpoint_every: int = Field(default=20, ge=1, description="steps between checkpoints; the last step always has one")
    keep_checkpoints: int = Field(default=2, ge=1, description="newest checkpoints that stay on disk")
    trackers: tuple[Literal["tensorboard", "wandb", "trackio"], ...] = Field(
        default=("tensorboard",), description="where metrics go beside logs/metrics.jsonl"
    )
    graph_device: Literal["auto", "cpu", "cuda"] = Field(
        default="auto",
        description="auto: FAISS searches on rank 0's GPU where it can; cpu: never; cuda: sums are propagated there too (graph_mode exact)",
    )
    shared_graph: bool = Field(
        default=False,
        description="each training rank keeps sums, lists and features of its own environments (graph_mode static or kernel); "
        "false: rank 0 keeps all of them",
    )
    overlap: bool = Field(default=True, description="observe rewards and choose the next batch while the optimizer steps")

    eval_every: int = Field(default=1, ge=0, description="steps between scores on BFCL's dialogues, where its files are; 0: never")
    eval_data: str = Field(default="data/bfcl", description="BFCL's files, as prepare_data.py --from-package lays them out")
    eval_tasks: int | None = Field(default=None, ge=1, description="dialogues of each subset, evenly spread; none: all 200")
    eval_tokens: int = Field(default=1024, ge=4, description="budget of one message of a dialogue")


class VllmConfig(Section):
    """Whether and how vLLM writes the rollouts; transformers writes them otherwise."""

    mode: Literal["off", "colocate", "server"] = Field(default="off", description="an engine per training device, or a server")
    tensor_parallel: int = Field(default=1, ge=1, description="devices that share one colocated engine")
    memory_share: float = Field(default=0.3, gt=0, lt=1, description="of a device, for a colocated engine's weights and cache")
    max_model_tokens: int | None = Field(default=None, ge=16, description="prompt and episode together; none: the model's own limit")
    host: str = Field(default="127.0.0.1", description="of the server")
    port: int = Field(default=8000, ge=1, le=65535, description="of the server")
    server_seconds: float = Field(default=600, gt=0, description="how long to wait for the server to come up")
    silent_seconds: float = Field(default=60, gt=0, description="a server that answers no health check for so long is gone: stop")
    speculation: Literal["off", "ngram", "suffix"] = Field(default="off", description="drafts without a second model (colocate)")
    speculative_tokens: int = Field(default=4, ge=1, description="tokens drafted at a time")


class Config(Section):
    """A whole config file."""

    scheduler: SchedulerConfig = SchedulerConfig()
    features: FeatureConfig = FeatureConfig()
    runtime: RuntimeConfig = RuntimeConfig()
    train: TrainConfig = TrainConfig()
    vllm: VllmConfig = VllmConfig()


def load_config(path: Path | str | None = None, overrides: Mapping[str, Any] | Iterable[str] = ()) -> Config:
    """Read a YAML file and lay ``overrides`` over it.

    Args:
        path: a YAML file, or none for the defaults.
        overrides: a mapping of names to values, or ``name=value`` strings whose value is read as YAML.

    Raises:
        ConfigError: an unknown name (with the nearest known one), a value that does not fit, an unreadable file.
    """
    tree = _sections(Path(path)) if path is not None else {}
    for name, value in _pairs(overrides):
        section, key = _place(name)
        tree.setdefault(section, {})[key] = value
    _refuse_unknown(tree)
    try:
        return Config.model_validate(tree)
    except ValidationError as error:
        lines = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg'].removeprefix('Value error, ')}{_came(e)}" for e in error.errors())
        raise ConfigError(f"{path or 'config'}: {lines}") from None


def _came(error: Mapping[str, Any]) -> str:
    # what contradicts something else is already in the words; the input is the whole section then
    return "" if isinstance(error["input"], Mapping) and error["type"] == "value_error" else f" (came: {error['input']!r})"


def _sections(path: Path) -> dict[str, dict[str, Any]]:
    tree = read_yaml(path)
    tree = {} if tree is None else tree
    if not isinstance(tree, dict) or not all(part is None or isinstance(part, dict) for part in tree.values()):
        raise ConfigError(f"config file {path}: expected sections {', '.join(Config.model_fields)}, each a mapping of settings")
    return {section: part or {} for section, part in tree.items()}


def _pairs(overrides: Mapping[str, Any] | Iterable[str]) -> Iterable[tuple[str, Any]]:
    if isinstance(overrides, Mapping):
        yield from overrides.items()
        return
    for text in overrides:
        name, separator, value = text.partition("=")
        if not separator:
            raise ConfigError(f"--set {text!r}: expected name=value, for example half_life=24")
        yield name.strip(), parse_yaml(value, f"--set {text!r}: the value")


def _place(name: str) -> tuple[str, str]:
    section, dot, key = name.partition(".")
    return (section, key) if dot else ("scheduler", name)


def _refuse_unknown(tree: Mapping[str, Mapping[str, Any]]) -> None:
    settings = {section: type(field.default).model_fields for section, field in Config.model_fields.items()}
    for section, values in tree.items():
        _known(section, settings, "section")
        for key in values:
            elsewhere = [f"{other}.{key}" for other in settings if key in settings[other]]
            _known(key, settings[section], f"setting of {section}", elsewhere)


def _known(name: str, allowed: Iterable[str], kind: str, elsewhere: list[str] | None = None) -> None:
    allowed = list(allowed)
    if name in allowed:
        return
    nearest = elsewhere or difflib.get_close_matches(str(name), allowed, n=1)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"known: {', '.join(allowed)}"
    raise ConfigError(f"unknown {kind} {name!r}; {hint}")
