"""Who lends evidence to whom: observed neighbours inside an environment and across environments."""

from envsched.graph.modes import Mode, resolve_mode
from envsched.graph.observed import ObservedGraph, RebuiltGraph
from envsched.graph.relation import Relation

__all__ = ["Mode", "ObservedGraph", "RebuiltGraph", "Relation", "resolve_mode"]
