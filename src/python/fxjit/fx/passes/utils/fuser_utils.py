"""Fusing nodes of a graph into submodules."""

from .... import _C
from ..tools_common import stable_topological_sort
from .common import lift_subgraph_as_module

__all__ = ["erase_nodes", "fuse_as_graphmodule", "fuse_by_partitions", "insert_subgm", "topo_sort", "validate_partition"]


def topo_sort(nodes):
    """The nodes in an order in which each one comes behind its inputs among them."""
    return _C.topo_sort(nodes)


def validate_partition(partition):
    """Whether the nodes may become one node without making a cycle."""
    return _C.validate_partition(partition)


def fuse_as_graphmodule(gm, nodes, module_name, partition_lookup_table=None, *, always_return_tuple=False):
    """A GraphModule of copies of gm's nodes, which are given in topological order.

    Returns the module, the outside nodes that it reads, and those of the nodes that are used outside; two tuples.
    AssertionError if a node is not gm's, or if the module's call would be part of a cycle. partition_lookup_table is not
    used: look-ups are fast without.
    """
    for node in nodes:
        if node.graph.owning_module is not gm:
            raise AssertionError(f"{node} doesn't belong to passed in graph module {gm._get_name()}")
        if node._erased:
            raise AssertionError(f"{node} has been removed from owning graph")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    return _fuse(gm, nodes, module_name, always_return_tuple)


def _fuse(gm, nodes, module_name, always_return_tuple):
    graph, inputs, outputs = _C.extract_subgraph(nodes, always_return_tuple)
    module, _ = lift_subgraph_as_module(gm, graph, comp_name="", class_name=module_name)
    return module, tuple(inputs), tuple(outputs)


def insert_subgm(gm, sub_gm, orig_inputs, orig_outputs):
    """Calls sub_gm, under the name of its class, behind the last of orig_outputs and in their place."""
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    if not orig_outputs:
        raise AssertionError("last_output_node is None")
    as_tuple = len(orig_outputs) != 1 or isinstance(sub_gm.graph.output_node().args[0], tuple)
    values = tuple(node.meta.get("val") for node in orig_outputs)
    call = _C.insert_subgraph_call(gm.graph, name, orig_inputs, orig_outputs, as_tuple)
    if as_tuple:
        call.meta["val"] = values
    return gm


def erase_nodes(gm, nodes):
    """Erases nodes that are given in topological order."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(gm, partitions, prefix="fused_", always_return_tuple=False):
    """Replaces each of the partitions (dicts or lists of nodes) by a call of a new submodule <prefix><index>.

    AssertionError if that would make a cycle; the module is unchanged then.
    """
    if not _C.validate_partitions(gm.graph, [list(p) for p in partitions]):
        raise AssertionError("Invalid partition, found dependency cycles")
    for i, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        sub_gm, inputs, outputs = _fuse(gm, nodes, f"{prefix}{i}", always_return_tuple)
        insert_subgm(gm, sub_gm, inputs, outputs)
        erase_nodes(gm, nodes)
    stable_topological_sort(gm)
    gm.graph.lint()
    return gm
