import json
import os

import pytest

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
