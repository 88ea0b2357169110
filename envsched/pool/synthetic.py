"""Pools for scheduling alone: no code to run, but texts and keys with the structure that features look for."""

import numpy as np

from envsched.types import Environment, Task

_VERBS = ("find", "create", "update", "delete", "count", "assign", "cancel", "approve", "merge", "archive")
_NOUNS = ("order", "patient", "ticket", "invoice", "device", "course", "parcel", "account", "recipe", "flight")


def make_synthetic(num_environments: int, tasks_per_environment: int, seed: int) -> tuple[list[Environment], list[Task]]:
    """Environments and tasks whose prompts share words within an environment and verbs across environments."""
    generator = np.random.Generator(np.random.Philox(key=[seed, 0]))
    environments, tasks = [], []
    for e in range(num_environments):
        key = f"environment_{e:06d}"
        nouns = generator.choice(_NOUNS, size=3)
        environments.append(Environment(key=key, summary=f"A place that keeps {', '.join(nouns)}"))
        for i in range(tasks_per_environment):
            steps = generator.integers(1, 5)
            words = [
                f"{verb} the {noun} {generator.integers(1000)}"
                for verb, noun in zip(generator.choice(_VERBS, steps), generator.choice(nouns, steps), strict=True)
            ]
            tasks.append(Task(key=f"{key}-task_{i:04d}", environment=key, prompt="; ".join(words)))
    return environments, tasks
