"""How the graph is kept: ``graph_mode``."""

from typing import Literal

Mode = Literal["exact", "incremental_exact", "static", "kernel"]
INCREMENTAL_UP_TO = 250_000  # tasks; a step compares the newly observed ones with all others
STATIC_UP_TO = 1_000_000  # tasks; building the cross lists compares all pairs once


def resolve_mode(wanted: str, num_tasks: int) -> Mode:
    """The mode that ``auto`` means for a pool of this size; any other is taken as it is.

    ``exact`` and ``incremental_exact`` give the same lists and batches. ``static`` and ``kernel`` hold all tasks, observed or
    not, and are approximations of METHOD section 4: lists among all tasks miss evidence while few tasks carry any.
    """
    if wanted != "auto":
        return wanted
    if num_tasks <= INCREMENTAL_UP_TO:
        return "incremental_exact"
    return "static" if num_tasks <= STATIC_UP_TO else "kernel"
