"""Workers and episodes' processes killed at random while rollouts run: every group is accounted for, no reward is made up."""

import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from envsched.runtime import EnvironmentRuntime
from envsched.types import Status
from tests.runtime.pools import COUNTER_TOOLS, counter_pool

GROUP = 8
CHECKS = ["def check_func(s):\n    return s['count'] == 21", "def check_func(s):\n    return s['count'] < 0"]  # reward .5 after all calls


def descendants(process: int) -> list[int]:
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return []
    return [found for child in map(int, children) for found in (child, *descendants(child))]


class Killer(threading.Thread):
    """Every ``pause`` seconds or so kills a launcher, a worker or an episode's process under this test."""

    def __init__(self, runtime: EnvironmentRuntime, pause: float, seed: int) -> None:
        super().__init__(daemon=True)
        self.runtime, self.pause, self.random = runtime, pause, random.Random(seed)
        self.stop = threading.Event()
        self.num_killed = 0

    def run(self) -> None:
        while not self.stop.wait(self.random.uniform(0.2, 1.8) * self.pause):
            launchers = [worker.process_id for worker in list(self.runtime._launcher.workers)]
            workers = [child for launcher in launchers for child in descendants(launcher)[:1]]
            episodes = [process for worker in workers for process in descendants(worker)]
            kind = self.random.choice([launchers, workers, episodes, episodes])
            if kind:
                try:
                    os.kill(self.random.choice(kind), signal.SIGKILL)
                    self.num_killed += 1
                except ProcessLookupError:
                    continue


@pytest.mark.parametrize("num_groups", [6, pytest.param(125, marks=pytest.mark.slow)])
def test_every_group_is_accounted_for_and_no_killed_rollout_earns_a_reward(num_groups):
    statuses, rewards = [], []
    with EnvironmentRuntime(counter_pool(CHECKS, COUNTER_TOOLS), num_workers=2) as runtime:
        killer = Killer(runtime, pause=0.5, seed=num_groups)
        killer.start()
        while len(rewards) < num_groups * GROUP or killer.num_killed < num_groups / 8:  # a fast machine outruns the killer
            episodes = runtime.start_many(["task"] * GROUP, list(range(GROUP)))
            for _ in range(10):
                runtime.call_many([(episode, "add", {"amount": 2}) for episode in episodes])
            reports = runtime.score_many(episodes)
            for episode, report in zip(episodes, reports, strict=True):
                statuses.append(report.status)
                rewards.append(report.reward)
                episode.close()
        killer.stop.set()
        killer.join()
        time.sleep(0.1)
        with runtime.start("task") as episode:
            assert episode.call("add", {"amount": 20}).ok
            assert episode.score().reward == 0.5
    assert len(rewards) >= num_groups * GROUP
    assert len(rewards) % GROUP == 0
    for status, reward in zip(statuses, rewards, strict=True):
        assert (reward is None) == status.is_missing
        assert reward in (None, 0.5), "a reward of a state that never was"
    assert statuses.count(Status.OK) >= 0.8 * len(statuses), "most rollouts are rebuilt and go on"
