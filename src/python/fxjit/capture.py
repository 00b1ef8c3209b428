"""The checked FX trace: a graph of what a callable does, with everything that the trace rested on.

`fxjit.fx.Tracer` records what torch.fx records, silent wrong results included. What is here does not: whatever a Proxy
cannot stand for raises `CaptureError` with the reason, and what was read is guarded. The caller then runs eagerly.
"""

from __future__ import annotations

import builtins
import contextlib
import dis
import functools
import os
import random
import sys
import sysconfig
import types

import torch
from torch.utils import _pytree as pytree

from . import _C, fx

CONSTANT_TYPES = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.layout,
                  torch.memory_format, type(Ellipsis))


class CaptureError(Exception):
    """The program cannot be captured as a graph; the text says why."""


def is_plain_tensor(x) -> bool:
    return type(x) is torch.Tensor or type(x) is torch.nn.Parameter


def constant_key(value):
    """Equal keys mean interchangeable constants: 1, True and 1.0 differ, so do 0.0 and -0.0; a NaN equals itself."""
    if isinstance(value, float):
        return (float, value.hex())
    if isinstance(value, complex):
        return (complex, value.real.hex(), value.imag.hex())
    return (type(value), value)


# ---- proxies that do what tensors do, or raise ----

_type_tests: list = []  # not empty while isinstance() runs on behalf of traced user code
_IN_PLACE = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()


class CheckedProxy(fx.Proxy):
    """A Proxy that passes for a tensor in type tests and keeps in-place operators in place."""

    @property
    def __class__(self):
        # Only while user code runs isinstance(): torch's argument parsers ask too, and would unpack a tensor.
        return torch.Tensor if _type_tests else CheckedProxy

    def __getattr__(self, name):
        if name.startswith("__") or not hasattr(torch.Tensor, name):
            raise AttributeError(f"'Tensor' object has no attribute '{name}'")
        return super().__getattr__(name)

    def __setitem__(self, index, value):
        import operator
        self.tracer.create_proxy("call_function", operator.setitem, (self, index, value), {})

    def __len__(self):
        raise CaptureError(f"len() of the traced value '{self.node.name}' was asked for")


def _add_in_place_operators():
    import operator
    for name in _IN_PLACE:
        function = getattr(operator, "i" + name)

        def method(self, other, function=function):
            return self.tracer.create_proxy("call_function", function, (self, other), {})
        setattr(CheckedProxy, f"__i{name}__", method)


_add_in_place_operators()


def has_hooks(module: torch.nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks or module._backward_hooks
                or getattr(module, "_backward_pre_hooks", None))


class CheckedTracer(fx.Tracer):
    def __init__(self):
        super().__init__()
        self.modules: list[torch.nn.Module] = []

    def proxy(self, node):
        return CheckedProxy(node, self)

    def is_leaf_module(self, m, qualified_name):
        # What hooks and an instance's own forward do is not in the class's forward.
        if has_hooks(m) or "forward" in m.__dict__:
            return True
        return super().is_leaf_module(m, qualified_name)

    def call_module(self, m, forward, args, kwargs):
        self.modules.append(m)
        return super().call_module(m, forward, args, kwargs)


# ---- what user code does while it is traced ----

_IMPURE_BUILTINS = {print, input, open, builtins.exec, builtins.eval, builtins.setattr, builtins.delattr}
_IMPURE_MODULES = {"time", "posix", "_random", "_io"}
_CONTEXT_SWITCHES = {"_set_grad_enabled", "set_autocast_enabled", "set_autocast_cpu_enabled", "set_autocast_gpu_enabled",
                     "set_autocast_dtype", "_enter_dual_level", "set_default_dtype", "_set_default_dtype",
                     "use_deterministic_algorithms", "_set_deterministic_algorithms", "set_num_threads"}
_WRITES = {"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF", "DELETE_DEREF"}


_LIBRARY_FOLDERS = tuple(os.path.join(folder, "") for folder in (
    sysconfig.get_paths()["stdlib"], os.path.dirname(torch.__file__), os.path.dirname(os.path.abspath(__file__)),
    os.path.dirname(os.path.realpath(__file__))))


