"""The scheduler: wires the rooms behind five verbs and owns the state (the history and the seed)."""

from importlib import import_module

_HOME_OF = {
    "METRICS": "envsched.scheduler.figures",
    "EnvScheduler": "envsched.scheduler.env_scheduler",
    "RecordedScheduler": "envsched.scheduler.recorded",
    "carry_over": "envsched.scheduler.state",
}

__all__ = [*_HOME_OF]


def __getattr__(name: str):
    if name not in _HOME_OF:
        raise AttributeError(f"module 'envsched.scheduler' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
