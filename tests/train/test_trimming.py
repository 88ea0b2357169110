"""The trimmed update against TRL's own, on the same rollouts."""

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOTrainer

from envsched.config import load_config
from envsched.runtime import EnvironmentRuntime
from envsched.train.arguments import grpo_arguments
from envsched.train.geometry import divide
from envsched.train.rounds import Rounds
from envsched.train.trainer import ScheduledGRPOTrainer
from tests.train.rotation import Rotation

SETTINGS = (
    "batch_size=4",
    "group_size=2",
    "train.max_steps=1",
    "train.precision=fp32",
    "train.gradient_checkpointing=false",
    "train.max_completion_tokens=120",
    "train.max_turn_tokens=30",
    "train.thinking=false",
    "train.device=cpu",
    "train.trackers=[]",
)


class Watched(ScheduledGRPOTrainer):
    """Keeps loss and gradients of its update, and those of TRL's on the same inputs."""

    found = wanted = None

    def _compute_loss(self, model, inputs):
        self.wanted = self._gradients(lambda: GRPOTrainer._compute_loss(self, model, inputs), model)
        self.found = self._gradients(lambda: ScheduledGRPOTrainer._compute_loss(self, model, inputs), model)
        self.advantages = inputs["advantages"]
        return super()._compute_loss(model, inputs)

    @staticmethod
    def _gradients(loss_of, model):
        loss = loss_of()
        loss.backward()
        made = [parameter.grad.clone() for parameter in model.parameters()]
        model.zero_grad()
        return [loss.detach(), *made]


@pytest.fixture
def watch(tmp_path, bundled):
    def run(reward):
        config = load_config(overrides=SETTINGS)
        with EnvironmentRuntime(bundled, num_workers=1) as runtime:
            trainer = Watched(
                AutoModelForCausalLM.from_pretrained("models/tiny-policy", dtype=torch.float32),
                grpo_arguments(config, divide(4, 2, 1, 8), tmp_path / "checkpoint", tmp_path / "logs"),
                pool=bundled,
                runtime=runtime,
                rounds=Rounds(Rotation(bundled, 4)),
                reward=reward,
                processing_class=AutoTokenizer.from_pretrained("models/tiny-policy", padding_side="left"),
            )
            trainer.train()
        return trainer

    return run


def half_silent(attempt):
    return float(attempt.number) if attempt.task.endswith(("0", "2")) else 0.5


def test_loss_and_gradients_are_trls(watch):
    trainer = watch(half_silent)
    assert 0 < (trainer.advantages == 0).sum() < len(trainer.advantages), "some groups are silent and some are not"
    assert any(gradient.abs().max() > 0 for gradient in trainer.wanted[1:])
    for found, wanted in zip(trainer.found, trainer.wanted, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-6)


def test_a_step_without_any_signal_has_gradient_zero(watch):
    trainer = watch(lambda attempt: 0.5)
    assert all(gradient.abs().max() == 0 for gradient in trainer.found)
