"""What can be trained on: environments and tasks, read from files or made here."""

from envsched.pool.pool import Pool
from envsched.pool.source import PoolSource, pool_from

__all__ = ["Pool", "PoolSource", "pool_from"]
