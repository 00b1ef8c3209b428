"""Who runs a case: eager, torch.compile, JAX, the hand-written kernel, fxjit, and the copy of as many bytes.

Each function here returns what `Contender.call` becomes: a callable without arguments that computes the whole result, and
gives it back as something `Contender.tensor` turns into a torch tensor. A contender that is missing raises Missing."""

import ctypes
import importlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import torch
from names import EVERYONE


class Missing(Exception):
    """A contender that cannot run here, and why."""


@dataclass
class Contender:
    name: str
    call: Callable[[], Any]
    tensor: Callable[[Any], torch.Tensor]
    first_ms: float = 0.0  # the first call, compilation included


class HandArgs(ctypes.Structure):
    _fields_ = [
        ("inputs", ctypes.c_void_p * 3),
        ("out", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("cols", ctypes.c_int64),
        ("eps", ctypes.c_float),
    ]


class HandAccuracy(ctypes.Structure):
    _fields_ = [
        ("max_ulp", ctypes.c_double),
        ("at", ctypes.c_float),
        ("budget", ctypes.c_double),
        ("wrong", ctypes.c_int64),
    ]


class Hand:
    """The library of hand-written kernels, run on torch's own thread pool."""

    def __init__(self, path):
        if path is None:
            raise Missing("libfxjit_hand.so is not built (cmake --workflow --preset bench)")
        if "avx512bw" not in Path("/proc/cpuinfo").read_text():
            raise Missing("this CPU has no AVX-512")
        self.library = ctypes.CDLL(str(path))
        # Every chunk of work runs outside the interpreter; ctypes gives the lock back around the call.
        self.run = self.library.hand_run
        self.run.argtypes = [ctypes.c_char_p, ctypes.POINTER(HandArgs), ctypes.c_void_p]
        core = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
        self.parallel = ctypes.cast(core.torch_parallel_for, ctypes.c_void_p)

    def bind(self, case, args, eps):
        out = torch.empty_like(args[0])
        pointers = [a.data_ptr() for a in args] + [None] * (3 - len(args))
        packed = HandArgs((ctypes.c_void_p * 3)(*pointers), out.data_ptr(), case.count, case.cols, eps)
        name, reference = case.name.encode(), ctypes.byref(packed)

        def call(keep=(packed, args)):
            status = self.run(name, reference, self.parallel)
            if status != 0:
                raise RuntimeError(f"hand_run({case.name}) returned {status}")
            return out

        return call

    def accuracy(self, stride=997):
        """(function, largest error in ULP, budget) for each function; raises if one misses its budget."""
        found = []
        for name in ("exp", "sigmoid", "tanh"):
            result = HandAccuracy()
            self.library.hand_accuracy(name.encode(), stride, ctypes.byref(result))
            if result.max_ulp > result.budget or result.wrong:
                raise Missing(f"{name} is off by {result.max_ulp:.2f} ULP at {result.at!r}, {result.wrong} special values")
            found.append((name, result.max_ulp, result.budget))
        return found


class Field:
    """The contenders of one process, set up in the order that thread binding asks for."""

    def __init__(self, threads, without=(), hand_library=None):
        self.missing = {name: "switched off" for name in without}
        self.threads = threads
        self.jax = self._try("jax", self._import_jax)
        torch.set_num_threads(threads)
        self.hand = self._try("hand", lambda: Hand(hand_library))
        self.hand_accuracy = self._try("hand", self.hand.accuracy) if self.hand else None
        if self.hand_accuracy is None:
            self.hand = None
        self.fxjit = self._try("fxjit", lambda: importlib.import_module("fxjit"))
        self._try("inductor", self._prepare_inductor)

    def _try(self, name, make):
        if name in self.missing:
            return None
        try:
            return make()
        except (Missing, ImportError) as error:
            self.missing[name] = str(error)
            return None

    def _import_jax(self):
        # The caller has made JAX's threads before libgomp bound this one to a CPU (child.py); they would inherit the mask.
        jax = importlib.import_module("jax")
        jax.config.update("jax_cpu_enable_async_dispatch", False)  # no hand-over to a worker for a short call
        return jax

    def _prepare_inductor(self):
        compiler = os.environ.get("CXX", "g++")
        if not any(os.access(Path(p) / compiler, os.X_OK) for p in os.environ["PATH"].split(":")):
            raise Missing(f"torch.compile needs a compiler, and there is no {compiler}")

    def contenders(self, case, args, eps):
        makers = {
            "copy": lambda: self._copy(case),
            "eager": lambda: self._torch("eager", case.fn, args),
            "inductor": lambda: self._torch("inductor", self.compile_inductor(case.fn), args),
            "jax": lambda: self._jax(case, args),
            "hand": lambda: Contender("hand", self.hand.bind(case, args, eps), lambda y: y),
            "fxjit": lambda: self._torch("fxjit", self.fxjit.compile(case.fn), args),
        }
        return [self._warm(makers[name]()) for name in EVERYONE if name not in self.missing]

    @staticmethod
    def _warm(contender):
        # The first call compiles; fxjit's second runs what was compiled, and may see a new class of strides.
        start = time.perf_counter()
        contender.call()
        contender.first_ms = (time.perf_counter() - start) * 1e3
        contender.call()
        return contender

    @staticmethod
    def _torch(name, fn, args):
        return Contender(name, lambda: fn(*args), lambda y: y)

    @staticmethod
    def compile_inductor(fn):
        torch._dynamo.reset()  # or the second size of a case would count as dynamic
        return torch.compile(fn, dynamic=False)

    @staticmethod
    def _copy(case):
        half = case.elements * case.bytes // 2  # as many bytes read as written
        source, target = torch.ones(half // 4), torch.empty(half // 4)
        return Contender("copy", lambda: target.copy_(source), lambda y: y)

    def _jax(self, case, args):
        jax = self.jax
        fn = jax.jit(lambda *operands: case.jax(jax, *operands))
        operands = [jax.numpy.asarray(a.numpy()) for a in args]
        return Contender("jax", lambda: fn(*operands).block_until_ready(), lambda y: torch.from_dlpack(y))