@functools.cache
def _is_library(code: types.CodeType) -> bool:
    """Whether the code is torch's, ours or the standard library's: it runs on behalf of who called it."""
    file = code.co_filename
    if "site-packages" in file and not file.startswith(_LIBRARY_FOLDERS[1:]):
        return False
    return file.startswith(_LIBRARY_FOLDERS) or file.startswith(("<frozen", "/fxjit/"))


class CodeWatcher:
    """Follows the Python and C functions that run during a trace: user functions are collected for guards; what a graph
    could not repeat raises before it happens."""

    def __init__(self):
        self.functions: dict[types.CodeType, dict] = {}
        self._context = None

    def __enter__(self):
        self._previous = sys.getprofile()
        sys.setprofile(self._event)
        return self

    def __exit__(self, *_):
        sys.setprofile(self._previous)
        _type_tests.clear()

    def _event(self, frame, event, arg):
        if event == "c_call":
            if arg is isinstance and not _is_library(frame.f_code):
                _type_tests.append(frame)
            else:
                self._c_call(arg, frame)
        elif event in ("c_return", "c_exception") and arg is isinstance:
            _type_tests.clear()
        elif event == "call" and frame.f_code not in self.functions and not _is_library(frame.f_code):
            self.functions[frame.f_code] = frame.f_globals
            check_code(frame.f_code)

    def _c_call(self, function, frame):
        if function.__name__ in _CONTEXT_SWITCHES and not _is_library(frame.f_code):
            raise CaptureError(f"{function.__name__} changes how later operations run; a graph does not record that")
        if function.__name__ == "_set_grad_enabled" and self._user_context(frame):
            raise CaptureError("a grad-mode context is entered inside the function; a graph does not record that")
        if _is_library(frame.f_code):
            return
        if function in _IMPURE_BUILTINS or getattr(function, "__module__", None) in _IMPURE_MODULES:
            raise CaptureError(f"{function.__name__}() has an effect or a result that a graph cannot repeat "
                               f"({frame.f_code.co_filename}:{frame.f_lineno})")

    @staticmethod
    def _user_context(frame):
        # no_grad().__enter__ is torch's own Python code: what counts is who entered it.
        while frame is not None and _is_library(frame.f_code):
            if frame.f_code.co_name in ("__torch_function__", "_call_impl"):
                return False
            frame = frame.f_back
        return frame is not None


def check_code(code: types.CodeType):
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            raise CaptureError(f"{code.co_name} assigns the global '{instruction.argval}'")
        if instruction.opname in ("STORE_DEREF", "DELETE_DEREF") and instruction.argval in code.co_freevars:
            raise CaptureError(f"{code.co_name} assigns '{instruction.argval}' of an enclosing function")


@contextlib.contextmanager
def unsampled_randomness_raises():
    torch_state, python_state = torch.get_rng_state(), random.getstate()
    yield
    if random.getstate() != python_state:
        random.setstate(python_state)
        raise CaptureError("Python's random numbers were drawn while tracing")
    if not torch.equal(torch.get_rng_state(), torch_state):
        torch.set_rng_state(torch_state)
        raise CaptureError("random tensors were made while tracing: a graph would repeat the same numbers")


# ---- guards on what was read ----

_NO_VALUE = object()


class DictGuard:
    """Named entries of a dict, by identity or simple value."""

    def __init__(self, owner: dict, keys, label: str, presence_only: bool = False):
        self.owner, self.label, self.presence_only = owner, label, presence_only
        self.entries = {k: owner.get(k, _NO_VALUE) for k in keys}

    def changed(self):
        """The name of the first entry that differs, or None."""
        for k, old in self.entries.items():
            new = self.owner.get(k, _NO_VALUE)
            if new is old or (type(new) is type(old) and isinstance(new, CONSTANT_TYPES)
                              and constant_key(new) == constant_key(old)):
                continue
            if self.presence_only and is_plain_tensor(new) and is_plain_tensor(old):
                continue
            return f"{self.label}[{k!r}]" if self.label else str(k)
        return None


