"""The tracer of fxjit.compile: what a graph could not say raises, instead of passing silently."""

from __future__ import annotations

import sys

import torch
from torch.utils import _pytree as pytree

from . import fx
from .callees import has_hooks, is_pure_body, is_torch_function
from .fx._factories import RANDOM_FACTORIES
from .fx._known import ITEM_FUNCTIONS
from .fx._paths import lookup
from .fx._values import METADATA
from .proxies import CaptureError, NumberAware

_DATA_READS = frozenset("item tolist numpy __bool__ __int__ __float__ __index__ __complex__ __format__ __contains__ is_nonzero "
                        "equal allclose".split())
_OPERATORS = frozenset(f"__{r}{name}__" for r in ("", "r", "i") for name in
                       "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift div".split())
_OPERATORS |= set("__neg__ __pos__ __invert__ __abs__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__".split())
_TENSOR = torch.tensor  # while a trace runs, torch has others under the names of its factories


def holders(value):
    """(references to the tensor, those to its memory)"""
    return sys.getrefcount(value), torch._C._storage_Use_Count(value.untyped_storage()._cdata)


class CheckedTracer(NumberAware, fx.Tracer):
    proxy_buffer_attributes = True

    def __init__(self, number_types):
        super().__init__()
        self.number_types, self.numbers = number_types, {}  # by name of the placeholder; by node
        self.renewed: list[torch.Tensor] = []  # the program makes them, and the graph copies of them

    def proxy(self, node):
        if node.op == "placeholder" and node.target in self.number_types:
            self.numbers[node] = self.number_types[node.target]
        return super().proxy(node)

    def tensor_proxy(self, node):
        return self.knowledge.proxy(node)

    def is_leaf_module(self, m, qualified_name):
        # What hooks and an instance's own forward do is not in the class's forward.
        if has_hooks(m) or "forward" in m.__dict__:
            return True
        return super().is_leaf_module(m, qualified_name)

    def call_module(self, m, forward, args, kwargs):
        if m not in self.submodule_paths and not has_hooks(m) and "forward" not in m.__dict__:
            return forward(*args, **kwargs)  # made by the program, or a global's: the root has no name for it
        return super().call_module(m, forward, args, kwargs)

    def _call_without_proxies(self, function, args, kwargs):
        """A torch function meets only constants, and tensors that are no arguments: what depends on the state of such a
        tensor, or on the random state, is part of the program, and so is the making of a tensor."""
        name = getattr(function, "__name__", "")
        if name in METADATA:
            return function(*args, **kwargs)
        tensors = any(type(x) in (torch.Tensor, torch.nn.Parameter) for x in pytree.tree_leaves((args, kwargs)))
        if not tensors and function not in RANDOM_FACTORIES:
            value = function(*args, **kwargs)
            if not any(isinstance(x, torch.Tensor) for x in pytree.tree_leaves(value)):
                return value
            if function is _TENSOR and not value.requires_grad:  # its data is a constant, the tensor is not
                self.renewed.append(value)
                return self.create_proxy("call_method", "clone", (value,), {})
            return self.create_proxy("call_function", function, args, kwargs)
        if name in _DATA_READS:
            raise CaptureError(f"{name} reads the data of a tensor that is no argument")
        if function in ITEM_FUNCTIONS:
            return self.create_proxy("call_function", ITEM_FUNCTIONS[function], args, kwargs)
        if name.startswith("__") and name not in _OPERATORS:
            return function(*args, **kwargs)
        if torch.overrides.is_tensor_method_or_property(function):
            return self.create_proxy("call_method", name, args, kwargs)
        return self.create_proxy("call_function", function, args, kwargs)

    def check_constants(self):
        """After the trace: a tensor of the graph that nothing else holds, and no view of such a one, was made by the
        program in a way that no torch function shows (torch.Tensor([1, 2]), an extension). It would be another one at the
        next call."""
        renewed, alone = {id(t) for t in self.renewed}, self._holders_of_nothing()
        for path in list(self.tensor_attrs.values()):
            value = getattr(self.root, path, None) if path.startswith("_tensor_constant") else None
            if type(value) is torch.Tensor and id(value) not in renewed and holders(value) == alone:
                raise CaptureError(f"the program makes a tensor that the trace does not see being made: {value}; "
                                   "torch.tensor and the factories are seen")

    def _holders_of_nothing(self):
        """Of a constant that only the trace holds."""
        path = "_tensor_constant_probe"
        setattr(self.root, path, torch.empty(1))
        self.tensor_attrs[getattr(self.root, path)] = path
        value = getattr(self.root, path)
        found = holders(value)
        del self.tensor_attrs[value]
        delattr(self.root, path)
        return found

    def _may_evaluate(self, node):
        # Python code of the user's may have effects: it runs once a call, and not while shapes are looked for.
        if node.op == "call_module":
            m = lookup(self.root, node.target)
            return type(m).__module__.startswith(("torch.nn.", "torch.ao.nn.")) and not has_hooks(m)
        return node.op != "call_function" or is_torch_function(node.target) or is_pure_body(node.target)
