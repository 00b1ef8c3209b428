"""The checked FX trace: a graph of what a callable does, with everything that the trace rested on.

`fxjit.fx.Tracer` records what torch.fx records, silent wrong results included. What is here does not: whatever a Proxy
cannot stand for raises `CaptureError` with the reason, and what was read is guarded. The caller then runs eagerly.
"""

from __future__ import annotations

import builtins
import collections
import contextlib
import dis
import functools
import os
import random
import sys
import sysconfig
import types
import warnings

import torch
from torch.utils import _pytree as pytree

from . import _C, fx
from .fx._frames import is_library_file
from .fx._known import ITEM_FUNCTIONS, SHAPE_TEXT
from .fx._run import SnapshotInterpreter
from .fx._values import METADATA
from .proxies import CaptureError, CheckedProxy, NumberAware

CONSTANT_TYPES = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.layout,
                  torch.memory_format, type(Ellipsis))


def is_plain_tensor(x) -> bool:
    """A Tensor or Parameter that is no subclass and has sizes (a nested one has none)."""
    return (type(x) is torch.Tensor or type(x) is torch.nn.Parameter) and not x.is_nested


def constant_key(value):
    """Equal keys mean interchangeable constants: 1, True and 1.0 differ, so do 0.0 and -0.0; a NaN equals itself."""
    if isinstance(value, float):
        return (float, value.hex())
    if isinstance(value, complex):
        return (complex, value.real.hex(), value.imag.hex())
    return (type(value), value)


# ---- the tracer ----

def has_hooks(module: torch.nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks or module._backward_hooks
                or getattr(module, "_backward_pre_hooks", None))


_DATA_READS = frozenset("item tolist numpy __bool__ __int__ __float__ __index__ __complex__ __format__ __contains__ is_nonzero "
                        "equal allclose".split())
_OPERATORS = frozenset(f"__{r}{name}__" for r in ("", "r", "i") for name in
                       "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift div".split())
_OPERATORS |= set("__neg__ __pos__ __invert__ __abs__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__".split())
_RANDOM = frozenset(getattr(torch, n) for n in "rand randn randint randperm normal".split())


class CheckedTracer(NumberAware, fx.Tracer):
    proxy_buffer_attributes = True

    def __init__(self, number_types):
        super().__init__()
        self.modules: list[torch.nn.Module] = []
        self.number_types, self.numbers = number_types, {}  # by name of the placeholder; by node

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
        self.modules.append(m)
        return super().call_module(m, forward, args, kwargs)

    def _call_without_proxies(self, function, args, kwargs):
        """A torch function meets only constants, and tensors that are no arguments: what depends on the state of such a
        tensor, or on the random state, is part of the program."""
        name = getattr(function, "__name__", "")
        tensors = any(type(x) in (torch.Tensor, torch.nn.Parameter) for x in pytree.tree_leaves((args, kwargs)))
        if not tensors and function not in _RANDOM or name in METADATA:
            return function(*args, **kwargs)
        if name in _DATA_READS:
            raise CaptureError(f"{name} reads the data of a tensor that is no argument")
        if function in ITEM_FUNCTIONS:
            return self.create_proxy("call_function", ITEM_FUNCTIONS[function], args, kwargs)
        if name.startswith("__") and name not in _OPERATORS:
            return function(*args, **kwargs)
        if torch.overrides.is_tensor_method_or_property(function):
            return self.create_proxy("call_method", name, args, kwargs)
        return self.create_proxy("call_function", function, args, kwargs)

    def _may_evaluate(self, node):
        # Python code of the user's may have effects: it runs once a call, and not while shapes are looked for.
        if node.op == "call_module":
            m = fx._symbolic_trace.lookup(self.root, node.target)
            return type(m).__module__.startswith(("torch.nn.", "torch.ao.nn.")) and not has_hooks(m)
        return node.op != "call_function" or is_torch_function(node.target) or is_pure_body(node.target)


# ---- what user code does while it is traced ----

