"""Tracer: from a module or function to a graph."""

import collections
import functools
import math
import os
import threading
import types
from itertools import chain

import torch
import torch.fx._symbolic_trace as torch_tracing

from .. import _C
from .._C import map_aggregate
from . import _args
from ._factories import RANDOM_FACTORIES, advise, patch_factories, unbound_method
from ._known import Knowledge, known_values
from ._patch import Patcher
from ._paths import CONSTANT_TYPES, constant_prefix, lookup, module_paths, paths_of
from ._wrap import _wrapped_fns_to_patch, _wrapped_methods_to_patch  # programs put functions and methods there themselves
from ._wrap import is_always_leaf, is_wrapped, patch_globals, patch_methods, patch_wrapped_functions, wrap
from .graph import Graph
from .graph_module import GraphModule
from .proxy import ParameterProxy, Proxy, Scope, TracerBase

__all__ = [
    "PH",
    "ProxyableClassMeta",
    "Tracer",
    "is_always_leaf",
    "is_fx_symbolic_tracing",
    "is_fx_tracing",
    "is_wrapped",
    "symbolic_trace",
    "wrap",
]

# What a trace replaces is every thread's: one traces at a time, and the others get what was there before.
_tracing = threading.RLock()
os.register_at_fork(after_in_child=_tracing._at_fork_reinit)
_module_call = torch.nn.Module.__call__
_module_getattr = torch.nn.Module.__getattr__
_proxyable_classes = {}

PHBase, PHWithMeta, PH = torch_tracing.PHBase, torch_tracing.PHWithMeta, torch_tracing.PH


def is_fx_tracing():
    """Whether a trace is going on, ours or torch.fx's: the flag is torch.fx's."""
    return torch_tracing._is_fx_tracing_flag


def is_fx_symbolic_tracing():
    return torch_tracing._is_fx_tracing_flag and not torch.compiler.is_compiling()


class ProxyableClassMeta(type):
    """Metaclass of classes whose construction from proxies is recorded as a call of the class."""

    def __init__(cls, name, bases, attrs):
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args, **kwargs):
        instance = cls.__new__(cls)
        found = []
        if is_fx_tracing():
            map_aggregate((args, kwargs), lambda a: found.append(a) if isinstance(a, Proxy) else None)
        if found:
            return found[0].tracer.create_proxy("call_function", cls, args, kwargs)
        cls.__init__(instance, *args, **kwargs)
        return instance


