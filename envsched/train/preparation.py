"""What a run needs before any policy: geometry, scheduler, the batch of step 0. No model, no GPU, no TRL."""

import os
from pathlib import Path

from envsched.audit import write_batch
from envsched.baselines import build_scheduler, scheduler_entry
from envsched.config import Config
from envsched.features import Features, build_features
from envsched.files import write_atomically
from envsched.filters import Findings
from envsched.maintained import Leader
from envsched.pool import Pool
from envsched.pool.opening import open_pool
from envsched.scheduler import EnvScheduler
from envsched.train.combinations import refuse_device
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
        MissingExtraError: the graph is to lie on a GPU, and there is none.
    """
    geometry_of(config, int(os.environ.get("WORLD_SIZE", "1")))
    refuse_device(config)
    pool, run = open_pool(config.train.pool), RunDirectory(run_dir)
    run.begin(config, resume=False)
    scheduler = scheduler_of(config, pool, run)
    batch = scheduler.select(0)
    write_batch(run.folder, batch, scheduler)
    return batch


def scheduler_of(config: Config, pool: Pool, run: RunDirectory, leader: Leader | None = None) -> Scheduler:
    """The scheduler that the config names, on features computed once per run and pool, and on the run's own copy of the findings.

    Args:
        leader: of the ranks that share its graph.
    """
    if config.train.graph_device != "auto":  # else what the environment says holds
        os.environ["ENVSCHED_DEVICE"] = config.train.graph_device
    features, findings = features_of(config, pool, run), findings_of(config, pool, run)
    if leader:
        return EnvScheduler(pool, config.scheduler, config.train.seed, features, config.train.scheduler, findings, leader)
    return build_scheduler(config.train.scheduler, pool, config.scheduler, config.train.seed, features, findings)


def findings_of(config: Config, pool: Pool, run: RunDirectory) -> Findings | None:
    """What ``pool check`` found, from the run's own copy, which is made where it is absent.

    Raises:
        StateError: no such report, or one of another pool.
    """
    if not config.train.findings:
        return None
    kept = run.layout.findings_since(run.pool_since)
    if not kept.exists():
        Findings.read(config.train.findings, pool)
        write_atomically(kept, Path(config.train.findings).read_bytes())
    return Findings.read(kept, pool)


def features_of(config: Config, pool: Pool, run: RunDirectory) -> Features | None:
    """Those of the run, computed and kept where they are absent; none for a scheduler that uses none."""
    if not scheduler_entry(config.train.scheduler).uses_features:
        return None
    path = run.layout.features_since(run.pool_since)
    if path.exists():
        return Features.load(path, pool)
    features = build_features(pool, config.features)
    path.parent.mkdir(parents=True, exist_ok=True)
    features.save(path)
    return features
