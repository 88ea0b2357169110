"""Every scheduler by name, behind the same five verbs.

A rival adds its module here and one line to ``SCHEDULERS``. One that derives from ``RecordedScheduler`` has only to say how
it chooses, and its runs can be audited.
"""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from envsched.config import SchedulerConfig
from envsched.errors import ConfigError
from envsched.features import Features
from envsched.filters import Findings
from envsched.pool import Pool
from envsched.types import Scheduler


@dataclass(frozen=True, slots=True)
class Entry:
    """How a scheduler is made, and what it looks at: features and findings (which are then made, or loaded, once and handed in), and
    whether the content of tasks itself decides."""

    build: Callable[..., Scheduler]
    uses_features: bool  # ours all do, and these mask what ``pool check`` found too
    summary: str
    reads_content: bool = False


def _ours(**changes: Any) -> Callable[..., Scheduler]:
    """Our scheduler with a few settings changed."""

    def build(
        name: str, pool: Pool, config: SchedulerConfig, seed: int, features: Features | None, findings: Findings | None = None
    ) -> Scheduler:
        from envsched.scheduler.env_scheduler import EnvScheduler

        return EnvScheduler(pool, config.model_copy(update=changes), seed, features, name, findings)

    return build


def _random(name: str, pool: Pool, config: SchedulerConfig, seed: int, _features: Features | None) -> Scheduler:
    from envsched.baselines.random import RandomScheduler

    return RandomScheduler(pool, config, seed, name)


def _random_epoch(name: str, pool: Pool, config: SchedulerConfig, seed: int, _features: Features | None) -> Scheduler:
    from envsched.baselines.random import RandomEpochScheduler

    return RandomEpochScheduler(pool, config, seed, name)


def _rival(module: str, kind: str) -> Callable[[str, Pool, SchedulerConfig, int, Features | None], Scheduler]:
    """A scheduler of ``envsched.baselines.module``."""

    def build(name: str, pool: Pool, config: SchedulerConfig, seed: int, _features: Features | None) -> Scheduler:
        return getattr(import_module(f"envsched.baselines.{module}"), kind)(pool, config, seed, name)

    return build


SCHEDULERS: dict[str, Entry] = {
    "envsched": Entry(_ours(), True, "predicted variance as configured"),
    "paper": Entry(_ours(estimator="paper"), True, "METHOD sections 3-8"),
    "within_only": Entry(_ours(relations=("within",)), True, "evidence from neighbours of the same environment only"),
    "cross_only": Entry(_ours(relations=("cross",)), True, "evidence from neighbours of other environments only"),
    "no_graph": Entry(_ours(relations=()), True, "no evidence from neighbours"),
    "coverage_only": Entry(_ours(coverage_share=1.0, coverage_sweep=0.0), True, "the whole batch from the coverage lane"),
    "random": Entry(_random, False, "uniform, every step anew"),
    "random_epoch": Entry(_random_epoch, False, "uniform, every task once per epoch"),
    "dps": Entry(_rival("dps", "DPS"), False, "believed probability of being partly solved (Dynamics-Predictive Sampling)"),
    "mopps": Entry(_rival("mopps", "MoPPS"), False, "Thompson sampling toward success rate one half"),
    "vcrl": Entry(_rival("vcrl", "VCRL"), False, "a bank of tasks whose groups had high variance; dropped groups are charged"),
    "sec": Entry(_rival("sec", "SEC"), False, "a bandit over environments by mean absolute advantage"),
    "greso": Entry(_rival("greso", "GRESO"), False, "epochs that skip tasks whose groups keep showing nothing"),
    "plr": Entry(_rival("plr", "PLR"), False, "prioritized replay by standard deviation and staleness"),
    "sfl": Entry(_rival("sfl", "SFL"), False, "a buffer of the most learnable tasks; its extra rollouts are charged"),
    "adarft": Entry(_rival("adarft", "AdaRFT"), False, "static difficulty nearest to a moving target", reads_content=True),
    "oracle": Entry(_rival("oracle", "Oracle"), False, "true variance under the quotas; needs a simulator or a replay"),
    "oracle_coverage": Entry(_rival("oracle", "CoverageOracle"), False, "the same with a coverage lane"),
}


def scheduler_entry(name: str) -> Entry:
    """The registry's entry.

    Raises:
        ConfigError: no such scheduler; names the known ones.
    """
    if name not in SCHEDULERS:
        nearest = difflib.get_close_matches(name, SCHEDULERS, n=1)
        hint = f"; did you mean {nearest[0]!r}? Known" if nearest else "; known"
        raise ConfigError(f"unknown scheduler {name!r}{hint}: {', '.join(SCHEDULERS)}")
    return SCHEDULERS[name]


def build_scheduler(
    name: str,
    pool: Pool,
    config: SchedulerConfig = SchedulerConfig(),
    seed: int = 0,
    features: Features | None = None,
    findings: Findings | None = None,
) -> Scheduler:
    """A scheduler by its name in ``SCHEDULERS``.

    Args:
        features: of ``pool``, for those that use them; absent, they build their own.
        findings: what ``pool check`` found about ``pool``.

    Raises:
        ConfigError: no such scheduler, or one that takes no findings.
        SelectionError: N < B.
        StateError: the features belong to another pool.
    """
    entry = scheduler_entry(name)
    if findings is None:
        return entry.build(name, pool, config, seed, features)
    if not entry.uses_features:
        raise ConfigError(f"scheduler {name!r} takes no findings of pool check; leave them out, or drop the tasks from the pool")
    return entry.build(name, pool, config, seed, features, findings)
