"""Abstract topologies of tasks: schema, similarity, and the extractor that needs no language model."""

from envsched.topology.flow import tool_flows
from envsched.topology.schema import CheckKind, Execution, Part, Phase, Reward, Topology
from envsched.topology.sets import TaskSets, task_sets
from envsched.topology.source import Tool, read_tools
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
    "Tool",
    "Topology",
    "check_cover",
    "extract_static",
    "read_tools",
    "read_topologies",
    "similarity",
    "task_sets",
    "tool_flows",
    "topology_matrix",
    "topology_vector",
    "write_topologies",
]
