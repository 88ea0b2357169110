"""What each graph mode is made of: a carrier for each relation over the same state.

Letters: M environments.
"""

from collections.abc import Callable

import numpy as np

from envsched import ops
from envsched.config import SchedulerConfig
from envsched.errors import ConfigError
from envsched.features import Features
from envsched.files import digest
from envsched.maintained.carriers import Both, Carrier, Carriers
from envsched.maintained.classes import build_class_carrier
from envsched.maintained.cross_build import Limits
from envsched.maintained.lists import StaticLists, build_lists, build_stream
from envsched.maintained.live import LiveCross, LiveWithin
from kernels.live import MAX_LIVE

Builder = Callable[[Features, np.ndarray, SchedulerConfig], Carriers]


def limits_of(config: SchedulerConfig) -> Limits:
    """How long an exact search for cross lists may take."""
    return Limits(config.build_seconds, config.build_recall)


def static_carriers(features: Features, offsets: np.ndarray, config: SchedulerConfig, lists: StaticLists | None = None) -> Carriers:
    """Along ``lists``, which are built here where they are absent."""
    config = config.settled(sums=True)
    lists = lists or build_lists(features, offsets, config.num_within, config.num_cross, limits_of(config))
    carriers = lists.carriers()
    return {**carriers, "cross": _with_prior(carriers["cross"], features, offsets, config)}


def _kernel(features: Features, offsets: np.ndarray, config: SchedulerConfig) -> Carriers:
    ops.require_native("graph_mode kernel")
    lists = build_lists(features, offsets, config.num_within, 0)
    return {"within": lists.carrier("within"), "cross": _with_prior(build_stream(features, offsets), features, offsets, config)}


def _class(features: Features, offsets: np.ndarray, config: SchedulerConfig) -> Carriers:
    config = config.settled(sums=True)
    lists = build_lists(features, offsets, config.num_within, 0)
    return {"within": lists.carrier("within"), "cross": build_class_carrier(features, offsets, config.num_cross, limits_of(config))}


def _live(features: Features, offsets: np.ndarray, config: SchedulerConfig) -> Carriers:
    ops.require_native("graph_mode live")
    config = config.settled(sums=True)
    for name, slots in (("num_within", config.num_within), ("num_cross", config.num_cross)):
        if slots > MAX_LIVE:
            raise ConfigError(
                f"graph_mode live keeps lists of at most {MAX_LIVE} neighbours; {name} is {slots}: "
                f"set it to {MAX_LIVE} or less, or graph_mode to static"
            )
    layout = np.ascontiguousarray(offsets, dtype=np.int64).tobytes()
    name = digest("envsched live 1", features.digest, layout, f"{config.num_within},{config.num_cross}")
    carriers: Carriers = {}
    if config.num_within:
        carriers["within"] = LiveWithin(features, config.num_within, name)
    if config.num_cross:
        stream = build_stream(features, offsets)
        carriers["cross"] = LiveCross(stream.codes, stream.floor, config.num_cross, name)
    return carriers


def _with_prior(carrier: Carrier, features: Features, offsets: np.ndarray, config: SchedulerConfig) -> Carrier:
    """The (environment, topology class) prior: below the environment's mean, what the task's own class shows elsewhere."""
    return Both(carrier, build_class_carrier(features, offsets, 0, limits_of(config))) if config.class_prior else carrier


BUILDERS: dict[str, Builder] = {"live": _live, "static": static_carriers, "kernel": _kernel, "class": _class}
"""Modes that keep sums; the others keep lists of observed tasks (``envsched.graph``)."""
