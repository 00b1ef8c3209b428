"""How call targets are called: in node names, in printed graphs, and towards C++."""

import builtins
import importlib
import types

import torch

_DESCRIPTORS = (types.MethodDescriptorType, types.WrapperDescriptorType)


def _is_tensor_method(fn, name):
    if isinstance(fn, _DESCRIPTORS):
        return fn is getattr(torch.Tensor, name, None)
    return getattr(fn, "__module__", None) == "torch._tensor" and getattr(fn, "__qualname__", "") == f"Tensor.{name}"


def _module_of(fn, name):
    module = getattr(fn, "__module__", None)
    if module is not None:
        # torch.ops' packets say where their class lives.
        return module.replace("torch._ops", "torch.ops")
    for guess in (torch, torch.nn.functional):
        if getattr(guess, name, None) is fn:
            return guess.__name__
    owner = getattr(fn, "__self__", None)
    return type(owner).__module__ if owner is not None else type(fn).__module__


def qualified_name(fn):
    """Module and name: "_operator.add", "builtins.getattr", "torch.relu", "__main__.sigmoid_lowp"."""
    name = getattr(fn, "__name__", None)
    if not isinstance(name, str):
        return f"{type(fn).__module__}.{type(fn).__qualname__}"
    if getattr(builtins, name, None) is fn:
        return f"builtins.{name}"
    if _is_tensor_method(fn, name):
        return f"torch.Tensor.{name}"
    return f"{_module_of(fn, name)}.{name}"


def pretty_name(fn):
    """As torch.fx prints it: operators without the underscore of their module."""
    name = qualified_name(fn)
    return name[1:] if name.startswith("_operator.") else name


def base_name(fn):
    """What a node that calls `fn` is named after."""
    name = getattr(fn, "__name__", None)
    return name if isinstance(name, str) else type(fn).__name__


def find_callable(name):
    """The object behind a qualified name. AttributeError or ImportError where there is none."""
    parts = name.split(".")
    for split in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:split]))
        except ImportError:
            continue
        for part in parts[split:]:
            found = getattr(found, part)
        return found
    raise ImportError(f"nothing in Python is called {name!r}")
