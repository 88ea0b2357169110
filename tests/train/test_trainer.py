"""The real trainer, environments and tool loop, with a policy that knows nothing and a user's own scheduler."""

import json
from dataclasses import replace
from functools import partial

import pytest
import torch

from envsched.errors import RecordError, SelectionError
from envsched.files import digest
from envsched.history import read_records
from envsched.pool import Pool
from envsched.runtime import EnvironmentRuntime
from envsched.train.run_log import read_metrics, summary_table
from envsched.types import Status
from tests.train.conftest import pure_reward
from tests.train.rotation import Rotation


def weights(trainer):
    return {name: value.clone() for name, value in trainer.model.state_dict().items()}


def rollouts(trainer, step):
    return read_records(trainer._rounds.run.layout.rollouts(step))[0]


def without_times(trainer, step):
    return [replace(record, seconds=None) for record in rollouts(trainer, step)]


def test_a_users_scheduler_is_asked_each_step_and_has_seen_all_before(build, bundled):
    class Watching(Rotation):
        known = ()

        def select(self, step):
            self.known = (*self.known, len(self.seen))
            return super().select(step)

    scheduler = Watching(bundled, 3)
    trainer = build(scheduler, settings=["train.max_steps=3"])
    before = weights(trainer)
    trainer.train()
    assert scheduler.known == (0, 3, 6), "rewards of step t - 1 are known when step t is chosen"
    assert any(not torch.equal(before[name], value) for name, value in weights(trainer).items())
    for step in range(3):
        records = rollouts(trainer, step)
        assert [record.task for record in records] == list(Rotation(bundled, 3).select(step).tasks)
        for record in records:
            assert record.rewards == tuple(int(digest(record.task, str(step), str(g))[:8], 16) / 2**32 for g in range(2))
            assert record.policy_version == step
            assert all(tokens > 0 for tokens in record.tokens)
            assert all(seconds > 0 for seconds in record.seconds)
            assert set(record.status) <= {Status.OK, Status.TRUNCATED}
    lines = read_metrics(trainer._rounds.run.metrics_file)
    assert [line["step"] for line in lines] == [0, 1, 2]
    assert [line["rotation/seen"] for line in lines] == [3, 6, 9]
    assert summary_table(trainer._rounds.run.metrics_file).row_count == 3


def test_reward_is_the_share_of_passed_checks(build, bundled):
    trainer = build(settings=["train.max_steps=1"], reward=None)
    trainer.train()
    for record in rollouts(trainer, 0):
        for reward, passed in zip(record.rewards, record.extra["passed"], strict=True):
            assert len(passed) == len(bundled.task(record.task).checks)
            assert reward == sum(passed) / len(passed)


def test_an_environment_that_cannot_start_is_missing_evidence_not_reward_zero(build, bundled):
    broken = Pool([replace(e, source="raise OSError('no disk')") for e in bundled.environments], bundled.tasks)
    with EnvironmentRuntime(broken, num_workers=1) as runtime:
        trainer = build(Rotation(broken, 3), settings=["train.max_steps=1"], pool=broken, runtime=runtime)
        before = weights(trainer)
        trainer.train()
    for record in rollouts(trainer, 0):
        assert record.rewards == (None, None)
        assert all(status.is_missing for status in record.status)
        assert all(record.extra["errors"])
    assert all(torch.equal(before[name], value) for name, value in weights(trainer).items()), "no reward, no gradient"


def test_resumed_steps_equal_the_uninterrupted_ones(build):
    whole = build(name="whole", settings=["train.max_steps=4", "train.checkpoint_every=2"])
    whole.train()
    half = build(name="half", settings=["train.max_steps=2", "train.checkpoint_every=2"])
    half.train()
    torch.manual_seed(99)  # whatever the generators were
    checkpoint = half._rounds.run.checkpoints / "checkpoint-2"
    rest = build(name="half", settings=["train.max_steps=4", "train.checkpoint_every=2"])
    rest._rounds.scheduler.load_state_dict(json.loads((checkpoint / "envsched.json").read_text())["scheduler"])
    rest.train(resume_from_checkpoint=str(checkpoint))
    for step in range(4):
        assert without_times(rest, step) == without_times(whole, step)
    assert all(torch.equal(value, weights(rest)[name]) for name, value in weights(whole).items())
    assert rest._rounds.scheduler.state_dict() == whole._rounds.scheduler.state_dict()


def test_advantages_are_clamped_and_the_loss_follows(build):
    """With ratio 1 and no KL, dapo's loss is -sum(advantage * mask) / tokens: the clamp must be in it."""
    losses = {}
    for limit in (None, 0.05):
        trainer = build(name=f"clamp-{limit}", settings=["train.max_steps=1"], max_advantage=limit)
        trainer.model.train()
        outputs = trainer._generate_and_score_completions([{}] * 6)
        advantages, mask = outputs["advantages"], outputs["completion_mask"] * outputs["tool_mask"]
        expected = -(advantages[:, None] * mask).sum() / mask.sum()
        trainer.current_gradient_accumulation_steps = 1
        losses[limit] = trainer.compute_loss(trainer.model, outputs).item()
        assert losses[limit] == pytest.approx(expected.item(), abs=1e-6)
        if limit is not None:
            assert advantages.abs().max() == pytest.approx(limit)
    assert losses[None] != losses[0.05]


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_a_step_is_as_long_as_the_gradient_with_sgd_alone(build, optimizer):
    """Halve all advantages: sgd moves half as far, adamw divides that out again."""
    moved = {}
    for share in (1.0, 0.5):
        trainer = build(
            name=f"{optimizer}-{share}", settings=["train.max_steps=1", f"train.optimizer={optimizer}"], reward=partial(_shrunk, share)
        )
        before = weights(trainer)
        trainer.train()
        moved[share] = sum((value - before[name]).norm() ** 2 for name, value in weights(trainer).items()).sqrt()
    assert (moved[0.5] / moved[1.0]).item() == pytest.approx(0.5 if optimizer == "sgd" else 1, abs=0.02)


def _shrunk(share, attempt):
    return share * pure_reward(attempt)


def test_a_batch_of_another_size_is_refused(build, bundled):
    with pytest.raises(SelectionError, match="chose 5 tasks, the trainer runs 3"):
        build(Rotation(bundled, 5), settings=["train.max_steps=1"]).train()


def test_a_reward_that_is_no_number_stops_the_run_naming_task_and_step(build):
    trainer = build(settings=["train.max_steps=1"], reward=lambda attempt: float("nan"))
    with pytest.raises(RecordError, match=r"step 0"):
        trainer.train()
