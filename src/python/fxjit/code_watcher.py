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

from . import fx
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


class ExceptionHandled(BaseException):
    """Code that would go on behind an exception is about to handle one. No `except Exception` keeps it."""


class CodeWatcher:
    """Follows the Python and C functions that run during a trace: user functions are collected for guards; what a graph
    could not repeat raises before it happens.

    count_nodes(): of the graph so far. A graph raises what its operations raise: code that would handle that may not run any.
    """

    def __init__(self):
        self.functions: dict[types.CodeType, dict] = {}
        self.count_nodes = lambda: 0
        self._handlers: set[types.CodeType] = set()
        self._nodes_at_entry: dict[types.FrameType, int] = {}
        self._refusal = None

    def __enter__(self):
        # A profiler in C (cProfile) is an object that is no function: it stops and starts by methods of its own.
        self._previous = sys.getprofile()
        if hasattr(self._previous, "disable"):
            self._previous.disable()
        self._tracer = sys.gettrace()
        sys.setprofile(self._event)
        return self

    def __exit__(self, *_):
        sys.settrace(self._tracer)
        if hasattr(self._previous, "enable"):
            sys.setprofile(None)
            self._previous.enable()
        else:
            sys.setprofile(self._previous)

    def _event(self, frame, event, arg):
        if event == "c_call":
            self._c_call(arg, frame)
        elif event == "call":
            if frame.f_code is _INFERENCE_MODE and self._user_context(frame):
                # Not the C call in it: CPython 3.12 does not report those of torch's classes.
                raise CaptureError("an inference-mode context is entered inside the function; a graph does not record that")
            if frame.f_code.co_name == "__exit__" and not _is_library(frame.f_back.f_code) and _may_suppress(frame):
                self._refuse(frame.f_back)
                raise CaptureError(self._refusal)
            if frame.f_code not in self.functions and not _is_library(frame.f_code):
                self.functions[frame.f_code] = frame.f_globals
                if check_code(frame.f_code):
                    self._handlers.add(frame.f_code)
            if frame.f_code in self._handlers:
                self._nodes_at_entry[frame] = self.count_nodes()
                frame.f_trace, frame.f_trace_lines = self._in_handler, False
                sys.settrace(lambda *_: None)  # frames have functions of their own
        elif event == "return" and self._nodes_at_entry.pop(frame, None) not in (None, self.count_nodes()):
            self._refuse(frame)
            raise CaptureError(self._refusal)

    def _in_handler(self, frame, event, arg):
        if event == "exception" and _is_of_the_trace(*arg):
            self._refuse(frame)
            raise ExceptionHandled(self._refusal)
        return self._in_handler

    def _refuse(self, frame):
        self._refusal = f"{frame.f_code.co_name} catches exceptions, which a graph does not do"

    def check(self):
        """After the trace: raises what user code may have kept from passing."""
        if self._refusal:
            raise CaptureError(self._refusal)

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


def _catches(instructions) -> bool:
    """Whether the code may go on behind an exception. `finally` and `except: raise` do not, they raise it again; a `with`
    goes on where its context manager says so."""
    resumed = sum(a.opname == "POP_EXCEPT" and b.opname != "RERAISE" for a, b in zip(instructions, instructions[1:]))
    return resumed > sum(i.opname == "WITH_EXCEPT_START" for i in instructions)


def _is_of_the_trace(kind, _, traceback) -> bool:
    """Whether an exception may be one that proxies stand behind, and not eager's as well."""
    if issubclass(kind, StopIteration):  # that of an iterator ends a loop
        return False
    frames = []
    while traceback is not None:
        frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    return issubclass(kind, CaptureError) or any(
        issubclass(type(x), fx.Proxy) for f in frames for x in f.f_locals.values())


def _may_suppress(frame) -> bool:
    """Whether the context manager whose __exit__ starts here may keep an exception from the code behind its block."""
    if is_library_file(frame.f_code.co_filename):  # torch's do not
        return False
    generator = getattr(frame.f_locals.get("self"), "gen", None)
    if type(generator) is types.GeneratorType:  # of contextlib.contextmanager
        return _catches(list(dis.get_instructions(generator.gi_code)))
    instructions = list(dis.get_instructions(frame.f_code))
    given = [a for a, b in zip(instructions, instructions[1:]) if b.opname == "RETURN_VALUE"]
    given += [i for i in instructions if i.opname == "RETURN_CONST"]  # from Python 3.12 on
    return any(not (i.opname in ("LOAD_CONST", "RETURN_CONST") and i.argval is None) for i in given)


def check_code(code: types.CodeType) -> bool:
    """Raises for writes that a graph does not do; whether the code handles exceptions."""
    instructions = list(dis.get_instructions(code))
    for instruction in instructions:
        if instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            raise CaptureError(f"{code.co_name} assigns the global '{instruction.argval}'")
        if instruction.opname in ("STORE_DEREF", "DELETE_DEREF") and instruction.argval in code.co_freevars:
            raise CaptureError(f"{code.co_name} assigns '{instruction.argval}' of an enclosing function")
    return _catches(instructions)


def _numpy_state():
    """numpy's global random state; None where numpy was not imported, which torch does only when it is asked to."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    _, key, *rest = numpy.random.get_state()
    return key.tobytes(), *rest


@contextlib.contextmanager
def unsampled_randomness_raises():
    """Random numbers that are drawn while tracing raise CaptureError; they are put back, also where the trace fails."""
    torch_state, python_state, numpy_state = torch.get_rng_state(), random.getstate(), _numpy_state()
    saved = sys.modules["numpy"].random.get_state() if numpy_state else None
    drawn = []
    try:
        yield
    finally:
        if random.getstate() != python_state:
            random.setstate(python_state)
            drawn.append("Python's random numbers were drawn while tracing")
        if numpy_state and _numpy_state() != numpy_state:
            sys.modules["numpy"].random.set_state(saved)
            drawn.append("numpy's random numbers were drawn while tracing")
        if not torch.equal(torch.get_rng_state(), torch_state):
            torch.set_rng_state(torch_state)
            drawn.append("random tensors were made while tracing: a graph would repeat the same numbers")
    if drawn:
        raise CaptureError(drawn[0])
