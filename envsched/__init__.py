"""envsched: an online task scheduler for agentic reinforcement learning.

The public names below load on first use, so ``import envsched`` costs no torch.
"""

import os
from importlib import import_module

# Read once, when OpenMP loads: threads that spin after a parallel region slow a short one tenfold on a busy machine.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

__version__ = "0.1.0"

_HOME_OF = {
    "Batch": "envsched.types",
    "Check": "envsched.types",
    "Environment": "envsched.types",
    "Manifest": "envsched.types",
    "Pick": "envsched.types",
    "RolloutRecord": "envsched.types",
    "Scheduler": "envsched.types",
    "Status": "envsched.types",
    "Task": "envsched.types",
    "EnvschedError": "envsched.errors",
    "SchedulerConfig": "envsched.config",
    "load_config": "envsched.config",
    "Pool": "envsched.pool",
    "EnvScheduler": "envsched.scheduler",
}

__all__ = [*_HOME_OF, "__version__"]


def __getattr__(name: str):
    if name not in _HOME_OF:
        raise AttributeError(f"module 'envsched' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
