"""One spelling for calls: arguments by name with their defaults, and operators in place of torch's functions."""

import operator

import torch

from ..interpreter import Transformer
from ..node import Node, map_aggregate
from ..operator_schemas import create_type_hint, normalize_function, normalize_module
from ..proxy import Proxy
from .schema_type_annotation import AnnotateTypesWithSchema

__all__ = ["NormalizeArgs", "NormalizeOperators"]


class NormalizeArgs(Transformer):
    """NormalizeArgs(gm).transform(): calls of functions and modules with their arguments matched to the signature and
    defaults filled in. meta["type"] of a node (see ShapeProp) decides between overloads; what stays ambiguous is left.

    normalize_to_only_use_kwargs: all arguments by name; else positional ones stay so
    """

    def __init__(self, module, normalize_to_only_use_kwargs=True):
        super().__init__(module)
        self.node_map = {}
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs

    def run_node(self, n):
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        if n.op == "call_function":
            def type_of(a):
                return n.meta.get("type") if isinstance(a, Node) else type(a)

            arg_types = tuple(create_type_hint(t) for t in map_aggregate(n.args, type_of))
            kwarg_types = {key: type_of(value) for key, value in kwargs.items()}
            out = self.call_function(n.target, args, kwargs, arg_types, kwarg_types)
        else:
            out = super().run_node(n)
        if n.op != "output" and isinstance(out, Proxy):
            self.node_map[out] = n
            out.node.meta = n.meta
            out.node.type = n.type
        return out

    def call_function(self, target, args, kwargs, arg_types=None, kwarg_types=None):
        pair = normalize_function(target, args, kwargs, arg_types, kwarg_types, self.normalize_to_only_use_kwargs)
        return super().call_function(target, *(pair or (args, kwargs)))

    def call_module(self, target, args, kwargs):
        pair = normalize_module(self.module, target, args, kwargs, self.normalize_to_only_use_kwargs)
        return super().call_module(target, *(pair or (args, kwargs)))


class NormalizeOperators(AnnotateTypesWithSchema):
    """NormalizeOperators(gm).transform(): operator.add for torch.add of two arguments, and so on; annotates as its base
    class does. Calls with further arguments (alpha, out, rounding_mode) stay."""

    binary_magic_method_remap = {
        torch.add: operator.add,
        torch.mul: operator.mul,
        torch.sub: operator.sub,
        torch.div: operator.truediv,
        torch.floor_divide: operator.floordiv,
        torch.remainder: operator.mod,
        torch.eq: operator.eq,
        torch.ne: operator.ne,
        torch.lt: operator.lt,
        torch.le: operator.le,
        torch.gt: operator.gt,
        torch.ge: operator.ge,
    }

    def call_function(self, target, args, kwargs):
        # torch.fx drops kwargs here: torch.add(x, y, alpha=2) would become x + y.
        if len(args) == 2 and not kwargs:
            target = self.binary_magic_method_remap.get(target, target)
        return super().call_function(target, args, kwargs)
