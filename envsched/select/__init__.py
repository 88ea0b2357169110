"""From predictions to a batch: cold start, coverage, exploitation, quotas. Pure functions over arrays."""

from envsched.select.compose import Candidates, Composition, Mix, compose, let_in, mix_of
from envsched.select.draws import Draws
from envsched.select.lanes import Choice
from envsched.select.ledger import names_of_bits, refuse_small_pool
from envsched.select.quotas import Quotas, Recent, recent_picks

__all__ = [
    "Candidates",
    "Choice",
    "Composition",
    "Draws",
    "Mix",
    "Quotas",
    "Recent",
    "compose",
    "let_in",
    "mix_of",
    "names_of_bits",
    "recent_picks",
    "refuse_small_pool",
]
