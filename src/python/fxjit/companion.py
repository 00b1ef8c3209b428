"""What a compiled callable does off the hot path: it captures, records and compiles, and explains itself."""

from __future__ import annotations

import dataclasses
import functools
import threading
import warnings

import torch
from torch.utils import _pytree as pytree

from . import _C, fx
from .capture import Basis, Capture, CaptureError, capture
from .explanation import Explanation
from .leaves import constant_key, flatten, is_plain_tensor
from .numbers import Positions
from .recording import record
from .segments import split_at_python_calls
from .variant import Variant, attribute_sources

_TENSOR = object()  # stands for a tensor among the constants of a variant
_SURFACE = frozenset("explain code reset draw picture".split())  # of a compiled callable; all other names are its target's


@dataclasses.dataclass
class Failure:
    """Why calls of one kind are not captured. It is tried again when something of `basis` has changed, but not before
    `wait` calls: a program that changes its own state would be traced at each one."""

    reason: str
    basis: Basis | None
    wait: int = 1
    calls: int = 0
    unseen: bool = False  # whether watch() may have passed over a change


class Companion:
    """Everything about a compiled callable that is not the hot path."""

    def __init__(self, target, options):
        self.target, self.options = target, options
        self.strict = bool(options.get("strict", False))
        self.lock = threading.RLock()
        self.variants: dict = {}  # by structure and constants of the arguments: the variants for different shapes
        self.positions = Positions()
        self.failures: dict[tuple, Failure] = {}  # by the key of a variant
        self.notes: list[str] = []
        self.eager_reason = None
        self.eager_calls: dict[str, int] = {}  # by reason
        self.eager_keys: set = set()  # keys of failures whose calls the hot call takes to the target
        self.warned: set[str] = set()
        self.compiled = _C.Compiled(self.call, self)

    # -- the surface --

    def explain(self) -> Explanation:
        """How calls run: capture way, kernels with their source nodes and bytes, library and ATen calls, fallbacks with
        reasons, milliseconds by stage."""
        variants = self.all_variants()
        with self.lock:
            self.forget_eager()
        for v in list(variants):
            variants += [p for part in (v.segments.parts if v.segments else ()) for p in _C.companion(part).all_variants()]
        return Explanation([v.function.report() for v in variants], list(self.notes),
                           [v.captured.conditions for v in variants], self.picture, dict(self.eager_calls))

    def all_variants(self) -> list[Variant]:
        return [v for group in self.variants.values() for v in group]

    def picture(self):
        """The program of the newest variant as a Picture: .write_svg(path), .to_string() for DOT."""
        from .drawing import compiled_picture

        if not self.variants:
            raise RuntimeError(f"there is nothing to draw: {self.eager_reason or 'nothing was called yet'}")
        name = getattr(self.target, "__name__", type(self.target).__name__)
        return compiled_picture(self.all_variants()[-1], name)

    def draw(self, path):
        """Writes the picture, as .svg or .dot."""
        self.picture().write(path)

    @property
    def code(self) -> str:
        """LLVM IR: the generic form, then each specialisation under its heading."""
        parts = []
        for v in self.all_variants():
            parts.append("; ---- generic form ----\n" + v.captured.code())
            parts.append(v.function.code())
        why = "".join(f"; eager: {reason}\n" for reason in self.eager_calls)
        return "\n".join(parts + [why] if why else parts) or "; nothing was called yet\n"

    def specialised_code(self) -> str:
        return "".join("\n" + v.function.code() for v in self.all_variants())

    def reset(self):
        """Forgets every trace, specialisation and failure."""
        with self.lock:
            _C.clear_variants(self.compiled)
            self.forget_eager()
            _C.watch(self.compiled)
            self.variants.clear()
            self.positions = Positions()
            self.failures.clear()
            self.notes.clear()
            self.eager_calls.clear()
            self.eager_reason = None

    def get_attribute(self, name):
        """What the compiled callable has under `name`."""
        if name in _SURFACE:
            return getattr(self, name)
        if name == "__deepcopy__":  # copies are made as copyreg says
            raise AttributeError(name)
        value = getattr(self.target, name)
        if name not in _RETURN_SELF or not isinstance(self.target, torch.nn.Module):
            return value

        @functools.wraps(value)
        def method(*args, **kwargs):
            result = value(*args, **kwargs)
            return self.compiled if result is self.target else result
        return method

    @property
    def shown_class(self):
        """What isinstance() takes the compiled callable for."""
        return type(self.target) if isinstance(self.target, torch.nn.Module) else _C.Compiled

    def set_attribute(self, name, value):
        setattr(self.target, name, value)

    def delete_attribute(self, name):
        delattr(self.target, name)

    def __repr__(self):
        return f"fxjit.compile({self.target!r})"

    # -- calls that the hot path passed on --

    def call(self, args, kwargs):
        if is_observed():
            return self.run_target(args, kwargs)
        leaves, spec = flatten((args, kwargs))
        kinds = tuple(_TENSOR if is_plain_tensor(x) else type(x) for x in leaves)
        try:
            hash((spec, tuple(constant_key(x) for x, kind in zip(leaves, kinds) if kind is not _TENSOR)))
        except TypeError:
            return self.eager("an argument is of an unhashable type", args, kwargs)
        with self.lock:
            variant = self.variant_of_call(spec, kinds, leaves)
        if variant is None:
            return self.eager(None, args, kwargs)
        return self.run(variant, leaves)

    def variant_of_call(self, spec, kinds, leaves):
        """With the numbers that vary as such where the program can be traced so, else as constants."""
        structure = (spec, kinds)
        while True:
            varying = self.varying(structure, leaves)
            # A number that varies is its type, a constant a pair.
            key = (spec, tuple(kind if kind is _TENSOR or i in varying else constant_key(x)
                               for i, (x, kind) in enumerate(zip(leaves, kinds))))
            known = key in self.variants
            variant = self.variant_for(key, spec, leaves, varying)
            if variant is not None or key not in self.failures or not varying or not self.give_up(structure):
                break
        if variant is None:
            self.call_eagerly(key, spec, leaves)
        elif varying and not known:
            self.supersede(key)
            self.settle(structure)
        return variant

    def varying(self, structure, leaves):
        return self.positions.varying(structure, leaves)

    def give_up(self, structure) -> bool:
        """Whether the call is to be tried with fewer numbers that vary."""
        self.positions.failed(structure)
        return True

    def settle(self, structure):
        self.positions.succeeded(structure)

    def supersede(self, key):
        """Drops the variants whose constants are numbers of this one."""
        def covers(new, old):
            return new == old or (isinstance(new, type) and isinstance(old, tuple) and old[0] is new)
        for other in [k for k in self.variants if k != key and k[0] == key[0] and all(map(covers, key[1], k[1]))]:
            del self.variants[other]
        _C.clear_variants(self.compiled)
        for variant in self.all_variants():
            self.add_hot(variant)
        self.watch()

    def add_hot(self, variant):
        if variant.hot is not None:
            constants, programs, names = variant.hot
            _C.add_variant(self.compiled, variant.function, constants, _TENSOR, variant.attributes, programs, names)

    def eager(self, reason, args, kwargs):
        reason = reason or self.eager_reason
        self.eager_calls[reason] = self.eager_calls.get(reason, 0) + 1
        if self.strict:
            raise RuntimeError(f"fxjit.compile(strict=True): the program would run eagerly: {reason}")
        return self.run_target(args, kwargs)

    @property
    def eager_target(self):
        """What runs in the place of compiled code."""
        return self.target

    def run_target(self, args, kwargs):
        return self.eager_target(*args, **kwargs)

    def variant_for(self, key, spec, leaves, varying):
        if self.variants and not (_C.unchanged(self.compiled) and all(v.watched for v in self.all_variants())):
            self.recheck()
        variant = next((v for v in self.variants.get(key, ()) if v.captured.fits(leaves)), None)
        if variant is not None:
            return variant
        if not self.may_be_captured(key):
            self.eager_reason = self.failures[key].reason
            return None
        if len(self.all_variants()) >= 8:
            self.eager_reason = _TOO_MANY
            self.warn_once(f"{_TOO_MANY}: the rest runs eagerly", stacklevel=5)
            return None
        basis = None
        try:
            variant = self.new_variant(spec, leaves, varying)
        except CaptureError as e:
            self.eager_reason, basis = f"not captured: {e}", e.basis
        except fx.GuardError:
            raise
        except Exception as e:  # noqa: BLE001 - a bug of ours costs speed, not the user's program
            if _C.raises_faults(self.options):
                raise
            self.eager_reason = f"internal error: {type(e).__name__}: {e}"
        failed = self.failures.pop(key, None)
        if variant is None:
            if len(self.failures) < 1024:
                few = len(self.failures) < 8
                self.failures[key] = Failure(self.eager_reason, basis if few else None, 2 * failed.wait if failed else 1)
                self.watch()
            return None
        self.variants.setdefault(key, []).append(variant)
        self.add_hot(variant)
        self.watch()
        return variant

    def may_be_captured(self, key) -> bool:
        failure = self.failures.get(key)
        if failure is None:
            return True
        failure.calls += 1
        if failure.basis is None or failure.calls < failure.wait:
            return False
        unchanged = not self.variants and _C.unchanged(self.compiled)
        if unchanged and not failure.unseen:
            return False
        what = failure.basis.changed()
        if what:
            self.notes.append(f"tried again to capture: {what} changed")
            return True
        if not unchanged:
            self.watch()
        failure.unseen = False
        return False

    def new_variant(self, spec, leaves, varying):
        _C.fault_point(self.options, "capture")
        captured = self.capture(spec, leaves, varying)
        _C.fault_point(self.options, "variant")
        variant = self.make_variant(captured, leaves)
        names, programs = keyword_names(spec, leaves), variant.size_programs(leaves)
        if names is not None and variant.watched and programs is not None and variant.segments is None:
            variant.hot = [_TENSOR if is_plain_tensor(x) else type(x) if i in varying else x
                           for i, x in enumerate(leaves)], programs, names
        return variant

    def call_eagerly(self, key, spec, leaves):
        """Calls like this one go straight to the target, until something changes that its failure rests on."""
        failure = self.failures.get(key)
        if failure is None or self.strict or key in self.variants or key in self.eager_keys:
            return
        if failure.basis is not None and (failure.unseen or failure.basis.unwatched or failure.calls < failure.wait):
            return
        if (names := keyword_names(spec, leaves)) is not None:
            constants = [_TENSOR if is_plain_tensor(x) else x for x in leaves]
            _C.add_eager(self.compiled, self.eager_target, constants, _TENSOR, names, failure.reason)
            self.eager_keys.add(key)

    def forget_eager(self):
        for reason, calls in _C.take_eager(self.compiled):
            self.eager_calls[reason] = self.eager_calls.get(reason, 0) + calls
        self.eager_keys.clear()

    def capture(self, spec, leaves, varying) -> Capture:
        return capture(self.target, spec, leaves, varying)

    def watch(self):
        bases = [v.captured for v in self.all_variants()] + [f.basis for f in self.failures.values() if f.basis]
        for failure in self.failures.values():
            failure.unseen = True

        def all_of(field):
            return list({id(x): x for basis in bases for x in getattr(basis, field)}.values())
        _C.watch(self.compiled, **{field: all_of(field) for field in ("dicts", "cells", "lists", "sets", "types", "functions")})
        self.forget_eager()

    def recheck(self):
        """Compares what the traces rest on; a variant of which something really changed is dropped."""
        stale = next(filter(None, (v.captured.changed() for v in self.all_variants())), None)
        if stale:
            self.notes.append(f"captured again: {stale} changed")
            self.variants.clear()
            _C.clear_variants(self.compiled)
        self.watch()

    def make_variant(self, captured, leaves):
        attributes = attribute_sources(captured.root, captured.graph)
        names = [n.name for n in captured.graph.nodes if n.op == "placeholder" and n not in captured.numbers]
        names += [f"attribute {k}" for _, k in attributes] + [n.name for n in captured.numbers]
        function = _C.make_function(self.options, names, len(attributes), len(captured.numbers))
        function.set_capture(captured.way, [])
        variant = Variant(captured, function, attributes)
        if not self.strict:
            variant.segments = split_at_python_calls(captured.root, captured.graph, self.make_part)
            for reason in variant.segments.reasons if variant.segments else ():
                function.note_fallback(reason.split()[0], "Python call", reason)
        return variant

    def make_part(self, root, graph):
        from .graph_companion import PartCompanion

        return PartCompanion(root, graph, self.options).compiled

    def run(self, variant, leaves):
        inputs, numbers = variant.inputs(leaves), variant.numbers(leaves)
        compiling = False  # in the background
        function, values = variant.function, [leaves[i] for i in variant.captured.values]
        if not all(is_plain_tensor(x) for x in inputs):
            function.note_fallback("", "generic form", "an attribute is no plain tensor")
        elif torch.is_grad_enabled() and any(x.requires_grad for x in inputs):
            self.warn_grad(function)
        elif variant.segments is not None:
            return variant.captured.result(variant.segments.run(values))
        else:
            result = _C.try_call(function, inputs, numbers)
            if result is not NotImplemented:
                return result
            compiling = function.is_compiling()
            if not compiling and function.wants_recording(inputs):
                return record(variant, inputs, numbers, values)
        function.count_generic_call()
        if self.strict and not compiling:
            raise RuntimeError("fxjit.compile(strict=True): the call would run in the generic form: "
                               + "; ".join(f["reason"] for f in function.report()["fallbacks"]))
        captured = variant.captured
        result = captured.generic(values, self.options, functools.partial(function.note_fallback, "", "interpreter"))
        if captured.generic.native and captured.result_structure is None and all(is_plain_tensor(x) for x in inputs):
            _C.set_generic(self.compiled, function, captured.generic.native, captured.root, captured.values,
                           inputs if captured.conditions else [])
        return captured.result(result)

    def warn_grad(self, function):
        function.note_fallback("", "generic form", GRADIENTS)
        self.warn_once(GRADIENTS, stacklevel=5)

    def warn_once(self, text, stacklevel):
        if text not in self.warned:
            self.warned.add(text)
            warnings.warn(f"fxjit: {text}", stacklevel=stacklevel)


GRADIENTS = "an input requires grad while grad mode is on, and training is not compiled; wrap the call in torch.no_grad()"
_TOO_MANY = "more than 8 different structures, constants or shapes of arguments that control flow tells apart"


def keyword_names(spec, leaves):
    """The names of the arguments by keyword, where each argument is one of the leaves; None where one is a container."""
    args, kwargs = pytree.tree_unflatten(leaves, spec)
    flat = (tuple(leaves[:len(args)]), dict(zip(kwargs, leaves[len(args):])))
    return tuple(kwargs) if len(args) + len(kwargs) == len(leaves) and flatten(flat)[1] == spec else None


# Methods of a module that return it: of a compiled one they return the compiled one.
_RETURN_SELF = frozenset("train eval to cpu cuda float double half bfloat16 type requires_grad_ apply to_empty".split())


def is_observed() -> bool:
    """Whether something wants to see each operation: a recording, a mode of torch, torch.jit.trace."""
    return (_C.Recording.active() or torch._C._is_torch_function_mode_enabled() or torch.jit.is_tracing()
            or torch._C._len_torch_dispatch_stack() > 0)

