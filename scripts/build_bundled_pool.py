"""Write the bundled pool: environments, training tasks, held-out tasks, reference solutions and their digests.

Usage: python -m scripts.build_bundled_pool
"""

import argparse
from pathlib import Path
from typing import Any

from envsched.files import digest, write_json
from envsched.pool import Pool
from scripts.bundled_pool.build import SINGLE, drafts, environment_item, solution_item, task_item
from scripts.bundled_pool.domains import DOMAINS

FOLDER = Path("envsched/pool/bundled")


def contents() -> dict[str, Any]:
    """Every file but ``split.json``, by path below the folder of the bundled pool."""
    train, held_out = drafts("train"), drafts("held_out")
    environments = [environment_item(domain) for domain in DOMAINS]
    return {
        "environments.json": environments,
        "tasks.json": [task_item(key, draft) for key, draft in train.items()],
        "solutions.json": {key: solution_item(draft) for key, draft in (train | held_out).items()},
        "held_out/environments.json": [item for item in environments if item["env_id"] != SINGLE],
        "held_out/tasks.json": [task_item(key, draft) for key, draft in held_out.items()],
    }


def main() -> None:
    """Write the files, then ``split.json`` with what identifies them."""
    made = contents()
    for name, content in made.items():
        write_json(FOLDER / name, content)
    pools = {"train": Pool.from_envscaler(FOLDER), "held_out": Pool.from_envscaler(FOLDER / "held_out")}
    split = {
        "tasks": {name: [task.key for task in pool.tasks] for name, pool in pools.items()},
        "fingerprints": {name: pool.fingerprint for name, pool in pools.items()},
        "files": {name: digest((FOLDER / name).read_bytes()) for name in made},
    }
    write_json(FOLDER / "split.json", split)
    print(", ".join(f"{name}: {len(pool)} tasks, fingerprint {pool.fingerprint[:12]}" for name, pool in pools.items()))


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
