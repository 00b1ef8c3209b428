"""fxjit.fx.Node: what is not in C++."""

import collections.abc
import copy

import torch
from torch.fx.node import _side_effectful_functions
from torch.fx.operator_schemas import normalize_function, normalize_module

from .._C import Node, _Users, map_aggregate, map_arg
from ._names import pretty_name

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

_legal_ops = dict.fromkeys(
    ["placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root"]
)
base_types = torch.fx.node.base_types
Target = torch.fx.node.Target
Argument = torch.fx.node.Argument


def has_side_effect(fn):
    """Calls of `fn` stay though nobody uses their result. The registry is torch.fx's: both honour it."""
    _side_effectful_functions.add(fn)
    return fn


def _format_node(self, placeholder_names=None, maybe_return_typename=None, *, include_tensor_metadata=False):
    """A line of text that describes the node."""
    if include_tensor_metadata and self.op not in ("placeholder", "get_attr", "output"):
        value = self.meta.get("val", self.meta.get("tensor_meta", self.meta.get("example_value")))
        if isinstance(value, torch.Tensor) and value.layout == torch.strided:
            text = f'Tensor "{_tensor_text(value)}"'
            return self._format().replace(f"%{self.name} : ", f"%{self.name} : {text}", 1)
    if placeholder_names and self.op == "placeholder":
        placeholder_names.append(self.target)
        return None
    if self.op == "output" and self.type and maybe_return_typename:
        maybe_return_typename[0] = f" -> {torch.fx.node._type_repr(self.type)}"
    return self._format()


def _tensor_text(t):
    shape, stride = (f"[{', '.join(map(str, part))}]" for part in (t.shape, t.stride()))
    return f"{torch.fx.graph.dtype_abbrs[t.dtype]}{shape}{stride}{t.device}"


def _normalized_arguments(self, root, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False):
    """Arguments matched to the signature of the callee and its defaults filled in; None where that is ambiguous."""
    if self.op == "call_function":
        return normalize_function(
            self.target, self.args, self.kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs
        )
    if self.op == "call_module":
        return normalize_module(root, self.target, self.args, self.kwargs, normalize_to_only_use_kwargs)
    return None


def _deepcopy(self, memo):
    """The counterpart in a copy of the whole graph: a node alone is nothing."""
    graph = copy.deepcopy(self.graph, memo)
    if self not in memo:  # the memo was empty then, which Graph leaves as it is
        memo.update(zip(self.graph.nodes, graph.nodes))
    if self not in memo:
        raise TypeError(f"node {self} was erased from its graph: it has no counterpart in a copy")
    return memo[self]


def _pretty_print_target(target):
    return target if isinstance(target, str) else pretty_name(target)


Node.format_node = _format_node
Node.__deepcopy__ = _deepcopy
Node.normalized_arguments = _normalized_arguments
Node._pretty_print_target = staticmethod(_pretty_print_target)
collections.abc.Mapping.register(_Users)
