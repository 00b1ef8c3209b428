"""Which nodes a backend supports."""

import abc

from torch.fx.passes.shape_prop import TensorMetadata

from ..node import Node
from .tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]


class OperatorSupportBase(abc.ABC):
    @abc.abstractmethod
    def is_node_supported(self, submodules, node):
        """submodules: dict(module.named_modules())"""


class OperatorSupport(OperatorSupportBase):
    """A dict from targets (see get_node_target) to what is supported of them.

    None: all of it. Otherwise a tuple of lists of dtypes, one for each positional argument, and a dict of such lists
    for keyword arguments. None instead of a list: any dtype. Arguments that are no nodes are not looked at. Nodes
    that call nothing are supported.
    """

    def __init__(self, support_dict=None):
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules, node):
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        rule = self._support_dict[target]
        if rule is None:
            return True
        positional, keywords = rule
        wanted = list(zip(node.args, positional))
        wanted += [(node.kwargs[name], dtypes) for name, dtypes in keywords.items() if name in node.kwargs]
        return all(
            dtypes is None or not isinstance(arg, Node) or _dtype_of(arg) in dtypes for arg, dtypes in wanted
        )


class _FunctionalSupport(OperatorSupportBase):
    def __init__(self, function):
        self.function = function

    def is_node_supported(self, submodules, node):
        return self.function(submodules, node)


def create_op_support(is_node_supported):
    """An OperatorSupportBase of a function of (submodules, node)."""
    return _FunctionalSupport(is_node_supported)


def chain(*op_support):
    """Supports what all of them do."""
    return create_op_support(lambda mods, node: all(s.is_node_supported(mods, node) for s in op_support))


def any_chain(*op_support):
    """Supports what any of them does."""
    return create_op_support(lambda mods, node: any(s.is_node_supported(mods, node) for s in op_support))


class OpSupports:
    """Rules to be combined by chain() and any_chain()."""

    @classmethod
    def decline_if_input_dtype(cls, dtype):
        """No node with an input of this dtype."""
        return create_op_support(lambda _, node: all(_dtype_of(arg) != dtype for arg in node.all_input_nodes))

    @classmethod
    def decline_if_node_in_names(cls, disallow_set):
        """No node of these names."""
        return create_op_support(lambda _, node: node.name not in disallow_set)


def _dtype_of(node):
    """The dtype of a tensor, as ShapeProp has noted it; the type of another value."""
    meta = node.meta.get("tensor_meta")
    return meta.dtype if isinstance(meta, TensorMetadata) else node.meta["type"]
