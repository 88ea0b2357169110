"""Large pools: what neighbours say is kept up to date instead of propagated, and a step costs little more than reading it once."""

from envsched.maintained.lists import StaticLists, build_lists
from envsched.maintained.pool import LargePool, Selection

__all__ = ["LargePool", "Selection", "StaticLists", "build_lists"]
