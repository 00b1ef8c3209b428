"""fxjit: PyTorch programs as FX graphs, and FX graphs as machine code."""

from . import _platform

_platform.check_interpreter()

import torch  # noqa: E402, F401 - loads the libraries that the extension links

try:
    from . import _C
except ImportError as e:
    if "undefined symbol" not in str(e):
        raise
    raise ImportError(f"fxjit's extension does not fit torch {torch.__version__}: {e}; "
                      "build fxjit against it, or install the torch that it was built for") from e

_platform.check_torch(_C.built_with_torch)
if (_path := _platform.find_onednn()) is not None:
    _C.prefer_dnnl(_path)

from ._C import __version__  # noqa: E402
from . import fx  # noqa: E402


class InternalError(RuntimeError):
    """A bug of fxjit: the text says where, on what, and how to save a reproducer."""


fx._configure(InternalError)


def __getattr__(name):
    if name == "compile":
        from . import compiler

        return getattr(compiler, name)
    if name == "minimize":
        from . import minimizer

        return minimizer.minimize
    raise AttributeError(f"module 'fxjit' has no attribute {name!r}")


__all__ = ["InternalError", "compile", "fx", "minimize", "__version__"]
