"""Guards on what a trace read besides its arguments: attributes, globals, closures, containers, hooks.

Each has changed(): what differs from when it was made, as text, or None.
"""

from __future__ import annotations

import collections
import functools
import inspect
import os
import sys
import types

import torch

from .leaves import CONSTANT_TYPES, constant_key, is_plain_tensor
from .proxies import CaptureError

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


_OPAQUE_TYPES = (torch.Tensor, type, types.FunctionType, types.BuiltinFunctionType, types.MethodType,
                 types.ModuleType, types.CodeType)
_MODULE_FIELDS = frozenset(torch.nn.Module().__dict__)
_STATE_LIMIT = 2000  # values that a guard follows; beyond that checking costs more than the program


class _Slots:
    """The slots of an object, as a container of their values."""

    def __init__(self, owner):
        slots = (vars(c).get("__slots__", ()) for c in type(owner).__mro__ if not _is_library_class(c))
        self.owner = owner
        self.names = [n for names in slots for n in ((names,) if isinstance(names, str) else names) if n != "__weakref__"]

    def __iter__(self):
        return iter([getattr(self.owner, n, _NO_VALUE) for n in self.names])

    def clear(self):
        pass

    def extend(self, values):
        for n, v in zip(self.names, values):
            if v is not _NO_VALUE:
                setattr(self.owner, n, v)


class StateGuard:
    """What is inside containers and plain objects, however deep: lists, dicts, sets, instance attributes.

    dicts, lists, sets: those of them that can be watched; `unwatched` is true if there is something else that may change.
    types: the classes of the objects
    """

    def __init__(self, value, label: str):
        self.label, self.snapshots, self.unwatched = label, [], False
        self.dicts, self.lists, self.sets = [], [], []
        self.types: set = set()
        self._seen: set = set()
        self._follow(value)

    def _follow(self, value):
        if isinstance(value, CONSTANT_TYPES) or isinstance(value, _OPAQUE_TYPES) or id(value) in self._seen:
            return
        is_module = isinstance(value, torch.nn.Module)
        self._seen.add(id(value))
        if len(self._seen) > _STATE_LIMIT:
            raise CaptureError(f"{self.label} holds more than {_STATE_LIMIT} values that would have to be guarded")
        if isinstance(value, (list, tuple, set, frozenset, collections.deque, bytearray)):
            if type(value) is list:
                self.lists.append(value)
            elif type(value) is set:
                self.sets.append(value)
            else:
                self.unwatched |= not isinstance(value, (tuple, frozenset))
            parts = tuple(value)
            if not isinstance(value, (tuple, frozenset)):
                self.snapshots.append((value, parts))
        else:
            held = value if isinstance(value, dict) else getattr(value, "__dict__", None)
            if held is not value and not is_module and _is_library_class(type(value)):
                return
            if held is not value and not _is_library_class(type(value)):
                self.types.add(type(value))
            if not isinstance(held, dict):
                held = _Slots(value)
                self.unwatched |= bool(held.names)
                self.snapshots.append((held, tuple(held)))
                for part in held:
                    self._follow(part)
                return
            # What a module keeps in its tables of tensors can be no constant of a graph.
            parts = tuple(v for k, v in held.items() if not (is_module and k in _MODULE_FIELDS and k != "_modules"))
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


def _is_library_name(name) -> bool:
    root = name.split(".")[0]
    return root in ("torch", "fxjit", "numpy") or (root in sys.stdlib_module_names and root != "__main__")


def _is_library_class(cls) -> bool:
    return _is_library_name(cls.__module__)


class TypeGuard:
    """What a class and its bases define, but for those of libraries: methods and class attributes."""

    def __init__(self, cls):
        self.type = cls
        self.parts = [DictGuard(vars(c), list(vars(c)), c.__name__) for c in cls.__mro__ if not _is_library_class(c)]

    def changed(self):
        for part in self.parts:
            if len(part.owner) != len(part.entries):
                return f"the class {part.label}"
            if what := part.changed():
                return f"the class attribute {what}"
        return None


class FunctionGuard:
    """A function's code and defaults."""

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


GLOBAL_HOOKS = [getattr(torch.nn.modules.module, n) for n in (
    "_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks", "_global_backward_pre_hooks")]


def global_names(code):
    """Names that the code, or a function or comprehension inside it, looks up."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= global_names(constant)
    return names


def global_guards(functions):
    for code, globals_ in functions.items():
        names = [n for n in global_names(code) if n in globals_]
        if names:
            yield DictGuard(globals_, names, f"globals of {code.co_name}")
            for n in names:
                yield from _value_guards(globals_[n], f"the global '{n}'", global_names(code), set())


def _value_guards(value, label, names, seen):
    """Guards on what code with these names may find in a global or a closure variable. seen: ids of functions, modules
    and classes that were followed."""
    if isinstance(value, (type, types.ModuleType, types.FunctionType)):
        if id(value) in seen:
            return
        seen.add(id(value))
    yield StateGuard(value, label)
    if (value is os and names & {"environ", "getenv"}) or value is os.environ or value is os.getenv:
        yield StateGuard(os.environ._data, "os.environ")
    if isinstance(value, types.FunctionType) and not _is_library_name(value.__module__ or ""):
        yield FunctionGuard(value)
        for cell in closure_guards(value):
            yield cell
            yield from _value_guards(cell.old, f"the closure variable '{cell.name}'", global_names(value.__code__), seen)
    yield from _namespace_guards(value, names, seen)


def _namespace_guards(value, names, seen):
    """Guards on what code with these names may read of a Python module or a class: `config.scale`, `Model.scale`."""
    if not isinstance(value, (type, types.ModuleType)) or _is_library_name(value.__module__ if isinstance(value, type)
                                                                          else value.__name__):
        return
    if isinstance(value, type):
        yield TypeGuard(value)
    else:
        yield DictGuard(vars(value), [n for n in names if n in vars(value)], value.__name__)
    for n in names:
        if n in vars(value):
            yield from _value_guards(vars(value)[n], f"{value.__name__}.{n}", names, seen)


def target_state(target):
    """Guards on the callable itself: closure, defaults, bound object, partial arguments, globals of its own code."""
    guards, function = [], target
    if isinstance(target, torch.nn.Module):
        function = inspect.getattr_static(type(target), "forward")  # TorchScript's modules have a descriptor there
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
        guards.append(StateGuard([function.__defaults__, function.__kwdefaults__], "default arguments"))
        guards += list(_value_guards(function, "the function", global_names(function.__code__), set()))
        guards += list(global_guards({function.__code__: function.__globals__}))
    return guards


def closure_guards(function):
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    return [CellGuard(c, n) for n, c in zip(code.co_freevars, cells)] if code and cells else []


class NoHooks:
    def changed(self):
        return "global module hooks" if any(GLOBAL_HOOKS) else None


class DefaultDType:
    """Tensors that were made of numbers while tracing have it. Compiled code compares it at each call."""

    def __init__(self):
        self.old = torch.get_default_dtype()

    def changed(self):
        return None if torch.get_default_dtype() is self.old else "the default dtype"


def restore(modules, state):
    for g in modules:
        for part in g.parts:
            for k in [k for k in part.owner if k not in part.entries]:
                del part.owner[k]
            part.owner.update({k: v for k, v in part.entries.items() if v is not _NO_VALUE})
    for g in state:
        if isinstance(g, StateGuard):
            g.restore()
