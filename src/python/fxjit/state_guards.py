"""Guards on what a trace read besides its arguments: attributes, globals, closures, containers, hooks.

Each has changed(): what differs from when it was made, as text, or None.
"""

from __future__ import annotations

import collections
import functools
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
        guards += list(global_guards({function.__code__: function.__globals__}))
        guards += [StateGuard(c.old, f"the closure variable '{c.name}'") for c in guards if isinstance(c, CellGuard)]
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
