"""PyTorch Geometric: layers on a fixed graph, and sums over batches of small graphs.

The graph is a buffer of the module: a constant of the program, as the adjacency of a citation network is. A step draws
nodes, and the loss is taken at these.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.training.recipes.recipe import Recipe
from examples.models.listing import EXAMPLES, add, entry, labels, recipe

NODES, FEATURES, HIDDEN = 12, 6, 16


class Network(nn.Module):
    """Two layers on one graph; `wants` names what a layer is given beside nodes and edges."""

    def __init__(self, first: nn.Module, second: nn.Module, wants: str = "") -> None:
        super().__init__()
        self.first, self.second, self.wants = first, second, wants
        self.register_buffer("x", torch.randn(NODES, FEATURES))
        ring = torch.arange(NODES)
        pairs = torch.stack([torch.cat([ring, ring]), torch.cat([(ring + 1) % NODES, (ring + 5) % NODES])])
        self.register_buffer("edges", torch.cat([pairs, pairs.flip(0)], 1))
        self.register_buffer("weights", torch.rand(self.edges.shape[1]))
        self.register_buffer("kinds", torch.randint(0, 2, (self.edges.shape[1],)))
        self.register_buffer("places", torch.randn(NODES, 3))

    def _through(self, layer: nn.Module, h: Tensor) -> Tensor:
        match self.wants:
            case "weights":
                return layer(h, self.edges, self.weights)
            case "kinds":
                return layer(h, self.edges, self.kinds)
            case "attributes":
                return layer(h, self.edges, self.weights[:, None])
            case "places":
                return layer(h, self.places, self.edges)
        return layer(h, self.edges)

    def forward(self) -> Tensor:
        """Logits of all nodes, f32 [NODES, 4]."""
        h = F.relu(self._through(self.first, self.x))
        return self._through(self.second, F.dropout(h, 0.5, self.training))


def at_nodes(module: nn.Module, which: Tensor, wanted: Tensor) -> Tensor:
    """Cross-entropy at the nodes drawn."""
    return F.cross_entropy(module()[which], wanted)


def layered(kind: str, wants: str = "", **options: Any) -> Callable[[], Recipe]:
    """A factory of two layers `KIND(in, out, **options)`."""

    def factory() -> Recipe:
        import torch_geometric.nn as pyg

        layer = getattr(pyg, kind)
        model = Network(layer(FEATURES, HIDDEN, **options), layer(HIDDEN, 4, **options), wants)
        return recipe(model.train(), at_nodes, torch.randint(0, NODES, (EXAMPLES,)), labels(), lr=1e-2)

    return factory


for name, kind, wants, options in (
    ("gcn", "GCNConv", "", {}),
    ("gcn-weighted", "GCNConv", "weights", {}),
    ("sage", "SAGEConv", "", {}),
    ("sage-max", "SAGEConv", "", {"aggr": "max"}),
    ("gat", "GATConv", "", {"heads": 1}),
    ("gatv2", "GATv2Conv", "", {"heads": 1}),
    ("transformer", "TransformerConv", "", {"heads": 1}),
    ("graphconv", "GraphConv", "weights", {}),
    ("cheb", "ChebConv", "", {"K": 3}),
    ("rgcn", "RGCNConv", "kinds", {"num_relations": 2}),
    ("gen", "GENConv", "", {}),
):
    add(f"pyg/{name}", layered(kind, wants, **options))


@entry("pyg/gin")
def gin() -> Recipe:
    """Sums of neighbours through perceptrons, with batch norm."""
    from torch_geometric.nn import GINConv

    first = nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.BatchNorm1d(HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN))
    model = Network(GINConv(first), GINConv(nn.Linear(HIDDEN, 4)))
    return recipe(model.train(), at_nodes, torch.randint(0, NODES, (EXAMPLES,)), labels(), lr=1e-2)


@entry("pyg/edgeconv")
def edgeconv() -> Recipe:
    """The largest of what perceptrons make of pairs."""
    from torch_geometric.nn import EdgeConv

    model = Network(EdgeConv(nn.Linear(2 * FEATURES, HIDDEN)), EdgeConv(nn.Linear(2 * HIDDEN, 4)))
    return recipe(model.train(), at_nodes, torch.randint(0, NODES, (EXAMPLES,)), labels(), lr=1e-2)


@entry("pyg/gated-graph")
def gated_graph() -> Recipe:
    """Gated recurrent units along edges."""
    from torch_geometric.nn import GatedGraphConv

    model = Network(GatedGraphConv(HIDDEN, 2), GatedGraphConv(HIDDEN, 2))
    return recipe(model.train(), at_nodes, torch.randint(0, NODES, (EXAMPLES,)), labels(), lr=1e-2)


class Pooled(nn.Module):
    """A graph convolution, then the mean of each graph's nodes: one answer per graph of a batch of equal graphs."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer, self.head = layer, nn.Linear(HIDDEN, 4)
        ring = torch.arange(5)
        self.register_buffer("edges", torch.stack([ring, (ring + 1) % 5]))

    def forward(self, x: Tensor) -> Tensor:
        """f32 [B, 5, FEATURES] to logits [B, 4]."""
        from torch_geometric.nn import global_mean_pool

        graphs = x.shape[0]
        shift = torch.arange(graphs)[:, None, None] * 5
        edges = (self.edges[None] + shift).transpose(0, 1).reshape(2, -1)
        h = F.relu(self.layer(x.reshape(-1, FEATURES), edges))
        return self.head(global_mean_pool(h, torch.arange(graphs).repeat_interleave(5), graphs))


@entry("pyg/pooled-batch")
def pooled_batch() -> Recipe:
    """Classes of whole graphs."""
    from torch_geometric.nn import SAGEConv

    from examples.models.listing import classify

    model = Pooled(SAGEConv(FEATURES, HIDDEN))
    return recipe(model.train(), classify, torch.randn(EXAMPLES, 5, FEATURES), labels(), lr=1e-2)
