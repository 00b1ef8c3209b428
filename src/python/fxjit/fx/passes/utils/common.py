"""Comparing graphs, and making modules of parts of them."""

import torch

from ...graph_module import GraphModule
from .matcher_utils import SubgraphMatcher

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(torch.nn.Module):
    """A module that consists of submodules."""

    def __init__(self, d):
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(gm, subgraph, comp_name="", class_name="GraphModule"):
    """A GraphModule of a graph made of copies of gm's nodes, with what these use of gm's attributes.

    Also returns a dict from qualified names in gm to those in the new module, with comp_name before them.
    """
    holder, names = HolderModule({}), {}
    for node in subgraph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        *prefix, leaf = node.target.split(".")
        source, destination = gm, holder
        for part in prefix:
            if not hasattr(destination, part):
                destination.add_module(part, HolderModule({}))
            source, destination = getattr(source, part), getattr(destination, part)
        names[node.target] = f"{comp_name}.{node.target}"
        setattr(destination, leaf, getattr(source, leaf))
    return GraphModule(holder, subgraph, class_name), names


def compare_graphs(left, right):
    """Whether two graphs have the same inputs, outputs, nodes and connections."""
    matcher = SubgraphMatcher(left, match_output=True, match_placeholder=True)
    return len(matcher.match(right)) > 0
