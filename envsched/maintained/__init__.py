"""Large pools: what neighbours say is kept up to date instead of propagated, and a step costs little more than reading it once."""

from envsched.maintained.carriers import Carrier, Carriers, Stream
from envsched.maintained.composer import Composer
from envsched.maintained.follower import Follower
from envsched.maintained.led import Leader, follow
from envsched.maintained.lists import StaticGraph, StaticLists, build_lists, build_stream
from envsched.maintained.modes import BUILDERS, limits_of
from envsched.maintained.pool import LargePool, Selection
from envsched.maintained.ranks import Part, Ranks, refuse_unshared, shard_pool
from envsched.maintained.rules import Closed

__all__ = [
    "BUILDERS",
    "Carrier",
    "Carriers",
    "Closed",
    "Composer",
    "Follower",
    "LargePool",
    "Leader",
    "Part",
    "Ranks",
    "Selection",
    "StaticGraph",
    "StaticLists",
    "Stream",
    "build_lists",
    "build_stream",
    "follow",
    "limits_of",
    "refuse_unshared",
    "shard_pool",
]
