"""The pool of the learning experiment: the bundled pool's environments and grammar, from solved to impossible as real pools are.

Three kinds of tasks. *Open* ones have two or three goals of any family: from these there is something to learn. *Solved* ones have one
goal that the warmed-up policy has the habit to reach. *Foreign* ones name things by serial numbers outside its vocabulary, which it
can't copy. An environment's share of habits says how many it has of each: where the policy does nearly all by itself, most tasks are
solved and few are open; where it does nearly nothing, most are open or foreign.
"""

import random
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from envsched.files import write_json
from envsched.pool import Pool
from scripts.bundled_pool.build import SINGLE, environment_item, task_item
from scripts.bundled_pool.domains import DOMAINS, Domain
from scripts.bundled_pool.tasks import EASY, HARD, TaskDraft, compose
from scripts.tiny_policy.traces import diligence

NUM_TASKS = 25  # in each environment
LEAST_OPEN, MOST_OPEN = 6, 16  # of these, at habits everywhere and nowhere
EASED = 0.8  # solved tasks for each one that the habits would give: it brings the median reward of a batch near .6
NUM_GOALS = (2, 3, 3)  # of open tasks, in turn
HABIT = 0.98  # a goal that the policy turns to more often than this is solved
BY_NAME = ("find_set", "remove", "amount", "link", "when", "transfer")  # families that must copy a name
ENVIRONMENTS = tuple(domain for domain in DOMAINS if domain.key != SINGLE)


def learning_drafts() -> dict[str, TaskDraft]:
    """Training tasks by key."""
    made = {}
    for domain in ENVIRONMENTS:
        num_open, num_solved, num_foreign = counts(domain)
        made.update(_numbered(domain, "open", num_open, NUM_GOALS, EASY + HARD))
        made.update(_numbered(domain, "solved", num_solved, (1,), _habits(domain)))
        made.update(_numbered(_abroad(domain), "foreign", num_foreign, (2,), BY_NAME))
    return made


def counts(domain: Domain) -> tuple[int, int, int]:
    """How many tasks are open, solved and foreign: from the policy's mean diligence over the domain's families."""
    share = fmean(diligence(domain.key, name) for name in sorted({family.name for family in domain.families}))
    num_open = LEAST_OPEN + round((MOST_OPEN - LEAST_OPEN) * (1 - share))
    num_solved = round((NUM_TASKS - num_open) * share * EASED) if _habits(domain) else 0
    return num_open, num_solved, NUM_TASKS - num_open - num_solved


def _numbered(domain: Domain, kind: str, count: int, num_goals: tuple[int, ...], families: tuple[str, ...]) -> dict[str, TaskDraft]:
    made = {}
    for i in range(count):
        key = f"{domain.key}-{kind}_{i:02d}"
        goals = num_goals[i % len(num_goals)]
        made[key] = compose(domain, random.Random(f"learning pool 4: {key}"), goals, families, min_checks=min(goals, 2))
    return made


def _habits(domain: Domain) -> tuple[str, ...]:
    """Easy families that the policy turns to nearly always."""
    return tuple(sorted({f.name for f in domain.families if f.name in EASY and diligence(domain.key, f.name) > HABIT}))


def _abroad(domain: Domain) -> Domain:
    """The domain with serial numbers for names."""
    draw = random.Random(f"learning pool 4: serials of {domain.key}")
    names = tuple("".join(draw.choices("0123456789abcdef", k=12)) for _ in range(96))
    second = domain.second and replace(domain.second, names=names[48:])
    return replace(domain, main=replace(domain.main, names=names[:48]), second=second)


def kind_of(key: str) -> str:
    """open, solved or foreign."""
    return key.rpartition("-")[2].rpartition("_")[0]


def write_learning_pool(folder: Path) -> Path:
    """Write the pool in EnvScaler's form, the same bytes every time."""
    write_json(folder / "environments.json", [environment_item(domain) for domain in ENVIRONMENTS])
    write_json(folder / "tasks.json", [task_item(key, draft) for key, draft in learning_drafts().items()])
    return folder


def learning_pool() -> Pool:
    """The pool as it is read from what ``write_learning_pool`` writes."""
    with tempfile.TemporaryDirectory() as folder:
        return Pool.from_envscaler(write_learning_pool(Path(folder)))
