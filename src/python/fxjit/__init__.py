"""fxjit: PyTorch programs as FX graphs, and FX graphs as machine code."""

import torch

if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 11):
    raise ImportError(f"fxjit needs torch 2.11, found {torch.__version__}: pip install 'torch==2.11.*'")

from . import _C  # noqa: E402
from ._C import __version__  # noqa: E402
from . import fx  # noqa: E402


class InternalError(RuntimeError):
    """A bug of fxjit: the text says where, on what, and how to save a reproducer."""


fx._configure(InternalError)


def __getattr__(name):
    if name in ("compile", "explain", "CompileError"):
        from . import compiler

        return getattr(compiler, name)
    raise AttributeError(f"module 'fxjit' has no attribute {name!r}")


__all__ = ["InternalError", "compile", "fx", "__version__"]
