"""Random small worlds, for the reference and for envsched alike: layout, similarities, visits, settings."""

import random
from dataclasses import asdict, dataclass

import numpy as np
from hypothesis import strategies as st

from envsched.config import SchedulerConfig
from envsched.history import History
from envsched.pool import Pool
from envsched.predict import Forecast, build_predictor
from envsched.types import Environment, RolloutRecord, Status, Task
from tests.oracle.reference import Settings, Visit
from tests.predict.graphs import BruteForceGraph

STATUSES = [*["ok"] * 8, "truncated", "timeout", "infra_error", "verifier_error", "aborted"]


@dataclass
class World:
    sizes: list[int]  # tasks of each environment
    similarity: list[list[float]]
    visits: list[Visit]
    settings: Settings
    last: int  # a step after every visit

    @property
    def environment_of(self) -> list[int]:
        return [e for e, size in enumerate(self.sizes) for _ in range(size)]

    def pool(self) -> Pool:
        environments = [Environment(key=f"e{e:03}") for e in range(len(self.sizes))]
        tasks = [Task(key=f"e{e:03}-t{i:03}", environment=f"e{e:03}") for e, size in enumerate(self.sizes) for i in range(size)]
        return Pool(environments, tasks)

    def config(self) -> SchedulerConfig:
        return SchedulerConfig(**asdict(self.settings))

    def records(self, pool: Pool) -> list[RolloutRecord]:
        return [
            RolloutRecord(pool.tasks[v.task].key, v.step, tuple(v.rewards), tuple(Status(status) for status in v.status), v.policy_version)
            for v in self.visits
        ]

    def forecast(self, history: History) -> Forecast:
        config = self.config()
        predictor = build_predictor(config, history.pool.environment_of, len(self.sizes))
        graph = BruteForceGraph(np.array(self.similarity), history.pool.environment_of, config.num_within, config.num_cross)
        return Forecast(predictor, history, graph, config)


@st.composite
def worlds(draw, max_steps: int = 9) -> World:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    gaps = draw(st.lists(st.sampled_from([1, 1, 1, 1, 2, 5, 700]), min_size=0, max_size=max_steps))
    source = random.Random(draw(st.integers(0, 2**32)))
    settings = draw(settings_of())
    N = sum(sizes)
    step, visits = draw(st.integers(0, 3)) - 1, []
    for gap in gaps:
        step += gap
        for task in source.sample(range(N), source.randint(1, N)):
            visits.append(random_visit(source, task, step, settings))
    source.shuffle(visits)
    return World(sizes, random_similarity(source, N), visits, settings, max(step, 0) + 1 + draw(st.sampled_from([0, 0, 3, 40])))


@st.composite
def settings_of(draw) -> Settings:
    start = draw(st.sampled_from([2, 6, 30]))
    low = draw(st.sampled_from([0.0, 0.0, -1.0]))
    return Settings(
        estimator=draw(st.sampled_from(["envsched", "paper"])),
        relations=draw(st.sampled_from([("within", "cross"), ("within", "cross"), ("within",), ("cross",), ()])),
        group_size=draw(st.sampled_from([8, 5, 2])),
        half_life=draw(st.sampled_from([8.0, 24.0, 0.7])),
        own_half_life=draw(st.sampled_from([40.0, 8.0, 0.7])),
        visit_half_life=draw(st.sampled_from([3.0, 0.5, 1e6])),
        mastery_weight=draw(st.sampled_from([0.8, 0.0, 1.0])),
        short_half_life=draw(st.sampled_from([2.0, 0.7])),
        decline_weight=draw(st.sampled_from([0.5, 0.0, 1.0])),
        graph_shrinkage=draw(st.sampled_from([2.0, 0.25])),
        own_shrinkage=draw(st.sampled_from([2.0, 5.0])),
        prior=draw(st.sampled_from(["pooled", "residual"])),
        residual_shrinkage=draw(st.sampled_from([5.0, 0.5])),
        optimism=draw(st.sampled_from([0.5, 0.0])),
        optimism_spread=draw(st.sampled_from([0.4, 0.0, 1.5])),
        num_within=draw(st.integers(0, 3)),
        num_cross=draw(st.integers(0, 4)),
        prior_variance=draw(st.sampled_from([None, 0.0, 0.05])),
        calibrate=draw(st.sampled_from([True, True, True, False])),
        calibration_start=start,
        calibration_full=start + draw(st.sampled_from([1, 10])),
        reward_low=low,
        reward_high=draw(st.sampled_from([1.0, 1.0, 3.0])),
        ddof=draw(st.sampled_from([1, 1, 0])),
    )


def random_visit(source: random.Random, task: int, step: int, settings: Settings) -> Visit:
    G = source.choice([settings.group_size, settings.group_size, 1, 2])
    status = [source.choice(STATUSES) if source.random() < 0.6 else "ok" for _ in range(G)]
    if source.random() < 0.1:
        status = ["infra_error"] * G
    share = source.random()
    palette = [0, 1, 0.25, 1 / 3, source.random()] if share < 0.8 else [source.random()]
    rewards = [settings.reward_low + settings.reward_range * source.choice(palette) for _ in range(G)]
    missing = {"infra_error", "verifier_error", "aborted"}
    rewards = [None if s in missing and source.random() < 0.7 else r for r, s in zip(rewards, status, strict=True)]
    return Visit(task, step, rewards, status, max(0, step - source.choice([0, 0, 0, 1, 3])))


def random_similarity(source: random.Random, N: int) -> list[list[float]]:
    """Symmetric, with ties, zeros and tasks that nothing resembles."""
    lonely = {i for i in range(N) if source.random() < 0.15}
    similarity = [[1.0] * N for _ in range(N)]
    for i in range(N):
        for j in range(i):
            s = 0.0 if i in lonely or j in lonely else source.choice([0.0, 0.5, 0.5, 1.0, source.random()])
            similarity[i][j] = similarity[j][i] = s
    return similarity
