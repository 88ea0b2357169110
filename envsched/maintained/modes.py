"""What each graph mode is made of: a carrier for each relation over the same state."""

from collections.abc import Callable

import numpy as np

from envsched.config import SchedulerConfig
from envsched.features import Features
from envsched.maintained.carriers import Carriers
from envsched.maintained.cross_build import Limits
from envsched.maintained.lists import build_lists, build_stream

Builder = Callable[[Features, np.ndarray, SchedulerConfig], Carriers]


def limits_of(config: SchedulerConfig) -> Limits:
    return Limits(config.build_seconds, config.build_recall)


def _static(features: Features, offsets: np.ndarray, config: SchedulerConfig) -> Carriers:
    return build_lists(features, offsets, config.num_within, config.num_cross, limits_of(config)).carriers()


def _kernel(features: Features, offsets: np.ndarray, config: SchedulerConfig) -> Carriers:
    lists = build_lists(features, offsets, config.num_within, 0)
    return {"within": lists.carrier("within"), "cross": build_stream(features, offsets)}


BUILDERS: dict[str, Builder] = {"static": _static, "kernel": _kernel}
"""Modes that keep sums; the others keep lists of observed tasks (``envsched.graph``)."""
