"""The pool of the learning experiment: the bundled pool's environments and grammar, from solved to impossible as real pools are.

Three kinds of tasks. *Open* ones have two or three goals of any family, and the warmed-up policy earns different rewards for them: from
these there is something to learn. *Solved* ones have one goal that it has the habit to reach. *Foreign* ones name things by serial
numbers outside its vocabulary, which it can't copy.

`python -m benchmarks.learning_pool` lets the policy try the candidates for open tasks and writes those that qualify into
learning_pool.json; the pool is made from that file alone.
"""

import json
import random
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import comb
from pathlib import Path

from envsched.files import write_json
from envsched.pool import Pool
from scripts.bundled_pool.build import SINGLE, environment_item, task_item
from scripts.bundled_pool.domains import DOMAINS, Domain
from scripts.bundled_pool.tasks import EASY, HARD, TaskDraft, compose
from scripts.tiny_policy.traces import diligence

CHOSEN = Path(__file__).with_suffix(".json")
MODEL = Path(__file__).parents[1] / "models/tiny-policy"
NUM_TASKS = 30  # in each environment
NUM_OPEN, NUM_SOLVED = 12, 10  # of these at most; the rest is foreign
NUM_CANDIDATES, NUM_ROLLOUTS, GROUP = 40, 16, 8
WITHOUT_SIGNAL = 0.3  # largest share of an open task's groups in which all rewards are equal
NUM_GOALS = (2, 3, 3)  # of open tasks, in turn
HABIT = 0.98  # a goal that the policy turns to more often than this is solved
BY_NAME = ("find_set", "remove", "amount", "link", "when", "transfer")  # families that must copy a name
ENVIRONMENTS = tuple(domain for domain in DOMAINS if domain.key != SINGLE)


def learning_drafts() -> dict[str, TaskDraft]:
    """Training tasks by key."""
    chosen = json.loads(CHOSEN.read_text())
    made = {}
    for domain in ENVIRONMENTS:
        num_open = len(chosen[domain.key])
        num_solved = NUM_SOLVED if _habits(domain) else 0
        made.update({f"{domain.key}-open_{i:02d}": _open(domain, candidate) for i, candidate in enumerate(chosen[domain.key])})
        made.update(_numbered(domain, "solved", num_solved, 1, _habits(domain)))
        made.update(_numbered(_abroad(domain), "foreign", NUM_TASKS - num_open - num_solved, 2, BY_NAME))
    return made


def _open(domain: Domain, candidate: int) -> TaskDraft:
    return _draft(domain, f"{domain.key}-open_{candidate:02d}", NUM_GOALS[candidate % len(NUM_GOALS)], EASY + HARD)


def _numbered(domain: Domain, kind: str, count: int, num_goals: int, families: tuple[str, ...]) -> dict[str, TaskDraft]:
    keys = [f"{domain.key}-{kind}_{i:02d}" for i in range(count)]
    return {key: _draft(domain, key, num_goals, families) for key in keys}


def _draft(domain: Domain, key: str, num_goals: int, families: tuple[str, ...]) -> TaskDraft:
    return compose(domain, random.Random(f"learning pool 5: {key}"), num_goals, families, min_checks=min(num_goals, 2))


def _habits(domain: Domain) -> tuple[str, ...]:
    """Easy families that the policy turns to nearly always."""
    return tuple(sorted({f.name for f in domain.families if f.name in EASY and diligence(domain.key, f.name) > HABIT}))


def _abroad(domain: Domain) -> Domain:
    """The domain with serial numbers for names."""
    draw = random.Random(f"learning pool 5: serials of {domain.key}")
    names = tuple("".join(draw.choices("0123456789abcdef", k=12)) for _ in range(96))
    second = domain.second and replace(domain.second, names=names[48:])
    return replace(domain, main=replace(domain.main, names=names[:48]), second=second)


def kind_of(key: str) -> str:
    """open, solved or foreign."""
    return key.rpartition("-")[2].rpartition("_")[0]


def write_learning_pool(folder: Path) -> Path:
    """Write the pool in EnvScaler's form, the same bytes every time."""
    return _write(folder, learning_drafts())


def _write(folder: Path, drafts: Mapping[str, TaskDraft]) -> Path:
    write_json(folder / "environments.json", [environment_item(domain) for domain in ENVIRONMENTS])
    write_json(folder / "tasks.json", [task_item(key, draft) for key, draft in drafts.items()])
    return folder


def learning_pool() -> Pool:
    """The pool as it is read from what ``write_learning_pool`` writes."""
    with tempfile.TemporaryDirectory() as folder:
        return Pool.from_envscaler(write_learning_pool(Path(folder)))


def without_signal(rewards: Sequence[float]) -> float:
    """Share of the groups of GROUP that can be drawn from these rollouts in which all rewards are equal."""
    return sum(comb(count, GROUP) for count in Counter(rewards).values()) / comb(len(rewards), GROUP)


def rewards_on(pool: Pool, policy: Path, group_size: int, seed: int) -> dict[str, list[float]]:
    """Rewards of a saved policy by task, ``group_size`` each, on one thread."""
    import torch
    from transformers import AutoTokenizer, Qwen3ForCausalLM

    from scripts.tiny_policy.rollouts import rewards_of

    torch.set_num_threads(1)
    model = Qwen3ForCausalLM.from_pretrained(policy, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(MODEL, padding_side="left")
    rewards = rewards_of(model, tokenizer, pool, list(pool.tasks), group_size, seed=seed, batch_size=384)
    return dict(zip((task.key for task in pool.tasks), rewards, strict=True))


def choose_open_tasks() -> dict[str, list[int]]:
    """The first candidates of each environment that qualify, by rollouts of the warmed-up policy."""
    candidates = {f"{domain.key}-open_{i:02d}": (domain, i) for domain in ENVIRONMENTS for i in range(NUM_CANDIDATES)}
    with tempfile.TemporaryDirectory() as folder:
        pool = Pool.from_envscaler(_write(Path(folder), {key: _open(*candidate) for key, candidate in candidates.items()}))
    rewards = rewards_on(pool, MODEL, NUM_ROLLOUTS, seed=7)
    chosen: dict[str, list[int]] = {domain.key: [] for domain in ENVIRONMENTS}
    for key, (domain, i) in candidates.items():
        if without_signal(rewards[key]) <= WITHOUT_SIGNAL and len(chosen[domain.key]) < NUM_OPEN:
            chosen[domain.key].append(i)
    return chosen


if __name__ == "__main__":
    write_json(CHOSEN, choose_open_tasks())
