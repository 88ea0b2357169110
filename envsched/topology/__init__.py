"""Abstract topologies of tasks: schema, similarity, and the extractor that needs no language model."""

from envsched.topology.schema import CheckKind, Execution, Part, Phase, Reward, Topology
from envsched.topology.sets import TaskSets, task_sets
from envsched.topology.static import extract_static
from envsched.topology.store import check_cover, read_topologies, write_topologies
from envsched.topology.vector import TOPOLOGY_DIM, similarity, topology_matrix, topology_vector

__all__ = [
    "CheckKind",
    "Execution",
    "Part",
    "Phase",
    "Reward",
    "TOPOLOGY_DIM",
    "TaskSets",
    "Topology",
    "check_cover",
    "extract_static",
    "read_topologies",
    "similarity",
    "task_sets",
    "topology_matrix",
    "topology_vector",
    "write_topologies",
]