_IMPURE_BUILTINS = {print, input, open, builtins.exec, builtins.eval, builtins.setattr, builtins.delattr}
_IMPURE_MODULES = {"time", "posix", "_random", "_io"}
_CONTEXT_SWITCHES = {"_set_grad_enabled", "set_autocast_enabled", "set_autocast_cpu_enabled", "set_autocast_gpu_enabled",
                     "set_autocast_dtype", "_enter_dual_level", "set_default_dtype", "_set_default_dtype",
                     "use_deterministic_algorithms", "_set_deterministic_algorithms", "set_num_threads"}
_INFERENCE_MODE = torch.inference_mode.__enter__.__code__
_CONTEXT_READS = {"is_grad_enabled", "is_inference_mode_enabled", "is_autocast_enabled", "is_autocast_cpu_enabled"}


_STDLIB = os.path.join(sysconfig.get_paths()["stdlib"], "")


@functools.cache
def _is_library(code: types.CodeType) -> bool:
    """Whether the code is torch's, ours or the standard library's: it runs on behalf of who called it."""
    file = code.co_filename
    if is_library_file(file) or file.startswith("<frozen"):
        return True
    return file.startswith(_STDLIB) and "site-packages" not in file


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

    def _event(self, frame, event, arg):
        if event == "c_call":
            self._c_call(arg, frame)
        elif event == "call" and frame.f_code not in self.functions and not _is_library(frame.f_code):
            self.functions[frame.f_code] = frame.f_globals
            check_code(frame.f_code)

    def _c_call(self, function, frame):
        if function.__name__ in _CONTEXT_SWITCHES and self._user_context(frame):
            raise CaptureError(f"{function.__name__} changes how later operations run (a grad-mode or autocast context, a "
                               "default); a graph does not record that")
        if frame.f_code is _INFERENCE_MODE and self._user_context(frame):
            raise CaptureError("an inference-mode context is entered inside the function; a graph does not record that")
        if _is_library(frame.f_code):
            return
        if function.__name__ in _CONTEXT_READS:
            raise CaptureError(f"{function.__name__}() is asked for; a graph does not record that")
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
    instructions = list(dis.get_instructions(code))
    handlers = sum(i.opname == "PUSH_EXC_INFO" for i in instructions)
    if handlers > sum(i.opname == "WITH_EXCEPT_START" for i in instructions):
        raise CaptureError(f"{code.co_name} catches exceptions, which a graph does not do")
    for instruction in instructions:
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


_OPAQUE_TYPES = (torch.Tensor, torch.nn.Module, type, types.FunctionType, types.BuiltinFunctionType, types.MethodType,
                 types.ModuleType, types.CodeType)
_STATE_LIMIT = 2000  # values that a guard follows; beyond that checking costs more than the program


class StateGuard:
    """What is inside containers and plain objects, however deep: lists, dicts, sets, instance attributes.

    dicts, lists: those of them that can be watched; `unwatched` is true if there is something else that may change.
    """

    def __init__(self, value, label: str):
        self.label, self.snapshots, self.dicts, self.lists, self.unwatched = label, [], [], [], False
        self._seen: set = set()
        self._follow(value)

    def _follow(self, value):
        if isinstance(value, CONSTANT_TYPES) or isinstance(value, _OPAQUE_TYPES) or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if len(self._seen) > _STATE_LIMIT:
            raise CaptureError(f"{self.label} holds more than {_STATE_LIMIT} values that would have to be guarded")
        if isinstance(value, (list, tuple, set, frozenset, collections.deque, bytearray)):
            if type(value) is list:
                self.lists.append(value)
            else:
                self.unwatched |= not isinstance(value, (tuple, frozenset))
            parts = tuple(value)
            if not isinstance(value, (tuple, frozenset)):
                self.snapshots.append((value, parts))
        else:
            held = value if isinstance(value, dict) else getattr(value, "__dict__", None)
            if not isinstance(held, dict) or (held is not value and _is_library_class(type(value))):
                return
            parts = tuple(held.values())
            self.snapshots.append((held, tuple(held.items())))
            self.dicts.append(held)
        for part in parts:
            self._follow(part)

    @staticmethod
    def _differs(container, old):
        new = tuple(container.items()) if isinstance(container, dict) else tuple(container)
        if len(new) != len(old):
            return True
        pairs = [(a, b) for (k, a), (q, b) in zip(new, old)] if isinstance(container, dict) else zip(new, old)
        return any(a is not b and not (type(a) is type(b) and isinstance(a, CONSTANT_TYPES)
                                       and constant_key(a) == constant_key(b)) for a, b in pairs) or (
            isinstance(container, dict) and [k for k, _ in new] != [k for k, _ in old])

    def changed(self):
        return self.label if any(self._differs(c, old) for c, old in self.snapshots) else None

    def restore(self):
        for container, old in self.snapshots:
            if self._differs(container, old):
                container.clear()
                container.update(old) if isinstance(container, (dict, set)) else container.extend(old)