class ModuleGuard:
    """All entries of a module's dicts; parameters and buffers may be replaced by others: they are inputs."""

    def __init__(self, module: torch.nn.Module, path: str):
        self.parts = [DictGuard(module.__dict__, list(module.__dict__), path or "module")]
        self.tables = [(module.__dict__, len(module.__dict__))]
        for table in ("_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks"):
            d = module.__dict__.get(table)
            if isinstance(d, dict):
                self.parts.append(DictGuard(d, list(d), f"{path}.{table}", presence_only=table in ("_parameters", "_buffers")))
                self.tables.append((d, len(d)))

    def changed(self):
        for d, size in self.tables:
            if len(d) != size:
                return "the attributes of a module"
        return next(filter(None, (p.changed() for p in self.parts)), None)

    def dicts(self):
        return [d for d, _ in self.tables]


class CellGuard:
    def __init__(self, cell, name):
        self.cell, self.name = cell, name
        self.old = self._value()

    def _value(self):
        try:
            return self.cell.cell_contents
        except ValueError:
            return _NO_VALUE

    def changed(self):
        new = self._value()
        same = new is self.old or (type(new) is type(self.old) and isinstance(new, CONSTANT_TYPES)
                                   and constant_key(new) == constant_key(self.old))
        return None if same else f"the closure variable '{self.name}'"


def _global_guards(functions):
    for code, globals_ in functions.items():
        names = [n for n in code.co_names if n in globals_]
        if names:
            yield DictGuard(globals_, names, f"globals of {code.co_name}")


def closure_guards(function):
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    return [CellGuard(c, n) for n, c in zip(code.co_freevars, cells)] if code and cells else []


class Capture:
    """A captured program.

    root: the module whose attributes the graph reads; graph: one placeholder per tensor leaf of the arguments, in order
    guards: objects with changed() -> str | None; dicts: the dicts to watch, in which every guarded entry lives, but for
    closure cells, which are in `cells`
    """

    def __init__(self, root, graph, guards, dicts, cells, way):
        self.root, self.graph, self.way = root, graph, way
        self.guards, self.dicts, self.cells = guards, dicts, cells
        self._generic = None

    def generic(self, values):
        """Runs the generic form of forward on one value per placeholder."""
        if self._generic is None:
            self._generic = _C.GenericForward(self.graph)
        return self._generic(self.root, values)

    def code(self):
        return _C.generic_code(self.graph)

    def changed(self):
        return next(filter(None, (g.changed() for g in self.guards)), None)


def _flat_root(target, spec, leaves):
    """A module whose forward takes the tensor leaves and calls `target` with the whole arguments."""
    names, tensors = [], [i for i, leaf in enumerate(leaves) if is_plain_tensor(leaf)]
    names = [f"arg_{k}" for k in range(len(tensors))]
    constants = [None if is_plain_tensor(leaf) else leaf for leaf in leaves]

    class Root(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.target = target

    def call(self, *values):
        filled = list(constants)
        for i, v in zip(tensors, values):
            filled[i] = v
        args, kwargs = pytree.tree_unflatten(filled, spec)
        return self.target(*args, **kwargs)

    scope = {"call": call}
    exec(compile(f"def forward(self, {', '.join(names)}): return call(self, {', '.join(names)})", "/fxjit/root", "exec"),
         scope)
    Root.forward = scope["forward"]
    return Root()


def check_root(target):
    if isinstance(target, torch.nn.Module):
        if "forward" in target.__dict__:
            raise CaptureError("the module has a forward of its own (set on the instance)")
        if has_hooks(target):
            raise CaptureError("the module has hooks")


def capture(target, spec, leaves) -> Capture:
    """Traces `target` (module or function) for these flattened arguments. Raises CaptureError with the reason."""
    check_root(target)
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor) and not is_plain_tensor(leaf):
            raise CaptureError(f"an argument is of the tensor subclass {type(leaf).__name__}")
        if not isinstance(leaf, torch.Tensor) and not isinstance(leaf, CONSTANT_TYPES):
            raise CaptureError(f"an argument is of type {type(leaf).__name__}")
    root, tracer, watcher = _flat_root(target, spec, leaves), CheckedTracer(), CodeWatcher()
    modules = dict(target.named_modules()) if isinstance(target, torch.nn.Module) else {}
    before = [ModuleGuard(m, path) for path, m in modules.items()]
    closures = closure_guards(target)
    contents = _container_contents(target, closures)
    try:
        with unsampled_randomness_raises(), watcher:
            graph = tracer.trace(root)
    except CaptureError:
        _restore(before)
        raise
    except Exception as e:  # noqa: BLE001 - whatever a Proxy made the program do, eager decides what is right
        _restore(before)
        raise CaptureError(f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}") from e
    if what := next(filter(None, (g.changed() for g in before)), None):
        _restore(before)
        raise CaptureError(f"the program writes {what}")
    if what := _changed_container(contents):
        raise CaptureError(f"the program changes {what}")
    inline_composites(graph)
    guards = before + closures + list(_global_guards(watcher.functions))
    dicts = [d for g in before for d in g.dicts()] + [g.owner for g in guards if isinstance(g, DictGuard)]
    return Capture(root, graph, guards, dicts, closures, "checked FX trace")


