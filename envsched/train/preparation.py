"""What a run needs before any policy: geometry, scheduler, the batch of step 0. No model, no GPU, no TRL."""

import os
from pathlib import Path

from envsched.audit import write_batch
from envsched.baselines import build_scheduler, scheduler_entry
from envsched.config import Config
from envsched.features import Features, build_features
from envsched.pool import Pool
from envsched.pool.opening import open_pool
from envsched.train.geometry import Geometry, divide
from envsched.train.run_directory import RunDirectory
from envsched.types import Batch, Scheduler


def geometry_of(config: Config, world_size: int) -> Geometry:
    """How the config's batch divides over ``world_size`` processes."""
    return divide(config.scheduler.batch_size, config.scheduler.group_size, world_size, config.train.max_device_batch)


def prepare(config: Config, run_dir: Path | str) -> Batch:
    """Resolve the config and write the batch of step 0.

    Raises:
        ConfigError: the directory is used, or the batch does not divide over the processes.
    """
    geometry_of(config, int(os.environ.get("WORLD_SIZE", "1")))
    pool, run = open_pool(config.train.pool), RunDirectory(run_dir)
    run.begin(config, resume=False)
    scheduler = scheduler_of(config, pool, run)
    batch = scheduler.select(0)
    write_batch(run.folder, batch, scheduler)
    return batch


def scheduler_of(config: Config, pool: Pool, run: RunDirectory) -> Scheduler:
    """The scheduler that the config names, on features computed once per run."""
    return build_scheduler(config.train.scheduler, pool, config.scheduler, config.train.seed, _features(config, pool, run))


def _features(config: Config, pool: Pool, run: RunDirectory) -> Features | None:
    if not scheduler_entry(config.train.scheduler).uses_features:
        return None
    if run.layout.features.exists():
        return Features.load(run.layout.features, pool)
    features = build_features(pool, config.features)
    run.layout.features.parent.mkdir(parents=True, exist_ok=True)
    features.save(run.layout.features)
    return features
