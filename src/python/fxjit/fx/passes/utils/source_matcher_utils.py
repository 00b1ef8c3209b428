"""Groups of nodes that came from one call of a function or module in the source program."""

from dataclasses import dataclass, field
from typing import Any

from ...node import Node

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]


@dataclass
class SourcePartition:
    """nodes, in program order; source: what they came from; input_nodes: outside nodes that they read, no parameters;
    output_nodes: those that are used outside; params: their get_attr nodes."""

    nodes: list[Node]
    source: Any
    input_nodes: list[Node] = field(default_factory=list)
    output_nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)


def get_source_partitions(graph, wanted_sources, filter_fn=None):
    """A dict from those of the wanted sources (functions, module types) that occur to lists of SourcePartition.

    Reads node.meta["source_fn_stack"], or "torch_fn" where there is none. With filter_fn a partition is returned if it
    is true for all of its nodes.
    """
    found = {}
    for node in graph.nodes:
        stack, torch_fn = node.meta.get("source_fn_stack"), node.meta.get("torch_fn")
        if stack is not None:
            name, source = stack[-1][:2]
        elif torch_fn is not None:
            name, source = torch_fn[0], torch_fn[1].split(".")[1]
        else:
            continue
        if source in wanted_sources:
            found.setdefault(source, {}).setdefault(name, []).append(node)
    return {
        source: [_partition(nodes, source) for nodes in groups.values() if not filter_fn or all(map(filter_fn, nodes))]
        for source, groups in found.items()
    }


def _partition(nodes, source):
    inside = set(nodes)
    inputs, outputs, params = {}, {}, {}  # as ordered sets
    for node in nodes:
        for arg in node.args:
            if isinstance(arg, Node) and arg not in inside and arg.op != "get_attr":
                inputs[arg] = None
        if node.op == "get_attr":
            params[node] = None
        elif any(user not in inside for user in node.users):
            outputs[node] = None
    return SourcePartition(nodes, source, list(inputs), list(outputs), list(params))


def check_subgraphs_connected(subgraph1, subgraph2):
    """Whether a node of the second partition reads one of the first."""
    inside = set(subgraph2.nodes)
    return any(user in inside for node in subgraph1.nodes for user in node.users)
