"""Groups what a backend supports, and fuses the groups into submodules."""

from .... import _C
from ..utils.fuser_utils import fuse_by_partitions

__all__ = ["CapabilityBasedPartitioner", "Partition"]


class Partition:
    """nodes: a dict from nodes to their places counted from the end of the graph, or None where that is not known."""

    def __init__(self, id=None, nodes=None, node_orders=None):
        self.id = id
        nodes = [] if nodes is None else list(nodes)
        orders = [None] * len(nodes) if node_orders is None else list(node_orders)
        if len(nodes) != len(orders):
            raise AssertionError("nodes and node_orders must have the same length")
        self.nodes = dict(zip(nodes, orders))

    def __repr__(self):
        return str(self.nodes)

    def add_node(self, node, node_order=None):
        self.nodes[node] = node_order

    def remove_node(self, node):
        del self.nodes[node]

    def size(self):
        return len(self.nodes)


class CapabilityBasedPartitioner:
    """Groups the nodes for which operator_support.is_node_supported(submodules, node) as far as no cycles arise.

    allows_single_node_partition: keep groups of one computing node
    non_compute_ops: qualified names of functions that compute nothing
    allowed_single_node_partition_ops: those that are worth a group of their own
    """

    def __init__(
        self,
        graph_module,
        operator_support,
        allows_single_node_partition=False,
        non_compute_ops=None,
        allowed_single_node_partition_ops=None,
    ):
        self.graph_module = graph_module
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = [] if non_compute_ops is None else non_compute_ops
        self.allowed_single_node_partition_ops = allowed_single_node_partition_ops or []

    def propose_partitions(self):
        """A list of Partition; the graph stays as it is."""
        graph = self.graph_module.graph
        submodules = dict(self.graph_module.named_modules())
        proposed = _C.propose_partitions(
            graph,
            lambda node: self.operator_support.is_node_supported(submodules, node),
            self.allows_single_node_partition,
            list(self.non_compute_ops),
            list(self.allowed_single_node_partition_ops),
        )
        order = {node: i for i, node in enumerate(reversed(graph.nodes))}
        return [Partition(id, nodes, (order[n] for n in nodes)) for id, nodes in proposed]

    def fuse_partitions(self, partitions, prefix="fused_"):
        """Replaces each partition by a submodule <prefix><index>. Returns the module that was given, changed."""
        return fuse_by_partitions(self.graph_module, [p.nodes for p in partitions], prefix=prefix)

    def remove_bookend_non_compute_ops(self, partitions):
        """Takes off each partition what computes nothing and stands before or behind all that does."""
        for partition in partitions:
            for node in _C.bookend_non_compute_nodes(list(partition.nodes), list(self.non_compute_ops)):
                partition.remove_node(node)

    def partition_and_fuse(self, prefix="fused_"):
        return self.fuse_partitions(self.propose_partitions(), prefix=prefix)