def _restore(guards):
    for g in guards:
        for part in g.parts:
            for k in [k for k in part.owner if k not in part.entries]:
                del part.owner[k]
            part.owner.update({k: v for k, v in part.entries.items() if v is not _NO_VALUE})


def _container_contents(target, closures):
    function = target if isinstance(target, types.FunctionType) else getattr(type(target), "forward", None)
    named = [(c.name, c.old) for c in closures]
    if isinstance(function, types.FunctionType):
        named += [(n, function.__globals__[n]) for n in function.__code__.co_names if n in function.__globals__]
    return [(n, v, v.copy()) for n, v in named if isinstance(v, (list, dict, set, bytearray))]


def _changed_container(contents):
    for name, container, old in contents:
        if len(container) != len(old) or any(a is not b for a, b in zip(container, old)):
            container.clear()
            container.extend(old) if isinstance(container, (list, bytearray)) else container.update(old)
            return f"'{name}'"
    return None


# ---- composites that were left as calls ----

def is_torch_function(function) -> bool:
    module = getattr(function, "__module__", None) or ""
    return (isinstance(function, (types.BuiltinFunctionType, types.MethodDescriptorType, torch._ops.OpOverload,
                                  torch._ops.OpOverloadPacket))
            or module.split(".")[0] in ("torch", "_operator", "math", "builtins"))


def is_pure_body(function) -> bool:
    """Whether a Python function does nothing but tensor operations on its arguments, as far as its code tells: no
    closure, no global but torch and its functions, no write."""
    if not isinstance(function, types.FunctionType) or function.__closure__:
        return False
    for instruction in dis.get_instructions(function.__code__):
        name = instruction.opname
        if name.startswith(("STORE_ATTR", "STORE_GLOBAL", "STORE_SUBSCR", "STORE_DEREF", "IMPORT_", "DELETE_", "YIELD")):
            return False
        if name in ("LOAD_GLOBAL", "LOAD_NAME"):
            value = function.__globals__.get(instruction.argval, getattr(builtins, instruction.argval, None))
            pure = value is torch or value is torch.nn.functional or (callable(value) and (
                is_torch_function(value) and value not in _IMPURE_BUILTINS
                or isinstance(value, types.FunctionType) and value is not function and is_pure_body(value)))
            if not pure:
                return False
    return True


def inline_composites(graph: fx.Graph):
    """Replaces calls of pure wrapped functions by what their bodies record; others stay calls."""
    changed = False
    again = True
    while again:
        again = False
        for node in graph.nodes:
            if node.op != "call_function" or is_torch_function(node.target) or not is_pure_body(node.target):
                continue
            if fx.is_always_leaf(node.target):
                continue
            tracer = fx.proxy.GraphAppendingTracer(graph)
            wrap = lambda n: CheckedProxy(n, tracer)  # noqa: E731
            with graph.inserting_before(node):
                try:
                    result = node.target(*fx.node.map_arg(node.args, wrap), **fx.node.map_arg(node.kwargs, wrap))
                except Exception:  # noqa: BLE001 - then it stays a call
                    continue
                if type(result) is not CheckedProxy:
                    continue
            node.replace_all_uses_with(result.node)
            graph.erase_node(node)
            changed = again = True
    if changed:
        graph.lint()
