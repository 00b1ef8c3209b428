"""What user code does while it is traced: effects that a graph could not repeat raise before they happen."""

from __future__ import annotations

import contextlib
import dis
import functools
import os
import random
import sys
import sysconfig
import types

import torch

from .callees import IMPURE_BUILTINS
from .fx._frames import is_library_file
from .proxies import CaptureError

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
        elif event == "call" and frame.f_code is _INFERENCE_MODE and self._user_context(frame):
            # Not the C call in it: CPython 3.12 does not report those of torch's classes.
            raise CaptureError("an inference-mode context is entered inside the function; a graph does not record that")
        elif event == "call" and frame.f_code not in self.functions and not _is_library(frame.f_code):
            self.functions[frame.f_code] = frame.f_globals
            check_code(frame.f_code)

    def _c_call(self, function, frame):
        if function.__name__ in _CONTEXT_SWITCHES and self._user_context(frame):
            raise CaptureError(f"{function.__name__} changes how later operations run (a grad-mode or autocast context, a "
                               "default); a graph does not record that")
        if _is_library(frame.f_code):
            return
        if function.__name__ in _CONTEXT_READS:
            raise CaptureError(f"{function.__name__}() is asked for; a graph does not record that")
        if function in IMPURE_BUILTINS or getattr(function, "__module__", None) in _IMPURE_MODULES:
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
