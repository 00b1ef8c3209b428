"""Questions that many passes ask about nodes, and orders of graphs."""

import operator

import torch

from ... import _C
from .._names import qualified_name

__all__ = [
    "FxNetAccFusionsFinder",
    "get_acc_ops_name",
    "get_node_target",
    "is_node_output_tensor",
    "legalize_graph",
    "stable_topological_sort",
]

CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}

# Computations of sizes and assertions about them, which are to stand before what depends on the data.
_URGENT = {
    operator.add,
    operator.mul,
    operator.sub,
    operator.floordiv,
    operator.truediv,
    operator.mod,
    operator.le,
    operator.lt,
    operator.ge,
    operator.gt,
    operator.eq,
    operator.ne,
    torch.ops.aten.sym_constrain_range.default,
    torch.ops.aten.sym_constrain_range_for_size.default,
    torch.ops.aten._assert_async.msg,
    torch.ops.aten.scalar_tensor.default,
    torch.ops.aten._assert_scalar.default,
}


def get_acc_ops_name(k):
    """Module and name of a function or class; acc_ops.<name> for those of a module acc_ops; a str as it is."""
    if isinstance(k, str):
        return k
    module = k.__module__ or ""
    if "acc_ops" in module:
        return f"acc_ops.{k.__name__}"
    return f"{module.replace('torch._ops', 'torch.ops')}.{k.__name__}"


def get_node_target(submodules, node):
    """What a node calls, as a name: of the method, the function, or the class of the module."""
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"Expect op types of {', '.join(sorted(CALLABLE_NODE_OPS))}, but found {node.op}")
    if node.op == "call_module":
        module = submodules[node.target]
        return get_acc_ops_name(getattr(module, "_base_class_origin", type(module)))
    if node.op == "call_method":
        return node.target
    if "acc_ops" in (node.target.__module__ or ""):
        return f"acc_ops.{node.target.__name__}"
    return qualified_name(node.target)


def is_node_output_tensor(node):
    """Whether ShapeProp found the node's value to be a tensor."""
    kind = node.meta.get("type")
    return kind is not None and issubclass(kind, torch.Tensor)


def legalize_graph(gm):
    """Sorts the graph topologically, first in first out. RuntimeError naming the nodes for a cycle."""
    _C.legalize_graph(gm.graph, _URGENT)
    gm.recompile()
    return gm


def stable_topological_sort(gm):
    """Sorts the graph topologically, keeping the order as far as possible. AssertionError for a cycle."""
    _C.stable_topological_sort(gm.graph)
    gm.recompile()
    return gm


class FxNetAccFusionsFinder:
    """Groups of accelerated nodes that pass each other values other than tensors: they must stay together.

    acc_nodes: the set of accelerated nodes; groups that would need another node are taken out of it. Called, it returns
    a dict from nodes to their groups (sets). ShapeProp must have run: a node without "tensor_meta" is no tensor.
    """

    def __init__(self, module, acc_nodes):
        self.module = module
        self.nodes = list(module.graph.nodes)
        self.acc_nodes = acc_nodes
        self.node_index = {node: i for i, node in enumerate(self.nodes)}

    def __call__(self):
        groups = {}
        for node in sorted(self.acc_nodes, key=self.node_index.__getitem__):
            if node in groups or node not in self.acc_nodes or not self._passes_other_values(node):
                continue
            group = self._grow(node)
            if group <= self.acc_nodes:
                groups.update(dict.fromkeys(group, group))
            else:
                self.acc_nodes -= group
        return groups

    @staticmethod
    def _passes_other_values(node):
        return node.op in CALLABLE_NODE_OPS and "tensor_meta" not in node.meta

    def _grow(self, start):
        group, pending = {start}, [start]

        def add(nodes):
            new = [n for n in nodes if n not in group]
            group.update(new)
            pending.extend(new)

        while pending:
            node = pending.pop()
            if self._passes_other_values(node):
                add(user for user in node.users if user.op in CALLABLE_NODE_OPS)
            add(arg for arg in node.all_input_nodes if self._passes_other_values(arg))
            if not pending:
                add(self._between(group))
        return group

    def _between(self, group):
        """Nodes outside that read something of the group and are read by it, on whatever way."""
        first = min(self.node_index[n] for n in group)
        found, pending = set(), list(group)
        while pending:
            for arg in pending.pop().all_input_nodes:
                if arg.op in CALLABLE_NODE_OPS and arg not in found and self.node_index[arg] > first:
                    found.add(arg)
                    pending.append(arg)
        inside = set(group)
        for node in sorted(found, key=self.node_index.__getitem__):
            if any(arg in inside for arg in node.all_input_nodes):
                inside.add(node)
        return sorted(inside - group, key=self.node_index.__getitem__)
