"""The pool of the learning experiment: the bundled pool's grammar with as much to waste as real pools have.

Per environment: *bundled* tasks (every second one of the bundled pool's), from which there is something to learn, and three kinds from
which there is little, whatever is learned. *Routine* tasks have only goals that the warmed-up policy has the habit to reach. *Foreign*
ones name things by serial numbers outside its vocabulary, which it can't copy. *Mixed* ones have one goal of each sort: their reward
stays at a fraction.
"""

import itertools
import random
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from envsched.files import write_json
from envsched.pool import Pool
from scripts.bundled_pool.build import SINGLE, drafts, environment_item, task_item
from scripts.bundled_pool.domains import DOMAINS, Domain
from scripts.bundled_pool.tasks import EASY, TaskDraft, compose
from scripts.tiny_policy.traces import diligence

NUM_ROUTINE, NUM_FOREIGN, NUM_MIXED = 4, 3, 3  # in each environment where there can be any
HABIT = 0.98  # a goal that the policy turns to more often than this is routine
BY_NAME = ("find_set", "remove", "amount", "link", "when", "transfer")  # families that must copy a name


def learning_drafts() -> dict[str, TaskDraft]:
    """Training tasks by key."""
    made = dict(itertools.islice(drafts("train").items(), 0, None, 2))
    for domain in DOMAINS:
        if domain.key != SINGLE:
            made.update(_numbered(domain, "routine", NUM_ROUTINE))
            made.update(_numbered(domain, "foreign", NUM_FOREIGN))
            made.update(_numbered(domain, "mixed", NUM_MIXED))
    return made


def _numbered(domain: Domain, kind: str, count: int) -> dict[str, TaskDraft]:
    """The first drafts of a kind; none where the policy has no habit that the kind needs."""
    routine = tuple(sorted({f.name for f in domain.families if f.name in EASY and diligence(domain.key, f.name) > HABIT}))
    if not (kind == "foreign" or (routine if kind == "routine" else "set_by_id" in routine)):
        return {}
    made = {}
    for i in range(count):
        key = f"{domain.key}-{kind}_{i:02d}"
        made[key] = next(draft for draft in _drawn(domain, kind, routine, f"learning pool 2: {key}"))
    return made


def _drawn(domain: Domain, kind: str, routine: tuple[str, ...], seed: str) -> Iterator[TaskDraft]:
    """Drafts of a kind; ``set_by_id`` asks for no name, so it stays in reach in a world of serial numbers."""
    generator = random.Random(seed)
    while True:
        if kind == "routine":
            yield compose(domain, generator, 2, routine)
        elif kind == "foreign":
            yield compose(_abroad(domain), generator, 2, BY_NAME)
        else:
            draft = compose(_abroad(domain), generator, 2, ("set_by_id", *BY_NAME))
            if any(goal.family == "set_by_id" for goal in draft.goals) and len({goal.family for goal in draft.goals}) == 2:
                yield draft


def _abroad(domain: Domain) -> Domain:
    """The domain with serial numbers for names."""
    draw = random.Random(f"learning pool 2: serials of {domain.key}")
    names = tuple("".join(draw.choices("0123456789abcdef", k=12)) for _ in range(96))
    second = domain.second and replace(domain.second, names=names[48:])
    return replace(domain, main=replace(domain.main, names=names[:48]), second=second)


def kind_of(key: str) -> str:
    """bundled, routine, foreign or mixed."""
    kind = key.rpartition("-")[2].rpartition("_")[0]
    return "bundled" if kind == "train" else kind


def write_learning_pool(folder: Path) -> Path:
    """Write the pool in EnvScaler's form, the same bytes every time."""
    write_json(folder / "environments.json", [environment_item(domain) for domain in DOMAINS])
    write_json(folder / "tasks.json", [task_item(key, draft) for key, draft in learning_drafts().items()])
    return folder


def learning_pool() -> Pool:
    """The pool as it is read from what ``write_learning_pool`` writes."""
    with tempfile.TemporaryDirectory() as folder:
        return Pool.from_envscaler(write_learning_pool(Path(folder)))