def _is_library_class(cls) -> bool:
    return cls.__module__.split(".")[0] in ("torch", "builtins", "collections", "functools", "fxjit")


class FunctionGuard:
    """A function's code and defaults. They are compared when something else led to a check: no word tells of them."""

    def __init__(self, function):
        self.function, self.old = function, self._value(function)

    @staticmethod
    def _value(f):
        return (f.__code__, f.__defaults__, f.__kwdefaults__)

    def changed(self):
        same = all(a is b for a, b in zip(self._value(self.function), self.old))
        return None if same else f"the function {self.function.__name__}"


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


_MODULE_FIELDS = frozenset(torch.nn.Module().__dict__)


def module_state(module: torch.nn.Module, path: str):
    """Guards on what a user's module keeps in containers and objects."""
    if _is_library_class(type(module)):
        return []
    return [StateGuard(v, f"{path or 'module'}.{k}") for k, v in module.__dict__.items()
            if k not in _MODULE_FIELDS and not k.startswith("_forward_")]


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


_GLOBAL_HOOKS = [getattr(torch.nn.modules.module, n) for n in (
    "_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks", "_global_backward_pre_hooks")]


def _global_names(code):
    """Names that the code, or a function or comprehension inside it, looks up."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _global_names(constant)
    return names


def _global_guards(functions):
    for code, globals_ in functions.items():
        names = [n for n in _global_names(code) if n in globals_]
        if names:
            yield DictGuard(globals_, names, f"globals of {code.co_name}")
            for n in names:
                yield StateGuard(globals_[n], f"the global '{n}'")
                if isinstance(globals_[n], types.FunctionType):
                    yield FunctionGuard(globals_[n])


def target_state(target):
    """Guards on the callable itself: closure, defaults, bound object, partial arguments, globals of its own code."""
    guards, function = [], target
    if isinstance(target, torch.nn.Module):
        function = type(target).forward
    elif isinstance(target, functools.partial):
        guards += [StateGuard([target.args, target.keywords], "the arguments of a partial")]
        function = target.func
    elif isinstance(target, types.MethodType):
        guards += [StateGuard(target.__self__, "the object of a method")]
        function = target.__func__
    elif not isinstance(target, types.FunctionType):
        guards += [StateGuard(target, "the callable object")]
        function = type(target).__call__
    if isinstance(function, types.FunctionType):
        guards += [FunctionGuard(function), StateGuard([function.__defaults__, function.__kwdefaults__], "default arguments")]
        guards += closure_guards(function)
        guards += list(_global_guards({function.__code__: function.__globals__}))
        guards += [StateGuard(c.old, f"the closure variable '{c.name}'") for c in guards if isinstance(c, CellGuard)]
    return guards


def closure_guards(function):
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    return [CellGuard(c, n) for n, c in zip(code.co_freevars, cells)] if code and cells else []


class Capture:
    """A captured program.

    root: the module whose attributes the graph reads
    graph: one placeholder per value of the call; values: which of the flattened arguments these are, in the order of the
    placeholders; varying: those of them that are numbers. All others are constants of the graph.
    guards: objects with changed() -> str | None; dicts, cells, lists: what to watch, in which every guarded value lives,
    unless `unwatched` is true; conditions: guards on the tensors of a call (fxjit.fx), on which control flow rests
    """

    def __init__(self, root, graph, guards, dicts, way, conditions=(), *, values, varying):
        self.root, self.graph, self.way, self.guards, self.conditions = root, graph, way, guards, conditions
        self.values, self.varying = values, varying
        placeholders = [n for n in graph.nodes if n.op == "placeholder"]
        self.numbers = [n for n, i in zip(placeholders, values) if i in varying]
        states = [g for g in guards if isinstance(g, StateGuard)]
        self.dicts = dicts + [d for g in states for d in g.dicts]
        self.lists = [x for g in states for x in g.lists]
        self.cells = [g.cell for g in guards if isinstance(g, CellGuard)]
        self.unwatched = any(g.unwatched for g in states)
        self._generic = None

    def generic(self, values):
        """Runs the generic form of forward on one value per placeholder."""
        if self._generic is None:
            try:
                self._generic = _C.GenericForward(self.graph)
            except RuntimeError as e:  # a bug of ours: the interpreter runs the same graph
                warnings.warn(f"fxjit: the generic form cannot be made: {e}", RuntimeWarning, stacklevel=2)
                self._generic = lambda root, v: SnapshotInterpreter(root, self.graph).run(*v, enable_io_processing=False)
        return self._generic(self.root, values)

    def code(self):
        return _C.generic_code(self.graph)

    def changed(self):
        return next(filter(None, (g.changed() for g in self.guards)), None)

    def fits(self, tensors) -> bool:
        """Whether the graph is the program for these tensors."""
        return all(c.holds(tensors, self.root) for c in self.conditions)


def _flat_root(target, spec, leaves, values):
    """A module whose forward takes the leaves at `values` and calls `target` with the whole arguments."""
    names = [f"arg_{k}" for k in range(len(values))]
    constants = [None if i in values else leaf for i, leaf in enumerate(leaves)]

    class Root(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.target = target

    def call(self, *given):
        filled = list(constants)
        for i, v in zip(values, given):
            filled[i] = v
        args, kwargs = pytree.tree_unflatten(filled, spec)
        result = self.target(*args, **kwargs)
        now, structure = pytree.tree_flatten((args, kwargs))
        if structure != spec or any(a is not b for a, b in zip(now, filled)):
            raise CaptureError("the program changes a container among its arguments")
        return result

    scope = {"call": call}
    exec(compile(f"def forward(self, {', '.join(names)}): return call(self, {', '.join(names)})", "<fxjit root>", "exec"),
         scope)
    Root.forward = scope["forward"]
    return Root()


def check_root(target):
    if isinstance(target, torch.nn.Module):
        if "forward" in target.__dict__:
            raise CaptureError("the module has a forward of its own (set on the instance)")
        if has_hooks(target):
            raise CaptureError("the module has hooks")


def _check_number_tests(functions):
    """What a proxy of a number would answer wrongly without raising."""
    for code in functions:
        if {"type", "callable"} & _global_names(code) or any(i.opname == "MATCH_CLASS" for i in dis.get_instructions(code)):
            raise CaptureError(f"{code.co_name} may test the type of a number that varies")


def capture(target, spec, leaves, varying=frozenset()) -> Capture:
    """Traces `target` (module or function) for these flattened arguments; the numbers at the positions `varying` stand
    for any of their type. Raises CaptureError with the reason."""
    check_root(target)
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor) and not is_plain_tensor(leaf):
            raise CaptureError(f"an argument is a tensor of another kind: {type(leaf).__name__}, layout {leaf.layout}")
        if not isinstance(leaf, torch.Tensor) and not isinstance(leaf, CONSTANT_TYPES):
            raise CaptureError(f"an argument is of type {type(leaf).__name__}")
    if any(_GLOBAL_HOOKS):
        raise CaptureError("global module hooks are registered")
    # Tensors first: guards on them count the placeholders.
    tensors = [i for i, leaf in enumerate(leaves) if is_plain_tensor(leaf)]
    values = tensors + sorted(varying)
    examples = {f"arg_{k}": leaves[i] for k, i in enumerate(tensors)}
    number_types = {f"arg_{k}": type(leaves[i]) for k, i in enumerate(values) if i in varying}
    root, tracer, watcher = _flat_root(target, spec, leaves, values), CheckedTracer(number_types), CodeWatcher()
    modules = dict(target.named_modules()) if isinstance(target, torch.nn.Module) else {}
    before = [ModuleGuard(m, path) for path, m in modules.items()]
    state = [g for path, m in modules.items() for g in module_state(m, path)] + target_state(target)
    try:
        with unsampled_randomness_raises(), watcher:
            graph = tracer.trace(root, example_inputs=examples)
        if varying:
            _check_number_tests(watcher.functions)
        if what := next(filter(None, (g.changed() for g in before + state)), None):
            raise CaptureError(f"the program writes {what}")
        if tracer.knowledge.vague_texts and any(
                SHAPE_TEXT in f"{n.args}{n.kwargs}" for n in graph.nodes if n.target is not torch._assert):
            raise CaptureError("the text of a shape is part of the result")
    except CaptureError:
        _restore(before, state)
        raise
    except Exception as e:  # noqa: BLE001 - whatever a Proxy made the program do, eager decides what is right
        _restore(before, state)
        raise CaptureError(f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}") from e
    remove_decided(tracer, graph)
    inline_composites(graph, tracer.numbers)
    guards = before + state + list(_global_guards(watcher.functions))
    guards += [DictGuard(d, [], "global module hooks") for d in _GLOBAL_HOOKS] + [_NoHooks()]
    dicts = [d for g in before for d in g.dicts()] + [g.owner for g in guards if isinstance(g, DictGuard)]
    return Capture(root, graph, guards, dicts, "checked FX trace", graph.guards, values=values, varying=varying)


def remove_decided(tracer, graph):
    """Removes sizes, dtypes and comparisons of them that only control flow looked at: guards hold them."""
    for node in reversed(graph.nodes):
        if node.op in ("call_function", "call_method") and not node.users and tracer.knowledge.is_host(node):
            graph.erase_node(node)


class _NoHooks:
    def changed(self):
        return "global module hooks" if any(_GLOBAL_HOOKS) else None


def _restore(modules, state):
    for g in modules:
        for part in g.parts:
            for k in [k for k in part.owner if k not in part.entries]:
                del part.owner[k]
            part.owner.update({k: v for k, v in part.entries.items() if v is not _NO_VALUE})
    for g in state:
        if isinstance(g, StateGuard):
            g.restore()


# ---- composites that were left as calls ----

def is_torch_function(function) -> bool:
    module = getattr(function, "__module__", None) or ""
    return (isinstance(function, (types.BuiltinFunctionType, types.MethodDescriptorType, torch._ops.OpOverload,
                                  torch._ops.OpOverloadPacket))
            or module.split(".")[0] in ("torch", "_operator", "math", "builtins"))


_TYPE_TESTS = (isinstance, issubclass, hasattr, type, callable)  # a Proxy does not answer them as a tensor does


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
            if any(value is test for test in _TYPE_TESTS):
                return False
            pure = value is torch or value is torch.nn.functional or (callable(value) and (
                is_torch_function(value) and value not in _IMPURE_BUILTINS
                or isinstance(value, types.FunctionType) and value is not function and is_pure_body(value)))
            if not pure:
                return False
    return True


class _InliningTracer(NumberAware, fx.proxy.GraphAppendingTracer):
    def __init__(self, graph, numbers):
        super().__init__(graph)
        self.numbers = numbers

    def tensor_proxy(self, node):
        return CheckedProxy(node, self)


def inline_composites(graph: fx.Graph, numbers=None):
    """Replaces calls of pure wrapped functions by what their bodies record; others stay calls. numbers: nodes that are
    ints or floats, with their types."""
    changed = False
    again = True
    while again:
        again = False
        for node in graph.nodes:
            if node.op != "call_function" or is_torch_function(node.target) or not is_pure_body(node.target):
                continue
            if fx.is_always_leaf(node.target):
                continue
            tracer = _InliningTracer(graph, {} if numbers is None else numbers)
            with graph.inserting_before(node):
                try:
                    result = node.target(*fx.node.map_arg(node.args, tracer.proxy),
                                         **fx.node.map_arg(node.kwargs, tracer.proxy))
                except Exception as e:  # noqa: BLE001 - then it stays a call
                    if numbers:
                        raise CaptureError(f"{node.name} is a composite of a number that varies: {e}") from e
                    continue
                if type(result) is not CheckedProxy:
                    continue
            node.replace_all_uses_with(result.node)
            graph.erase_node(node)
            changed = again = True
    if changed:
        graph.lint()
