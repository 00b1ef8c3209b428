"""fxjit.compile: a callable that records its first call, and runs machine code from then on."""

from __future__ import annotations

import copyreg
import functools
import importlib
import sys

import torch

from . import _C, fx
from .companion import Companion
from .graph_companion import GraphCompanion


def compile(obj=None, *, strict=False, fast_math=False, **options):  # noqa: A001 - the name that users know
    """Compiles a callable: the first call runs eagerly and is recorded, later ones run machine code.

    obj: an nn.Module, a function, a GraphModule of fxjit.fx or torch.fx, or a torch.export.ExportedProgram
    strict: what cannot be compiled raises RuntimeError with the reason, instead of running in ATen or Python
    fast_math: allows contraction, reassociation and approximations beyond eager's rounding
    options: the others of the table in docs/options.md; an unknown one is a TypeError that names those there are

    The result is callable, forwards obj's attributes, and has explain(), code and reset(). Results equal eager's. Of a
    module it counts as a module: it may be a child of others. Copies and pickles hold obj and options, and compile anew.
    """
    options = dict(options, strict=strict, fast_math=fast_math)
    _C.check_options(options)
    if obj is None:
        return lambda f: compile(f, **options)
    if type(obj) is _C.Compiled:
        obj = _C.companion(obj).target
    if isinstance(obj, (torch.fx.GraphModule, torch.export.ExportedProgram)):
        from .interop import from_torch
        obj = from_torch(obj)
    if not callable(obj):
        raise TypeError(f"fxjit.compile takes a module or a function, not {type(obj).__name__}")
    companion = GraphCompanion if isinstance(obj, fx.GraphModule) else Companion
    return companion(obj, options).compiled


def _compile_again(target, options):
    return compile(target, **options)


def _find(module, path):
    return functools.reduce(lambda owner, name: getattr(owner, name, None), path.split("."), importlib.import_module(module))


def _reduce(compiled):
    """For copy and pickle. A decorated function is found by its name, as functions are."""
    companion = _C.companion(compiled)
    target = companion.target
    module, path = getattr(target, "__module__", None), getattr(target, "__qualname__", None)
    if module in sys.modules and path and _find(module, path) is compiled:
        return _find, (module, path)
    return _compile_again, (target, companion.options)


copyreg.pickle(_C.Compiled, _reduce)
