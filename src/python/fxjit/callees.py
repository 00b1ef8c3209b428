"""What may be said of a callee without calling it."""

from __future__ import annotations

import builtins
import dis
import types

import torch

IMPURE_BUILTINS = {print, input, open, builtins.exec, builtins.eval, builtins.setattr, builtins.delattr}


def has_hooks(module: torch.nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks or module._backward_hooks
                or getattr(module, "_backward_pre_hooks", None))


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
                is_torch_function(value) and value not in IMPURE_BUILTINS
                or isinstance(value, types.FunctionType) and value is not function and is_pure_body(value)))
            if not pure:
                return False
    return True