class Tracer(TracerBase):
    """Tracer(autowrap_modules=(math,), autowrap_functions=(), param_shapes_constant=False)

    Traces a module or function into a Graph. Each step may be overridden: trace, create_args_for_root, call_module,
    is_leaf_module, is_leaf_function, getattr, path_of_module, create_proxy, create_arg, create_node, proxy, and
    to_bool, iter, keys for what proxies do in control flow.
    """

    def __init__(self, autowrap_modules=(math,), autowrap_functions=(), param_shapes_constant=False):
        super().__init__()
        self._autowrap_function_ids = {
            id(value)
            for name, value in chain.from_iterable(m.__dict__.items() for m in autowrap_modules)
            if not name.startswith("_") and callable(value)
        }
        self._autowrap_function_ids.update(id(f) for f in autowrap_functions)
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.num_calls = {}
        self._qualname_counter = collections.defaultdict(int)
        self.guards = []
        self._paths_root = None

    # ---- values ----

    def get_fresh_qualname(self, prefix):
        """A name that starts with `prefix` and that the root has no attribute of."""
        if not hasattr(self.root, f"{prefix}0"):
            self._qualname_counter[prefix] = 0
            return f"{prefix}0"
        i = self._qualname_counter[prefix]
        while hasattr(self.root, f"{prefix}{i}"):
            i += 1
        self._qualname_counter[prefix] = i + 1
        return f"{prefix}{i}"

    def _path_of_value(self, value, kind):
        """Path of a parameter, buffer or module of the root by identity; None if it has none."""
        for _ in range(2):
            if self._paths_root is not self.root:
                self._paths_root = self.root
                self._paths = paths_of(self.root)
            path = self._paths[kind].get(id(value))
            if path is not None and lookup(self.root, path) is value:
                return path
            if kind == "buffer":  # most tensors are none: their search must not build the map again
                return None
            self._paths_root = None  # the tree may have grown meanwhile
        return None

    def _create_arg_other(self, a):
        if isinstance(a, torch.nn.Parameter):
            path = self._path_of_value(a, "parameter")
            if path is None:
                raise NameError(
                    f"parameter is not a member of this module: shape {tuple(a.shape)}, {a.dtype}, of no module in the "
                    f"tree of {type(self.root).__name__}"
                )
            return self.create_node("get_attr", path, (), {})
        if isinstance(a, torch.Tensor):
            path = self._path_of_value(a, "buffer")
            if path is not None:
                return self.create_node("get_attr", path, (), {})
        elif isinstance(a, torch.nn.Module):
            path = self._path_of_value(a, "module")
            if path is not None:
                return self.create_node("get_attr", path, (), {})
        elif isinstance(a, tuple) and hasattr(a, "_fields"):
            items = tuple(self.create_arg(item) for item in a)
            return self.create_node("call_function", a.__class__, items, {})
        if isinstance(a, CONSTANT_TYPES) or torch_tracing.is_opaque_reference_type(type(a)):
            path = self.tensor_attrs.get(a)
            if not path:
                path = self.get_fresh_qualname(constant_prefix(a))
                self.tensor_attrs[a] = path
                setattr(self.root, path, a)
            return self.create_node("get_attr", path, (), {})
        if type(a) in _proxyable_classes:
            path = self.get_fresh_qualname(f"_{a.__class__.__name__}_constant_")
            setattr(self.root, path, a)
            return self.create_node("get_attr", path, (), {})
        return super()._create_arg_other(a)

    # ---- modules ----

    def is_leaf_module(self, m, module_qualified_name):
        """Whether a call of the module is one node: by default if its class is torch.nn's and not Sequential."""
        return _C.is_leaf_module(m)

    def path_of_module(self, mod):
        """The first qualified name under which the root's tree has the module."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
        else:
            path = next((n for n, m in self.root.named_modules() if m is mod), None)
        if path is None:
            raise NameError(
                f"module is not installed as a submodule: a {type(mod).__qualname__} that the tree of "
                f"{type(self.root).__name__} does not contain"
            )
        return path

    def call_module(self, m, forward, args, kwargs):
        """A call of a module: one node for a leaf, else what `forward(*args, **kwargs)` records."""
        return _C.base_call_module(self, m, forward, args, kwargs)

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        """An attribute of a module is read while tracing: parameters become proxies, one for all reads."""
        if isinstance(attr_val, torch.nn.Module):  # mostly; asking for a Parameter is slow
            return attr_val
        if isinstance(attr_val, torch.nn.Parameter):
            path = self._path_of_value(attr_val, "parameter")
        elif self.proxy_buffer_attributes and isinstance(attr_val, torch.Tensor):
            path = self._path_of_value(attr_val, "buffer")
        else:
            return attr_val
        if path is None:
            return attr_val
        if path not in parameter_proxy_cache:
            kwargs = {}
            if self.param_shapes_constant and isinstance(attr_val, torch.nn.Parameter):
                kwargs["proxy_factory_fn"] = lambda node: ParameterProxy(self, node, path, attr_val)
            parameter_proxy_cache[path] = self.create_proxy("get_attr", path, (), {}, **kwargs)
        return parameter_proxy_cache[path]

    # ---- the trace ----

    def create_args_for_root(self, root_fn, is_module, concrete_args=None):
        """Placeholders for the parameters of the root's function. Returns the function to call, and its arguments."""
        return _args.create_args_for_root(self, root_fn, is_module, concrete_args)

    def _proxy_placeholder(self, name, concrete_args, sig, fn_for_analysis):
        return _args.proxy_placeholder(self, name, concrete_args, sig, fn_for_analysis)

    def trace(self, root, concrete_args=None, example_inputs=None):
        """The graph of `root`, a module or a Python function.

        concrete_args: fixes arguments: a dict from names, or a tuple of all of them; PH in it stands for what remains
        an input
        example_inputs: a tuple of arguments of the root's function, or a dict from their names. With them the tracer
        knows shapes, dtypes and devices, so that branches, loops, len() and unpacking that rest on them trace; data is
        not read. In-place operators and random factories are recorded as such then, and a warning names the line that
        computes in a mode (no_grad, autocast) that the graph does not say. What was decided is in `graph.guards` (and `tracer.guards`): conditions on the inputs, in order, under
        which the graph is the program.

        A program that calls a method through its class, torch.Tensor.flatten(x), is run once more for each such method.

        Errors: TraceError where control flow rests on what is not known, with node and source line.
        """
        with _tracing:
            return self._trace_alone(root, concrete_args, example_inputs)

    def _trace_alone(self, root, concrete_args, example_inputs):
        flag, torch_tracing._is_fx_tracing_flag = torch_tracing._is_fx_tracing_flag, True
        methods, calls, modules = [], dict(self.num_calls), list(self.module_stack.items())
        try:
            while True:
                try:
                    return self._trace(root, concrete_args, example_inputs, methods)
                except TypeError as e:
                    name = unbound_method(e)
                    if name is None or name in methods:
                        advise(e)
                        raise
                    # The method of the class checks its argument before any hook of the Proxy's: it has to be replaced
                    # for the trace. All of them would double the time of a small trace.
                    methods.append(name)
                    self.num_calls = dict(calls)
                    self.module_stack.clear()
                    self.module_stack.update(modules)
        finally:
            torch_tracing._is_fx_tracing_flag = flag
            self.__dict__.pop("proxy", None)

    def _trace(self, root, concrete_args, example_inputs, methods):
        self.knowledge = None if example_inputs is None else Knowledge(self)
        if self.knowledge is not None and type(self).proxy is TracerBase.proxy:
            self.proxy = self.knowledge.proxy_of_a_mode
        is_module = isinstance(root, torch.nn.Module)
        if is_module:
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(
                    f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}"
                )
            fn = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = module_paths(root)
        else:
            self.root = torch.nn.Module()
            fn = root
        self._paths_root = None
        self.graph = Graph(tracer_cls=type(self))
        if code := getattr(fn, "__code__", None):
            fields = ("co_name", "co_filename", "co_firstlineno")
            self.graph._co_fields = {field: getattr(code, field) for field in fields}
        self.tensor_attrs = {}
        _C.add_tensor_attributes(self.root, "", self.tensor_attrs)
        if not isinstance(fn, types.FunctionType):
            raise _RootError(f"Expected FunctionType, got {type(fn)}: only functions written in Python can be traced")
        fn_globals = fn.__globals__
        self._examples = _args.bind_examples(fn, is_module, example_inputs)
        fn, args = self.create_args_for_root(fn, is_module, concrete_args)
        with Patcher() as patcher, known_values(self):
            self._patch_modules(patcher)
            patch_wrapped_functions(patcher)
            patch_methods(patcher, torch.Tensor, methods)
            patch_factories(patcher, torch.__dict__)
            for scope in (fn_globals, *(m.__dict__ for m in self._autowrap_search)):
                patch_globals(patcher, scope, self._autowrap_function_ids)
            returned = _args.annotations(fn).get("return")
            self.create_node("output", "output", (self.create_arg(fn(*args)),), {}, type_expr=returned)
        self.submodule_paths = None
        self.guards = self.knowledge.described_guards() if self.knowledge is not None else []
        self.graph.guards = self.guards
        return self.graph

    def _call_without_proxies(self, function, args, kwargs):
        """A torch function is called in a trace with example inputs, without any proxy among its arguments."""
        if function in RANDOM_FACTORIES:  # torch.fx keeps the numbers of the trace
            return self.create_proxy("call_function", function, args, kwargs)
        return function(*args, **kwargs)

    def _may_evaluate(self, node):
        """Whether the node's callee may be run on tensors without data, to learn about its result."""
        return True

    def to_bool(self, obj):
        """Called where control flow asks for the bool of a proxy: known of shapes and the like with example inputs."""
        return super().to_bool(obj) if self.knowledge is None else self.knowledge.to_bool(obj)

    def iter(self, obj):
        """Called where a proxy is iterated over: known with example inputs."""
        items = None if self.knowledge is None else self.knowledge.items(obj)
        return super().iter(obj) if items is None else iter(items)

    def keys(self, obj):
        """Called where ** is applied to a proxy."""
        keys = None if self.knowledge is None else self.knowledge.keys(obj)
        return super().keys(obj) if keys is None else keys

    def _is_evaluating(self):
        return self.knowledge is not None and self.knowledge.values.evaluating

    def _patch_modules(self, patcher):
        cache = {}
        evaluates, thread = self.knowledge is not None, threading.get_ident()
        # The class's getattr gives a submodule back as it is, and that is what is read nearly always.
        plain = not evaluates and type(self).getattr is Tracer.getattr and "getattr" not in self.__dict__

        @functools.wraps(_module_getattr)
        def module_getattr(mod, attr):
            if plain and (children := mod.__dict__.get("_modules")) and (child := children.get(attr)) is not None:
                return child
            value = _module_getattr(mod, attr)
            return value if self._is_evaluating() or threading.get_ident() != thread else self.getattr(attr, value, cache)

        @functools.wraps(_module_call)
        def module_call(mod, *args, **kwargs):
            if (evaluates and self._is_evaluating()) or threading.get_ident() != thread:
                return _module_call(mod, *args, **kwargs)

            scope = _C.forward_globals(mod)
            if scope is not None and id(scope) not in patcher.visited:
                patch_globals(patcher, scope, self._autowrap_function_ids)
            return _C.call_module(self, mod, types.MethodType(_module_call, mod), args, kwargs)

        # Traces may be nested: each replaces what the outer one has put there.
        patcher.replace_method(torch.nn.Module, "__getattr__", module_getattr, once=False)
        patcher.replace_method(torch.nn.Module, "__call__", module_call, once=False)


_C.configure_modules(torch.nn.Module, torch.nn.Sequential, CONSTANT_TYPES, Tracer)


class _RootError(AssertionError, TypeError):
    """torch.fx asserts; a wrong type it is."""


def symbolic_trace(root, concrete_args=None, example_inputs=None):
    """A GraphModule of what `root`, a module or a Python function, does. See Tracer.trace."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args, example_inputs)
    name = type(root).__name__ if isinstance(root, torch.nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


@wrap
def _assert_is_none(value, msg):
    if value is not None:
        raise AssertionError(msg)
