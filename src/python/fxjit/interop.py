"""Graphs from torch.fx."""

from __future__ import annotations

import torch

from . import fx


def from_torch(module: torch.fx.GraphModule) -> fx.GraphModule:
    """The same graph as a GraphModule of fxjit.fx: names, targets, annotations and meta are kept, attributes shared."""
    graph, copied = fx.Graph(), {}

    def lower(a):
        return torch.fx.node.map_arg(a, copied.__getitem__)

    for n in module.graph.nodes:
        new = graph.create_node(n.op, n.target, lower(n.args), lower(n.kwargs), n.name, n.type)
        new.meta.update(n.meta)
        copied[n] = new
    return fx.GraphModule(module, graph, type(module).__name__)
