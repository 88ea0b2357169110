"""What happens beside and after the optimizer: the scheduler's thread, the validation, the table of environments."""

import csv
import json
import time

import pytest

from envsched.config import FeatureConfig, SchedulerConfig
from envsched.errors import RecordError
from envsched.evaluate.validation import BfclValidation
from envsched.features import build_features
from envsched.history import read_records
from envsched.scheduler import EnvScheduler
from envsched.train.environment_table import EnvironmentTable
from envsched.train.run_directory import RunDirectory
from envsched.train.run_log import read_metrics
from tests.evaluate.small import write_small
from tests.train.killing import content, without_seconds
from tests.train.rotation import Rotation

CONFIG = SchedulerConfig(batch_size=3, group_size=2, max_per_environment=2)
SAVED = {"config": CONFIG, "saved_after": lambda num_steps: num_steps % 2 == 0}


def files(run, *folders):
    return {path.relative_to(run.folder): content(path) for name in folders for path in (run.folder / name).iterdir()}


def test_batches_records_and_states_are_the_same_with_and_without_overlap(build, bundled):
    made, features = {}, build_features(bundled, FeatureConfig(encoder="tfidf"))
    for overlap in (False, True):
        scheduler = EnvScheduler(bundled, CONFIG, features=features)
        trainer = build(
            scheduler,
            name=f"overlap-{overlap}",
            settings=["train.max_steps=4", "train.checkpoint_every=2"],
            books={**SAVED, "overlap": overlap},
        )
        trainer.train()
        trainer._rounds.close()
        run = trainer._rounds.run
        seals = [json.loads((run.checkpoints / f"checkpoint-{step}/envsched.json").read_text()) for step in (2, 4)]
        made[overlap] = files(run, "selector", "rollouts"), [without_seconds(seal["scheduler"]) for seal in seals]
    assert made[False] == made[True]
    assert len(made[True][0]) >= 4 * 2


def test_a_scheduler_that_counts_its_selections_is_saved_before_the_next_one(build, bundled):
    class Counting(Rotation):
        selected = 0

        def select(self, step):
            self.selected += 1
            return super().select(step)

        def state_dict(self):
            return {**super().state_dict(), "selected": self.selected}

    trainer = build(Counting(bundled, 3), settings=["train.max_steps=4", "train.checkpoint_every=2"], books={**SAVED, "overlap": True})
    trainer.train()
    for step in (2, 4):
        seal = json.loads((trainer._rounds.run.checkpoints / f"checkpoint-{step}/envsched.json").read_text())
        assert seal["scheduler"]["selected"] == step


def test_a_fault_in_the_schedulers_thread_stops_the_run(build, bundled):
    class Failing(Rotation):
        def observe(self, records):
            raise OSError("no more memory")

    with pytest.raises(OSError, match="no more memory"):
        build(Failing(bundled, 3), settings=["train.max_steps=2"], books={**SAVED, "overlap": True}).train()


@pytest.mark.parametrize("overlap", [False, True])
def test_the_time_of_a_step_is_split(build, bundled, overlap):
    """Both verbs take their time. With overlap the second and fourth batch are chosen ahead, the first and third when their steps begin."""
    select_seconds, observe_seconds, slack = 0.5, 0.25, 0.5

    class Slow(Rotation):
        def select(self, step):
            time.sleep(select_seconds)
            return super().select(step)

        def observe(self, records):
            time.sleep(observe_seconds)
            super().observe(records)

    trainer = build(Slow(bundled, 3), settings=["train.max_steps=4", "train.checkpoint_every=2"], books={**SAVED, "overlap": overlap})
    trainer.train()
    trainer._rounds.close()
    lines = read_metrics(trainer._rounds.run.metrics_file)
    for step, line in enumerate(lines):
        assert line["scheduler/seconds"] > select_seconds + observe_seconds
        assert line["scheduler/share"] == pytest.approx(line["scheduler/seconds"] / line["time/step"])
        waited = line["scheduler/waited"]
        assert 0 < waited < line["scheduler/seconds"] + slack
        if not overlap:
            assert waited > select_seconds + observe_seconds
        elif step % 2 == 0:
            assert waited > select_seconds
        assert 0 <= line["time/step"] - line["time/rollouts"] - line["time/update"] - waited < slack, "nothing is counted twice or left out"


def test_the_policy_is_scored_on_dialogues_every_other_step(build, tmp_path):
    validation = BfclValidation(write_small(tmp_path / "bfcl"), every=2, num_tasks=1, template={})
    trainer = build(settings=["train.max_steps=3"], validation=validation, validation_tokens=8)
    trainer.train()
    validation.close()
    lines = read_metrics(trainer._rounds.run.metrics_file)
    assert ["bfcl/mean" in line for line in lines] == [False, True, True], "every second step, and the last"
    assert set(lines[1]) >= {"bfcl/base", "bfcl/miss_func", "bfcl/miss_param", "bfcl/long_context", "time/validation"}
    kept = json.loads(trainer._rounds.run.validation_file(2).read_text())
    assert [verdict["subset"] for verdict in kept["verdicts"]] == ["base", "long_context", "miss_func", "miss_param"]
    assert kept["scores"]["bfcl/mean"] == lines[1]["bfcl/mean"]


def test_validation_changes_nothing_of_the_training(build, tmp_path):
    validation = BfclValidation(write_small(tmp_path / "bfcl"), every=1, num_tasks=1, template={})
    with_it = build(name="with", settings=["train.max_steps=2"], validation=validation, validation_tokens=8)
    without = build(name="without", settings=["train.max_steps=2"])
    for trainer in (with_it, without):
        trainer.train()
    validation.close()
    assert files(with_it._rounds.run, "selector", "rollouts") == files(without._rounds.run, "selector", "rollouts")
    pairs = zip(with_it.model.state_dict().values(), without.model.state_dict().values(), strict=True)
    assert all(a.equal(b) for a, b in pairs)


def test_the_table_of_environments_adds_up(build, bundled):
    trainer = build(settings=["train.max_steps=2"], books={**SAVED, "table": EnvironmentTable(bundled, CONFIG)})
    trainer.train()
    run = trainer._rounds.run
    lines = list(csv.DictReader(run.environments_file.open()))
    records = [record for step in range(2) for record in read_records(run.layout.rollouts(step))[0]]
    assert {line["environment"] for line in lines} == {task.environment for task in bundled.tasks}
    assert sum(int(line["groups"]) for line in lines) == len(records) == 6
    assert sum(int(line["tasks"]) for line in lines) == len(bundled)
    for line in lines:
        rewards = [sum(r.rewards) / 2 for r in records if bundled.task(r.task).environment == line["environment"]]
        assert line["reward"] == ("" if not rewards else str(sum(rewards) / len(rewards)))
    again = EnvironmentTable(bundled, CONFIG)
    again.observe(records)
    again.write(run.folder / "again.csv")
    assert (run.folder / "again.csv").read_text() == run.environments_file.read_text()


def test_a_reward_that_raises_names_task_step_and_rollout(build):
    def broken(attempt):
        raise KeyError("price")

    with pytest.raises(RecordError, match=r"task '.*', step 0, rollout 0: the reward function raised KeyError: 'price'"):
        build(settings=["train.max_steps=1"], reward=broken).train()


def test_verdicts_after_the_checkpoint_are_set_aside_when_a_run_goes_back(tmp_path):
    run = RunDirectory(tmp_path)
    for number in (1, 2):
        path = run.validation_file(number)
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")
    run.rewind()
    assert sorted(path.name for path in (tmp_path / "superseded/1/validation").iterdir()) == ["after_1.json", "after_2.json"]
