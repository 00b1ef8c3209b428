"""Proxies and the part of tracers that knows no modules."""

import collections
import copy
import dataclasses
import enum

import torch
from torch.fx.proxy import TraceError

from .. import _C
from .._C import Attribute, Proxy
from . import _helpers
from ._frames import recorded_frames, user_frame

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "MetaProxy",
    "ParameterProxy",
    "Proxy",
    "Scope",
    "ScopeContextManager",
    "TraceError",
    "TracerBase",
    "assert_fn",
]

_CONSTANTS = (*torch.fx.node.base_types, enum.Enum, torch._ops.OpOverload, torch._ops.HigherOrderOperator)


class Scope:
    """The module whose forward runs: its path and class."""

    def __init__(self, module_path, module_type):
        self.module_path = module_path
        self.module_type = module_type


class ScopeContextManager:
    """Makes `current_scope` the content of `scope` until the end of the with statement."""

    def __init__(self, scope, current_scope):
        self._scope = scope
        self._previous = scope.module_path, scope.module_type
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type

    def __enter__(self):
        return self._scope

    def __exit__(self, *_):
        self._scope.module_path, self._scope.module_type = self._previous


class TracerBase(_C.TracerBase):
    """Turns operations on proxies into nodes: create_proxy lowers the arguments with create_arg, makes the node with
    create_node and wraps it with proxy. Each of them may be overridden."""

    record_stack_traces = False
    _record_forward_stack_traces_only = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"
    knowledge = None  # of a trace with example inputs: the values of its proxies

    def _create_arg_other(self, a):
        """create_arg for values that are neither proxies nor plain constants, tuples, lists, dicts or slices."""
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(item) for item in a]
            return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
        if isinstance(a, list):
            return [self.create_arg(item) for item in a]
        if isinstance(a, dict):
            return self.create_arg(dict(a))
        if isinstance(a, range):
            return range(*(self.create_arg(part) for part in (a.start, a.stop, a.step)))
        if isinstance(a, (torch._ops.OpOverload, torch._ops.HigherOrderOperator)):
            return a
        if torch.fx.proxy.is_opaque_value_type(type(a)):
            return a
        if dataclasses.is_dataclass(a):
            fields = {field.name: self.create_arg(getattr(a, field.name)) for field in dataclasses.fields(a)}
            return self.create_node("call_function", a.__class__, (), fields)
        if isinstance(a, _CONSTANTS):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def is_leaf_function(self, fn):
        """Whether a call of the wrapped function `fn` is recorded as one node. Where not, its body is traced through:
        it may return any structure of proxies."""
        return True

    def to_bool(self, obj):
        """Called where control flow asks for the bool of a proxy."""
        raise TraceError(
            "symbolically traced variables cannot be used as inputs to control flow"
            + _helpers.where(obj)
            + ". If the decision rests on shapes, dtypes or devices, give the tracer example inputs: trace(root, "
            "example_inputs=(...,)), or symbolic_trace(root, example_inputs=(...,))"
        )

    def iter(self, obj):
        """Called where a proxy is iterated over."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what "
            "types of control flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy "
            "iteration errors" + _helpers.where(obj)
        )

    def keys(self, obj):
        """Called where ** is applied to a proxy."""
        return Attribute(obj, "keys")()

    @property
    def node_name_to_scope(self):
        """Name of each node → (path, class) of the module in whose forward it was made."""
        names = dict(self.__dict__.get("_node_name_to_scope", ()))
        for node in self.graph.nodes:
            names.setdefault(node.name, _C.node_scope(node) or ("", None))
        return names

    @node_name_to_scope.setter
    def node_name_to_scope(self, names):
        self.__dict__["_node_name_to_scope"] = names

    def __deepcopy__(self, memo):
        new = type(self).__new__(type(self))
        memo[id(self)] = new
        own = [(name, getattr(self, name)) for name in ("graph", "module_stack") if hasattr(self, name)]
        for name, value in [*self.__dict__.items(), *own]:
            if name == "knowledge":  # of a trace that is over
                continue
            # Modules (as in `import math`) cannot be copied.
            setattr(new, name, copy.copy(value) if name == "_autowrap_search" else copy.deepcopy(value, memo))
        return new

    def _find_user_frame(self):
        return user_frame()

    def _filter_traceback_frames(self, user_stack_summary):
        """The frames worth recording; a class that overrides this has its traces made while it traces."""
        return recorded_frames(user_stack_summary, self._record_forward_stack_traces_only)


class GraphAppendingTracer(TracerBase):
    """Appends to a graph at its insert point; knows no modules."""

    def __init__(self, graph):
        super().__init__()
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()


def assert_fn(x):
    if not x:
        raise AssertionError("Assertion failed")


class MetaProxy(Proxy):
    """Keeps meta['val'] up to date while operations are recorded, with the values of a fake mode."""

    def __init__(self, node, tracer=None, fake_mode=None):
        super().__init__(node, tracer)
        self.fake_mode = fake_mode

    def __repr__(self):
        return f"MetaProxy({self.node.name})"

    @classmethod
    def __torch_function__(cls, orig_method, types, args=None, kwargs=None):
        args, kwargs = args or (), kwargs or {}
        meta_proxy = next((a for a in args if isinstance(a, MetaProxy)), None)
        if meta_proxy is None:
            raise AssertionError("No MetaProxy found in arguments, but one is expected.")
        proxy = super().__torch_function__(orig_method, types, args, kwargs)
        with meta_proxy.fake_mode:
            values = [a.node.meta["val"] if isinstance(a, Proxy) else a for a in args]
            proxy.node.meta["val"] = orig_method(*values, **kwargs)
        return MetaProxy(proxy.node, proxy.tracer, meta_proxy.fake_mode)


class ParameterProxy(Proxy):
    """A parameter whose shape is known while tracing."""

    def __init__(self, tracer, node, name, param):
        super().__init__(node, tracer)
        if not isinstance(param, torch.nn.Parameter):
            raise AssertionError(f"Expected Parameter, got {type(param)}")
        self.param = param
        self.name = name

    def __repr__(self):
        return f"ParameterProxy({self.name})"

    @property
    def shape(self):
        return self.param.shape

    @property
    def ndim(self):
        return self.param.ndim

    def size(self):
        return self.param.size()

    def dim(self):
        return self.param.dim()

    def numel(self):
        return self.param.numel()

    def nelement(self):
        return self.param.nelement()
