"""From predictions to a batch: cold start, coverage, exploitation, quotas. Pure functions over arrays."""

from envsched.select.compose import Candidates, Composition, Mix, compose, mix_of
from envsched.select.draws import Draws
from envsched.select.ledger import refuse_small_pool
from envsched.select.quotas import Quotas, Recent, recent_picks

__all__ = ["Candidates", "Composition", "Draws", "Mix", "Quotas", "Recent", "compose", "mix_of", "recent_picks", "refuse_small_pool"]
