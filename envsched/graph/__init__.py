"""Who lends evidence to whom: observed neighbours inside an environment and across environments."""

from envsched.graph.observed import ObservedGraph
from envsched.graph.relation import Relation

__all__ = ["ObservedGraph", "Relation"]
