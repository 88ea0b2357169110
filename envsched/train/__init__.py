"""GRPO with TRL on scheduled tasks; the public names load on first use, so that a look at a run directory costs no torch."""

from importlib import import_module

_HOME_OF = {
    "Attempt": "envsched.train.attempts",
    "Rounds": "envsched.train.rounds",
    "RunDirectory": "envsched.train.run_directory",
    "ScheduledGRPOTrainer": "envsched.train.trainer",
    "prepare": "envsched.train.preparation",
    "train": "envsched.train.run",
}

__all__ = [*_HOME_OF]


def __getattr__(name: str):
    if name not in _HOME_OF:
        raise AttributeError(f"module 'envsched.train' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)
