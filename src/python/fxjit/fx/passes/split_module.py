"""Splits a GraphModule into submodules."""

import operator

import torch

from ... import _C
from ..graph_module import GraphModule

__all__ = ["split_module"]


def split_module(
    m,
    root_m,
    split_callback,
    qualname_map=None,
    keep_original_order=False,
    keep_original_node_name=False,
    keep_original_input_name=True,
    *,
    partition_affix=None,
):
    """A GraphModule that calls a submodule for each partition of m's graph.

    root_m: not used
    split_callback: gives the number of the partition of a node; called once for each node but placeholders, get_attr
        nodes and the output, in program order
    qualname_map: a dict that gets the new qualified names of called modules → the old ones
    keep_original_order: call the partitions in the order of their first nodes, not in a topological one
    keep_original_node_name: nodes of the submodules keep their names
    keep_original_input_name: inputs of the submodules have the names of their values; otherwise arg_0, arg_1, …
    partition_affix: "pp" makes submod_pp_0 of submod_0

    RuntimeError if the partitions depend on each other in a circle.
    """

    def callback(node):
        partition = split_callback(node)
        node._fx_partition = str(partition) if partition_affix is None else f"{partition_affix}_{partition}"
        return partition

    flags = (keep_original_order, keep_original_node_name, keep_original_input_name)
    graph, targets, parts = _C.split_graph(m.graph, callback, flags, partition_affix, _symbols_of(m.graph))
    attributes = {name: operator.attrgetter(path)(m) for name, path in targets.items()}
    for name, part, part_targets in parts:
        attributes[name] = GraphModule({new: operator.attrgetter(old)(m) for new, old in part_targets.items()}, part)
        if qualname_map is not None:
            called = {n.target for n in part.find_nodes(op="call_module")}
            qualname_map.update((f"{name}.{new}", old) for new, old in part_targets.items() if new in called)
    graph.guards = m.graph.guards
    return GraphModule(attributes, graph)


def _symbols_of(graph):
    """A function from a node to those that define the symbols in its shape; None where no value is symbolic."""
    import sympy

    defined = {}
    for node in graph.nodes:
        value = node.meta.get("example_value")
        if isinstance(value, (torch.SymInt, torch.SymFloat)) and isinstance(value.node.expr, sympy.Symbol):
            defined.setdefault(value.node.expr, node)
    if not defined:
        return None

    def symbols(node):
        from torch.fx.experimental.symbolic_shapes import free_symbols

        value = node.meta.get("example_value")
        return [] if value is None else [defined[s] for s in sorted(free_symbols(value), key=str)]

    return symbols
