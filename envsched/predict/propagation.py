import torch
from torch import Tensor
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.typing import Adj, OptTensor


class HistoryPropagation(MessagePassing):
    r"""Propagates what was observed at tasks to their neighbours and shrinks it to a parent's estimate: the
    graph prior of envsched (``METHOD.md``, section 5).

    .. math::
        m_i = \sum_{j \in \mathcal{N}(i)} s_{ji} \, n_j, \qquad
        p_i = \frac{\sum_{j \in \mathcal{N}(i)} s_{ji} \, n_j \, x_j + \lambda \, a_i}{m_i + \lambda}

    where :math:`x_j` is the estimate at source :math:`j`, :math:`n_j` the mass of evidence behind it,
    :math:`s_{ji}` the similarity on the edge, :math:`a_i` the parent's estimate and :math:`\lambda` the shrinkage.
    A node without neighbours gets :math:`p_i = a_i` and :math:`m_i = 0`.

    Args:
        shrinkage (float): Mass :math:`\lambda > 0` of the parent's estimate. (default: :obj:`2.0`)
        **kwargs (optional): Additional arguments of :class:`torch_geometric.nn.conv.MessagePassing`.

    Shapes:
        - **inputs:**
          estimates :math:`(|\mathcal{V}|)` or :math:`(|\mathcal{V}|, F)`,
          mass :math:`(|\mathcal{V}|)` or like the estimates,
          edge indices :math:`(2, |\mathcal{E}|)` as tensor or :class:`~torch_geometric.EdgeIndex`,
          edge weights :math:`(|\mathcal{E}|)` *(optional)*,
          parent: a number, :math:`(|\mathcal{V}|)` or like the estimates
        - **outputs:** prior and mass, stacked: :math:`(2, |\mathcal{V}|)` or :math:`(2, |\mathcal{V}|, F)`, so that
          ``prior, mass = layer(...)``; one tensor, so that :class:`~torch_geometric.nn.conv.HeteroConv` with
          ``aggr=None`` stacks relations to :math:`(2, R, |\mathcal{V}|)`
    """

    def __init__(self, shrinkage: float = 2.0, **kwargs):
        if not shrinkage > 0:
            raise ValueError(f"'shrinkage' must be positive: without it a node without neighbours has no prior (got {shrinkage})")
        super().__init__(aggr="sum", node_dim=0, **kwargs)
        self.shrinkage = shrinkage

    def forward(self, x: Tensor, mass: Tensor, edge_index: Adj, edge_weight: OptTensor = None, parent: float | Tensor = 0.0) -> Tensor:
        weighted, mass = self.evidence(x, mass, edge_index, edge_weight)
        if isinstance(parent, Tensor) and parent.dim() < x.dim():
            parent = parent.unsqueeze(-1)
        prior = (weighted + self.shrinkage * parent) / (mass + self.shrinkage)
        return torch.stack([prior, mass])

    def evidence(self, x: Tensor, mass: Tensor, edge_index: Adj, edge_weight: OptTensor = None) -> Tensor:
        r"""The two sums alone, stacked like the output: :math:`\sum_j s_{ji} n_j x_j` and :math:`m_i`."""
        if mass.dim() < x.dim():
            mass = mass.unsqueeze(-1)
        evidence = torch.stack([mass * x, mass.expand_as(x).to(x.dtype)], dim=-1)
        # propagate_type: (evidence: Tensor, edge_weight: OptTensor)
        out = self.propagate(edge_index, evidence=evidence, edge_weight=edge_weight)
        return out.movedim(-1, 0)

    def message(self, evidence_j: Tensor, edge_weight: OptTensor) -> Tensor:
        if edge_weight is None:
            return evidence_j
        return edge_weight.to(evidence_j.dtype).view(-1, *[1] * (evidence_j.dim() - 1)) * evidence_j

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}(shrinkage={self.shrinkage})"
