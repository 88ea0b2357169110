"""Who may stand in the court: schedulers by name, with settings of their own where a study asks for them.

A line-up name is a scheduler's name, or ``name:setting=value+setting=value`` for one with other settings.
"""

import numpy as np
import yaml

from envsched.baselines import build_scheduler, scheduler_entry
from envsched.baselines.oracle import Oracle
from envsched.baselines.ranked import RankedScheduler, without_quotas
from envsched.config import SchedulerConfig, load_config
from envsched.errors import ConfigError
from envsched.features import Features
from envsched.pool import Pool
from envsched.types import Scheduler


def split_name(line_up_name: str) -> tuple[str, dict[str, object]]:
    """Scheduler and settings of a line-up name.

    Raises:
        ConfigError: a setting without a value.
    """
    name, _, settings = line_up_name.partition(":")
    out: dict[str, object] = {}
    for part in filter(None, settings.split("+")):
        key, separator, value = part.partition("=")
        if not separator:
            raise ConfigError(f"scheduler {line_up_name!r}: expected name:setting=value+setting=value, came {part!r}")
        out[key] = yaml.safe_load(value)
    return name, out


def parse_line_up(text: str) -> list[str]:
    """Line-up names of a comma-separated text, each known with all its settings.

    Raises:
        ConfigError: nothing in it, an unknown scheduler (with the list) or an unknown setting.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ConfigError("no scheduler named; give names, comma-separated")
    for line_up_name in names:
        name, settings = split_name(line_up_name)
        scheduler_entry(name)
        load_config(None, settings)
    return names


def prepare(
    line_up_name: str,
    pool: Pool,
    config: SchedulerConfig,
    seed: int,
    features: Features,
    difficulty: np.ndarray | None = None,
    quotas_for_all: bool = False,
) -> Scheduler:
    """Build a scheduler for one run.

    Args:
        difficulty: what AdaRFT is given as the reference policy's failures, [N].
        quotas_for_all: rivals keep the quotas too; otherwise they choose as published, without any.
    """
    name, settings = split_name(line_up_name)
    config = SchedulerConfig(**(config.model_dump() | settings))
    scheduler = build_scheduler(name, pool, config, seed, features)
    if isinstance(scheduler, RankedScheduler) and not isinstance(scheduler, Oracle) and not quotas_for_all:
        scheduler = build_scheduler(name, pool, without_quotas(config), seed, features)
    if name == "adarft" and difficulty is not None:
        scheduler.difficulty = difficulty
    return scheduler
