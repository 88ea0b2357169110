"""The scheduler's graph on all training ranks: rank 0 leads, the others follow in a thread of their own."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from accelerate.state import PartialState

from envsched.config import Config
from envsched.features import Features
from envsched.maintained import Leader, Part, follow
from envsched.pool import Pool
from envsched.train.collectives import from_rank_0
from envsched.train.preparation import features_of
from envsched.train.run_directory import RunDirectory

_SECONDS = 86_400.0  # between two questions lie rollouts and an update; a rank that dies is the launcher's to notice


@contextmanager
def shared_graph(config: Config, pool: Pool, run: RunDirectory) -> Iterator[Leader | None]:
    """The leader on rank 0 while the others follow; none elsewhere, and where there is nobody to share with.

    Raises:
        StateError, ConfigError: as ``shard_pool``.
    """
    state, settings, mode = PartialState(), config.scheduler, config.scheduler.graph_mode
    if not config.train.shared_graph or state.num_processes == 1:
        yield None
        return
    from_rank_0(lambda: features_of(config, pool, run) is not None)  # on disk before the others look for them
    if state.is_main_process:
        leader = Leader(_features(config, pool, run), pool.offsets, settings, mode, _SECONDS)
        yield leader
        leader.close()
        return
    part = Part(_features(config, pool, run), pool.offsets, settings, mode, _SECONDS)
    following = threading.Thread(target=follow, args=(part,), name="graph", daemon=True)
    following.start()
    yield None
    following.join()


def _features(config: Config, pool: Pool, run: RunDirectory) -> Features:
    """All of them, for as long as a rank takes its part out."""
    features = features_of(config, pool, run)
    assert features is not None, "scheduler envsched uses features"
    return features
