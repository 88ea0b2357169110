import json
import os

import pytest

from envsched.config import load_config
from envsched.files import digest
from tests.train.rotation import Rotation

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

SETTINGS = """\
scheduler: {batch_size: 4, group_size: 4, max_per_environment: 2}
features: {encoder: tfidf}
runtime: {num_workers: 1}
train:
  max_steps: 6
  checkpoint_every: 2
  learning_rate: 0.01
  max_advantage: null
  max_completion_tokens: 24
  max_turn_tokens: 8
  thinking: false
  system_prompt: none
  precision: fp32
  gradient_checkpointing: false
  device: cpu
  trackers: []
  eval_every: 0
"""


@pytest.fixture(scope="session")
def bundled():
    from envsched.pool import Pool

    return Pool.bundled()


@pytest.fixture(scope="session")
def random_policy(tmp_path_factory, bundled):
    """Folder of a policy that knows nothing."""
    from tests.train.policies import save_random_policy

    texts = [task.prompt for task in bundled.tasks] + [json.dumps(list(e.tools)) for e in bundled.environments]
    return save_random_policy(tmp_path_factory.mktemp("policy"), texts)


@pytest.fixture(scope="session")
def run_flags(tmp_path_factory, random_policy):
    """Flags of ``train.py`` for a run of six quick steps."""
    path = tmp_path_factory.mktemp("config") / "quick.yaml"
    path.write_text(SETTINGS)
    return ["--config", str(path), "--model-path", str(random_policy)]


SMALL = [
    "batch_size=3",
    "group_size=2",
    "train.precision=fp32",
    "train.gradient_checkpointing=false",
    "train.max_completion_tokens=24",
    "train.max_turn_tokens=8",
    "train.learning_rate=0.01",
    "train.thinking=false",
    "train.device=cpu",
    "train.trackers=[]",
    "train.max_advantage=null",
]


def pure_reward(attempt):
    return int(digest(attempt.task, str(attempt.step), str(attempt.number))[:8], 16) / 2**32


@pytest.fixture(scope="session")
def runtime(bundled):
    from envsched.runtime import EnvironmentRuntime

    with EnvironmentRuntime(bundled, num_workers=1) as made:
        yield made


@pytest.fixture
def build(tmp_path, bundled, runtime, random_policy):
    """A trainer of three tasks by two rollouts a step, on ``Rounds`` of the given scheduler and options."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from envsched.train.arguments import grpo_arguments
    from envsched.train.geometry import divide
    from envsched.train.rounds import Rounds
    from envsched.train.run_directory import RunDirectory
    from envsched.train.run_log import RunLog
    from envsched.train.trainer import ScheduledGRPOTrainer

    def make(scheduler=None, name="run", settings=(), books=None, **options):
        config = load_config(overrides=[*SMALL, *settings])
        run = RunDirectory(tmp_path / name)
        args = grpo_arguments(config, divide(3, 2, 1, 4), run.checkpoints, run.folder / "logs")
        rounds = Rounds(scheduler or Rotation(bundled, 3), run, **(books or {}))
        options = {"pool": bundled, "runtime": runtime, "reward": pure_reward, "max_advantage": config.train.max_advantage, **options}
        return ScheduledGRPOTrainer(
            AutoModelForCausalLM.from_pretrained(random_policy, dtype=torch.float32),
            args,
            rounds=rounds,
            processing_class=AutoTokenizer.from_pretrained(random_policy, padding_side="left"),
            callbacks=[RunLog(run.metrics_file, config.train.max_steps)],
            **options,
        )

    return make
