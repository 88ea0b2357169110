"""How the graph is kept: ``graph_mode``."""

from typing import Literal

from envsched import ops

Mode = Literal["exact", "incremental_exact", "static", "kernel"]
INCREMENTAL_UP_TO = 250_000  # tasks; above, propagation over all lists would be what a step waits for


def resolve_mode(wanted: str, num_tasks: int) -> Mode:
    """The mode that ``auto`` means for a pool of this size; any other is taken as it is.

    ``exact`` and ``incremental_exact`` give the same lists and batches. ``static`` and ``kernel`` hold all tasks, observed or
    not, and are approximations of METHOD section 4: ``kernel`` ranked unseen tasks as well or better in the study of
    BENCHMARKS.md, ``static`` worse while few tasks carry evidence, so that it is never the automatic choice. Without int8
    products ``auto`` stays with ``incremental_exact``.
    """
    if wanted != "auto":
        return wanted
    return "kernel" if num_tasks > INCREMENTAL_UP_TO and ops.has_int8() else "incremental_exact"
