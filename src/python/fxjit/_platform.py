"""What an import needs: the machine, the interpreter and the torch that this build was made for."""

import os
import platform
import sys


def check_interpreter() -> None:
    """ImportError that says what to do, where this interpreter cannot load the extension."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise ImportError(f"fxjit runs on Linux x86-64, not on {sys.platform} {platform.machine()}")
    if sys.implementation.name != "cpython":
        raise ImportError(f"fxjit needs CPython, not {sys.implementation.name}")
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise ImportError("fxjit needs an interpreter with the GIL: start it with PYTHON_GIL=1 or python -X gil=1")


def minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def check_torch(built_with: str) -> None:
    """ImportError unless torch is of the minor version whose headers the extension was compiled with."""
    import torch

    if minor(torch.__version__) != minor(built_with):
        raise ImportError(f"this fxjit was built for torch {minor(built_with)}, found {torch.__version__}: "
                          f"pip install 'torch=={minor(built_with)}.*', or build fxjit against this torch")


def find_onednn() -> str | None:
    """oneDNN of the wheel onednn-cpu-gomp, beside the interpreter that imports."""
    path = os.path.join(sys.prefix, "lib", "libdnnl.so.3")
    return path if os.path.exists(path) else None
