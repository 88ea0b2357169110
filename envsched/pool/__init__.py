"""What can be trained on: environments and tasks, read from files or made here."""

from envsched.pool.outline import PoolChange
from envsched.pool.pool import Pool
from envsched.pool.source import PoolSource, pool_from

__all__ = ["Pool", "PoolChange", "PoolSource", "pool_from"]
