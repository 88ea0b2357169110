"""Run directories as a trainer leaves them, without a policy: rewards follow from task and step."""

import json

import yaml

from envsched.audit import RunLayout, write_batch, write_input_audit
from envsched.baselines import build_scheduler
from envsched.config import Config, TrainConfig
from envsched.files import write_atomically
from envsched.history import append_records
from envsched.pool.opening import open_pool
from tests.scheduler.worlds import make_features, records_of, small_config

CHECK = "def check_func(final_state):\n    return bool(final_state)\n"


def write_pool(folder, num_environments=5, tasks_each=5):
    """A pool in EnvScaler's own format."""
    environments = {
        f"env_{e}": {
            "env_class_name": "Shelf",
            "env_class_code": "class Shelf:\n    pass\n",
            "environment_summary": f"Shelf {e}",
            "tools": [{"type": "function", "function": {"name": f"take_{e}", "parameters": {}}}],
        }
        for e in range(num_environments)
    }
    tasks = [
        {
            "task_id": f"env_{e}-task_{i}",
            "env_id": f"env_{e}",
            "env_class_name": "Shelf",
            "init_config": {"books": i},
            "task": f"Take book {i} from shelf {e} and put {e * i} back",
            "checklist_with_func": [{"check_item": "taken", "check_func": CHECK}],
        }
        for e in range(num_environments)
        for i in range(tasks_each)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "environments.json").write_text(json.dumps(environments))
    (folder / "tasks.json").write_text(json.dumps(tasks))
    return folder


def edit_json(path, change):
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def make_run(folder, pool_name, steps, scheduler="envsched", seed=3, selected=None, **changes):
    """A run of ``steps`` whole steps, then ``selected`` - ``steps`` batches without rollouts (a run that was killed)."""
    pool = open_pool(pool_name)
    config = Config(scheduler=small_config(**changes), train=TrainConfig(pool=str(pool_name), seed=seed, scheduler=scheduler))
    layout = RunLayout(folder)
    write_atomically(layout.config, yaml.safe_dump(config.model_dump(mode="json")))
    features = make_features(pool)
    layout.features.parent.mkdir(parents=True)
    features.save(layout.features)
    running = build_scheduler(scheduler, pool, config.scheduler, seed, features)
    for step in range(steps if selected is None else selected):
        batch = running.select(step)
        write_batch(folder, batch, running)
        if step < steps:
            records = records_of(batch, missing=0.1)
            append_records(layout.rollouts(step), records)
            running.observe(records)
            write_input_audit(folder, step + 1, running)
    return layout
