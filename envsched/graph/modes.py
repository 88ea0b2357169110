"""How the graph is kept: ``graph_mode``."""

from typing import Literal

from envsched import ops
from kernels.live import MAX_LIVE

Mode = Literal["exact", "incremental_exact", "live", "static", "kernel", "class"]
INCREMENTAL_UP_TO = 250_000  # tasks; above, propagation over all lists would be what a step waits for


def resolve_mode(wanted: str, num_tasks: int, num_slots: int = 0) -> Mode:
    """The mode that ``auto`` means for a pool of this size; any other is taken as it is.

    ``exact`` and ``incremental_exact`` give the same lists and batches. All others approximate METHOD section 4, and say so in the
    graph's header and in manifests. In the study of BENCHMARKS.md ``live`` was not worse than ``exact`` of its prior by more than 0.02 and
    better where evidence had decayed, so that it is what large pools get; ``kernel`` was better still where topology decides and
    worse where environment and topology both do; ``class`` pays where topologies repeat; ``static`` was worst while few tasks
    carry evidence. Lists of more than 16 neighbours can't be live: then it is ``kernel``. Without int8 products ``auto`` stays
    with ``incremental_exact``.

    Args:
        num_slots: of the longer lists.
    """
    if wanted != "auto":
        return wanted
    if num_tasks <= INCREMENTAL_UP_TO or not ops.has_int8():
        return "incremental_exact"
    return "live" if num_slots <= MAX_LIVE else "kernel"
