from dataclasses import replace

import numpy as np
import pytest

from envsched.baselines import build_scheduler
from envsched.config import SchedulerConfig
from envsched.errors import ConfigError
from envsched.simulate.calibration import load_kind
from envsched.simulate.line_up import parse_line_up, prepare, split_name
from envsched.simulate.runs import Setting, Trace, environment_pool, make_learner, records_of, run_schedule, summary, world_features

CONFIG = SchedulerConfig(batch_size=8, group_size=4)
SETTING = Setting(seed=1, steps=10, num_environments=12, tasks_per_environment=5)


def run(name, setting=SETTING):
    world, learner = make_learner(setting, load_kind(setting.learner))
    pool = environment_pool(setting.num_environments, setting.tasks_per_environment)
    scheduler = prepare(name, pool, CONFIG, setting.seed, world_features(world, pool), np.arange(len(pool)))
    return run_schedule(scheduler, learner, pool, setting.steps, CONFIG.group_size)


def test_a_run_is_a_pure_function_of_its_setting():
    assert summary(run("plr")) == summary(run("plr"))


def test_figures_by_hand():
    trace = Trace(
        variance=[0.1, 0.3], environments=[2, 4], tools=[20, 40], hits=[1, 3], exploited=[2, 4], unseen_hits=[1, 0], unseen=[2, 0],
        groups=[np.array([0.0, 0.2]), np.array([0.2, 0.4])], means=[np.array([0.5, 0.7]), np.array([0.9, 0.1])],
        visited=np.array([True, True, False]), true_variance=[0.1, 0.3],
    )  # fmt: skip
    figures = summary(trace)["figures"]
    assert figures["mean_variance"] == pytest.approx(0.2)
    assert figures["median_variance"] == pytest.approx(0.2)
    assert figures["median_reward"] == pytest.approx(0.6)
    assert (figures["environments"], figures["tools"]) == (3.0, 30.0)
    assert figures["hit_rate"] == pytest.approx(4 / 6)
    assert figures["unseen_hit_rate"] == pytest.approx(0.5)
    assert figures["zero_signal"] == 0.25
    assert figures["distinct_tasks"] == 2


def test_the_oracle_captures_more_than_random():
    oracle, random = (summary(run(name))["figures"]["mean_variance"] for name in ("oracle", "random"))
    assert oracle > 1.3 * random


def test_random_hits_the_top_quartile_at_chance():
    trace = run("random", Setting(seed=2, steps=60, num_environments=12, tasks_per_environment=5))
    assert sum(trace.hits) / sum(trace.exploited) == pytest.approx(0.25, abs=0.06)


def test_a_task_drawn_twice_is_reported_once_by_its_first_group():
    records = records_of(["a", "b", "a"], 3, np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 1.0]]))
    assert {record.task: record.rewards for record in records} == {"a": (0.0, 1.0), "b": (0.5, 0.5)}


def test_line_up_names():
    assert split_name("envsched:half_life=24+relations=[within]") == ("envsched", {"half_life": 24, "relations": ["within"]})
    assert parse_line_up("envsched, paper:num_cross=0") == ["envsched", "paper:num_cross=0"]
    with pytest.raises(ConfigError, match=r"(?i)known: envsched, paper.*oracle"):
        parse_line_up("envsched,leeps")
    with pytest.raises(ConfigError, match="half_life"):
        parse_line_up("envsched:half_lives=3")
    with pytest.raises(ConfigError, match="setting=value"):
        parse_line_up("envsched:half_life")
    with pytest.raises(ConfigError, match="no scheduler"):
        parse_line_up(" , ")


def test_rivals_choose_as_published_and_the_oracle_keeps_the_quotas():
    world, _ = make_learner(SETTING, load_kind("slow"))
    pool = environment_pool(12, 5)
    build = {name: prepare(name, pool, CONFIG, 0, world_features(world, pool)) for name in ("dps", "oracle", "random")}
    assert build["dps"].config.max_per_environment == CONFIG.batch_size
    assert build["oracle"].config.max_per_environment == CONFIG.max_per_environment
    kept = prepare("dps", pool, CONFIG, 0, world_features(world, pool), quotas_for_all=True)
    assert kept.config.max_per_environment == CONFIG.max_per_environment
    assert type(build_scheduler("adarft", pool, CONFIG)).__name__ == "AdaRFT"


def test_persistence_slows_the_drift_of_tasks_and_nothing_else():
    kind = load_kind("slow")
    world, learner = make_learner(SETTING, kind)
    slower_world, slower = make_learner(replace(SETTING, persistence=4), kind)
    assert np.array_equal(world.own, slower_world.own)
    assert slower.tempo == replace(learner.tempo, drift_steps=4 * learner.tempo.drift_steps)
    before = learner.logits
    for one in (learner, slower):
        one.train(np.array([0]), np.full((1, 8), 0.5))
    moved, moved_less = (np.abs(one.logits - before).mean() for one in (learner, slower))
    assert moved_less == pytest.approx(moved / 2, rel=0.1)  # a quarter of the rate, and the step of a random walk is its root
