"""What all replays share: where a recording comes from, how large a batch is, how long a policy stays.

Letters: N tasks, B batch, G rollouts.
"""

import math
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from envsched.baselines.ranked import without_quotas
from envsched.config import FeatureConfig, SchedulerConfig
from envsched.features import Features, build_features
from envsched.files import canonical_json, digest
from envsched.pool.opening import open_pool
from envsched.simulate.court import package_digest
from envsched.simulate.recorded import Recording, read_recordings

FULL_BATCH = 64  # the size that the default quotas belong to
LARGEST_BATCH = 16
MIN_CELL = 4  # rollouts of a cell from which halves can be judged and shares given


@dataclass(frozen=True)
class Source:
    """One recording of a file, by paths, so that it travels to worker processes."""

    file: str
    prompts: str | None = None
    pool: str | None = None
    features: FeatureConfig = field(default_factory=FeatureConfig)
    recording: int = 0

    def recordings(self) -> tuple[tuple[Recording, Features], ...]:
        """All recordings of the file with the features of their pools, read once a process."""
        return _read(self.file, self.prompts, self.pool, self.features)

    def open(self) -> tuple[Recording, Features]:
        return self.recordings()[self.recording]


@lru_cache(maxsize=2)
def _read(file: str, prompts: str | None, pool: str | None, config: FeatureConfig) -> tuple[tuple[Recording, Features], ...]:
    recordings = read_recordings(Path(file), prompts and Path(prompts), open_pool(pool) if pool else None)
    return tuple((recording, recorded_features(recording, config, has_topologies=pool is not None)) for recording in recordings)


def recorded_features(recording: Recording, config: FeatureConfig, has_topologies: bool) -> Features:
    """Features of a recording's pool. Without topologies no task resembles one of another environment: the extractor would
    give all of them the same empty record, and the first twelve observed tasks would be everybody's neighbours."""
    features = build_features(recording.pool, config)
    return features if has_topologies else replace(features, cross=np.zeros((len(recording.pool), 1), dtype=np.float32))


def job_key(job: Any) -> str:
    """Same key, same numbers: it covers a job, its settings and every line of the package."""
    source, config = job.source, job.config
    settings = [source.features.model_dump(mode="json"), config.model_dump(mode="json")]
    fields = asdict(replace(job, config=None, source=replace(source, features=None)))
    return digest(canonical_json([type(job).__name__, fields, settings]), package_digest())


def scaled_config(config: SchedulerConfig, num_tasks: int, group_size: int, quotas: bool) -> SchedulerConfig:
    """B = min(16, N // 5); C1 and C3 times B / 64, rounded up, or no quotas at all."""
    size = min(LARGEST_BATCH, max(1, num_tasks // 5))
    caps = ("max_per_environment", "max_per_environment_window")
    scaled = {name: math.ceil(getattr(config, name) * size / FULL_BATCH) for name in caps}
    sized = config.model_copy(update={"batch_size": size, "group_size": group_size, **scaled})
    return sized if quotas else without_quotas(sized)


def judged_whole(recording: Recording, asked: bool) -> bool:
    """Cells of fewer than 4 rollouts have no half to judge by: they are shown and judged whole, whatever was asked."""
    return asked or recording.cell_size < MIN_CELL


def default_steps(num_tasks: int, batch_size: int) -> int:
    """Steps per policy: half of the tasks could be picked once, but at least 3 and at most 40."""
    return min(40, max(3, math.ceil(num_tasks / (2 * batch_size))))
