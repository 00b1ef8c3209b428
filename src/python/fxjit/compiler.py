"""fxjit.compile: a callable that records its first call, and runs machine code from then on."""

from __future__ import annotations

import functools
import threading
import types
import warnings

import torch
from torch.utils import _pytree as pytree

from . import _C, fx
from .fx._run import SnapshotInterpreter
from .capture import (Capture, CaptureError, ModuleGuard, capture, constant_key, has_hooks, inline_composites,
                      is_plain_tensor)
from .numbers import Positions, is_number
from .recording import record
from .segments import split_at_python_calls

_TENSOR = object()  # stands for a tensor among the constants of a variant


class Explanation:
    """What explain() returns: attributes to read, and a readable str().

    capture: how the program became a graph; specialisations: one dict each (inputs, guards, kernels, library_calls,
    aten_calls, stages in milliseconds); fallbacks: calls that went elsewhere and why; kernels, stages: of all
    specialisations together; guards: for each captured graph, what its control flow found and calls must share.
    """

    def __init__(self, reports, notes, guards=(), picture=None):
        self.picture = picture
        self.capture = reports[0]["capture"] if reports else "nothing was called yet"
        self.guards = [[str(g) for g in conditions] for conditions in guards]
        self.notes = notes + [n for r in reports for n in r["notes"]]
        self.specialisations = [s for r in reports for s in r["specialisations"]]
        self.fallbacks = [f for r in reports for f in r["fallbacks"]]
        self.generic_calls = sum(r["generic_calls"] for r in reports)
        self.recorded_calls = sum(r["recorded_calls"] for r in reports)
        self.kernels = [types.SimpleNamespace(**k) for s in self.specialisations for k in s["kernels"]]
        self.stages: dict[str, float] = {}
        for s in self.specialisations:
            for stage, ms in s["stages"].items():
                self.stages[stage] = self.stages.get(stage, 0.0) + ms
        texts = [_guards_text(g) + r["text"] for g, r in zip(self.guards or [[]] * len(reports), reports)]
        self._text = "\n".join([f"note: {n}" for n in notes] + texts) or self.capture + "\n"

    def draw(self, path):
        """Writes a picture of the program, as .svg or .dot: each node in the colour of what became of it."""
        self.picture().write(path)

    def __str__(self):
        return self._text

    __repr__ = __str__


def _guards_text(guards):
    return f"captured for: {', '.join(guards)}\n" if guards else ""


class _Variant:
    """One structure of arguments with one set of constants, and sizes and types that control flow tells apart: its
    captured program and its compiled function.

    hot: what the hot call compares arguments with (constants, and guards on sizes), or None where it cannot
    """

    def __init__(self, captured: Capture, function, attributes):
        self.captured, self.function, self.attributes, self.hot = captured, function, attributes, None
        self.segments = None  # where Python calls stand in the graph: parts between them

    def inputs(self, leaves):
        c = self.captured
        return [leaves[i] for i in c.values if i not in c.varying] + [d[k] for d, k in self.attributes]

    def numbers(self, leaves):
        return [leaves[i] for i in self.captured.values if i in self.captured.varying]

    def size_programs(self, leaves):
        """The captured graph's guards for the hot call; None where it cannot check them."""
        inputs, programs = self.inputs(leaves), []

        def position(path):
            owner, name = _owner(self.captured.root, path)
            tables = [id(t) for t in (owner._parameters, owner._buffers, owner.__dict__)]
            found = (i for i, (d, k) in enumerate(self.attributes) if k == name and id(d) in tables)
            i = next(found, None)
            return None if i is None else len(inputs) - len(self.attributes) + i

        for guard in self.captured.conditions:
            made = guard.size_programs(inputs, position)
            if made is None:
                return None
            programs += made
        return programs


class _Companion:
    """Everything about a compiled callable that is not the hot path."""

    def __init__(self, target, options):
        self.target, self.options = target, options
        self.strict = bool(options.get("strict", False))
        self.lock = threading.RLock()
        self.variants: dict = {}  # by structure and constants of the arguments: the variants for different shapes
        self.positions = Positions()
        self.failures: dict = {}  # by the key of a variant: why it cannot be captured
        self.notes: list[str] = []
        self.eager_reason = None
        self.warned_grad = False
        self.compiled = _C.Compiled(self.call, self)

    # -- the surface --

    def explain(self) -> Explanation:
        """How calls run: capture way, kernels with their source nodes and bytes, library and ATen calls, fallbacks with
        reasons, milliseconds by stage."""
        variants = self.all_variants()
        for v in list(variants):
            variants += [p for part in (v.segments.parts if v.segments else ()) for p in part.all_variants()]
        return Explanation([v.function.report() for v in variants], list(self.notes),
                           [v.captured.conditions for v in variants], self.picture)

    def all_variants(self) -> list[_Variant]:
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
        return "\n".join(parts) or "; nothing was called yet\n"

    def specialised_code(self) -> str:
        return "".join("\n" + v.function.code() for v in self.all_variants())

    def reset(self):
        """Forgets every trace, specialisation and failure."""
        with self.lock:
            _C.clear_variants(self.compiled)
            _C.watch(self.compiled, [], [], [])
            self.variants.clear()
            self.positions = Positions()
            self.failures.clear()
            self.notes.clear()
            self.eager_reason = None

    def __getattr__(self, name):
        if name == "target":
            raise AttributeError(name)
        value = getattr(self.target, name)
        if name not in _RETURN_SELF or not isinstance(self.target, torch.nn.Module):
            return value

        @functools.wraps(value)
        def method(*args, **kwargs):
            result = value(*args, **kwargs)
            return self.compiled if result is self.target else result
        return method

    def __setattr__(self, name, value):
        if name in _COMPANION_FIELDS or "compiled" not in self.__dict__:
            object.__setattr__(self, name, value)
        else:
            setattr(self.target, name, value)

    def __repr__(self):
        return f"fxjit.compile({self.target!r})"

    # -- calls that the hot path passed on --

    def call(self, args, kwargs):
        if _is_observed():
            return self.target(*args, **kwargs)
        leaves, spec = pytree.tree_flatten((args, kwargs))
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
        if variant is not None and varying and not known:
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
            constants, programs = variant.hot
            _C.add_variant(self.compiled, variant.function, constants, _TENSOR, variant.attributes, programs)

    def eager(self, reason, args, kwargs):
        reason = reason or self.eager_reason
        if reason not in self.notes:
            self.notes.append(reason)
        if self.strict:
            raise RuntimeError(f"fxjit.compile(strict=True): the program would run eagerly: {reason}")
        return self.target(*args, **kwargs)

    def variant_for(self, key, spec, leaves, varying):
        if self.variants:
            self.recheck()
        tensors = [x for x in leaves if is_plain_tensor(x)]
        variant = next((v for v in self.variants.get(key, ()) if v.captured.fits(tensors)), None)
        if variant is not None:
            return variant
        if key in self.failures:
            self.eager_reason = self.failures[key]
            return None
        if len(self.all_variants()) >= 8:
            self.eager_reason = "more than 8 different structures, constants or shapes of arguments that control flow tells apart"
            return None
        try:
            captured = self.capture(spec, leaves, varying)
        except CaptureError as e:
            self.eager_reason = f"not captured: {e}"
            if len(self.failures) < 1024:
                self.failures[key] = self.eager_reason
            return None
        variant = self.make_variant(captured, leaves)
        self.variants.setdefault(key, []).append(variant)
        args_spec_is_flat = spec == pytree.tree_flatten((tuple(leaves), {}))[1]
        programs = variant.size_programs(leaves)
        if args_spec_is_flat and not captured.unwatched and programs is not None and variant.segments is None:
            variant.hot = [_TENSOR if is_plain_tensor(x) else type(x) if i in varying else x
                           for i, x in enumerate(leaves)], programs
        self.add_hot(variant)
        self.watch()
        return variant

    def capture(self, spec, leaves, varying) -> Capture:
        return capture(self.target, spec, leaves, varying)

    def watch(self):
        def all_of(field):
            return list({id(x): x for v in self.all_variants() for x in getattr(v.captured, field)}.values())
        _C.watch(self.compiled, all_of("dicts"), all_of("cells"), all_of("lists"))

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
        variant = _Variant(captured, function, attributes)
        if not self.strict:
            variant.segments = split_at_python_calls(captured.root, captured.graph, self.make_part)
            for reason in variant.segments.reasons if variant.segments else ():
                function.note_fallback(reason.split()[0], "Python call", reason)
        return variant

    def make_part(self, root, graph):
        return _PartCompanion(root, graph, self.options).compiled

    def run(self, variant, leaves):
        inputs, numbers = variant.inputs(leaves), variant.numbers(leaves)
        function, values = variant.function, [leaves[i] for i in variant.captured.values]
        if not all(is_plain_tensor(x) for x in inputs):
            function.note_fallback("", "generic form", "an attribute is no plain tensor")
        elif torch.is_grad_enabled() and any(x.requires_grad for x in inputs):
            self.warn_grad(function)
        elif variant.segments is not None:
            return variant.segments.run(values)
        else:
            result = _C.try_call(function, inputs, numbers)
            if result is not NotImplemented:
                return result
            if function.wants_recording(inputs):
                return record(variant, inputs, numbers, values)
        function.count_generic_call()
        if self.strict:
            raise RuntimeError("fxjit.compile(strict=True): the call would run in the generic form: "
                               + "; ".join(f["reason"] for f in function.report()["fallbacks"]))
        return variant.captured.generic(values)

    def warn_grad(self, function):
        reason = "an input requires grad while grad mode is on, and training is not compiled; wrap the call in torch.no_grad()"
        function.note_fallback("", "generic form", reason)
        if not self.warned_grad:
            self.warned_grad = True
            warnings.warn(f"fxjit: {reason}", stacklevel=4)


# Methods of a module that return it: of a compiled one they return the compiled one.
_RETURN_SELF = frozenset("train eval to cpu cuda float double half bfloat16 type requires_grad_ apply to_empty".split())


def _is_observed() -> bool:
    """Whether something wants to see each operation: a recording, a mode of torch, torch.jit.trace."""
    return (_C.Recording.active() or torch._C._is_torch_function_mode_enabled() or torch.jit.is_tracing()
            or torch._C._len_torch_dispatch_stack() > 0)


_COMPANION_FIELDS = {"target", "options", "strict", "lock", "variants", "positions", "failures", "notes", "eager_reason",
                     "warned_grad", "compiled", "snapshot"}


def _owner(module, path):
    *parents, name = path.split(".")
    for p in parents:
        module = getattr(module, p)
    return module, name


def attribute_sources(module, graph) -> list:
    """(dict, key) of each tensor that the graph reads from modules: get_attr nodes and what leaf modules hold."""
    found: dict = {}

    def add(owner, name):
        for d in (owner._parameters, owner._buffers, owner.__dict__):
            if isinstance(d.get(name), torch.Tensor):
                found.setdefault((id(d), name), (d, name))

    for node in graph.nodes:
        if node.op == "get_attr":
            add(*_owner(module, node.target))
        elif node.op == "call_module":
            for sub in module.get_submodule(node.target).modules():
                for table in (sub._parameters, sub._buffers):
                    for name in table:
                        add(sub, name)
    return list(found.values())


class _GraphCompanion(_Companion):
    """For a GraphModule: its snapshot is the program."""

    def varying(self, structure, leaves):
        return frozenset(i for i, x in enumerate(leaves) if is_number(x))  # the graph is what it is: nothing to trace

    def give_up(self, structure):
        return False

    def settle(self, structure):
        pass

    def capture(self, spec, leaves, varying):
        if has_hooks(self.target):
            raise CaptureError("the module has hooks")
        return self.capture_snapshot(self.target._snapshot, spec, leaves, varying)

    def capture_snapshot(self, snapshot, spec, leaves, varying):
        target = self.target
        plain = all(i in varying or is_plain_tensor(x) for i, x in enumerate(leaves))
        if not plain or spec != pytree.tree_flatten((tuple(leaves), {}))[1]:
            raise CaptureError("an argument of the graph is no plain tensor, int or float")
        placeholders = [n for n in snapshot.nodes if n.op == "placeholder"]
        if len(placeholders) != len(leaves) or any(n.target.startswith("*") for n in placeholders):
            raise CaptureError("the arguments are not one value for each placeholder")
        higher = next((n for n in snapshot.nodes if isinstance(n.target, torch._ops.HigherOrderOperator)), None)
        if higher is not None:  # has no kernel under the recorder's dispatch key
            raise CaptureError(f"{higher.name} calls the higher-order operator {higher.target.name()}")
        graph = fx.Graph()
        result = graph.graph_copy(snapshot, {})
        try:
            graph.output(snapshot._codegen.process_outputs(result))
        except (TypeError, NotImplementedError, ValueError) as e:
            raise CaptureError(f"the graph's calling convention builds its result in Python: {e}") from e
        placeholders = [n for n in graph.nodes if n.op == "placeholder"]
        inline_composites(graph, {placeholders[i]: type(leaves[i]) for i in varying})
        guards = [ModuleGuard(m, path) for path, m in target.named_modules()]
        return Capture(target, graph, guards, [d for g in guards for d in g.dicts()], "the graph of a GraphModule",
                       values=list(range(len(leaves))), varying=varying)


class _SnapshotCompanion(_GraphCompanion):
    """What runs when a GraphModule is called: bound to one snapshot, silent about gradients."""

    def __init__(self, module):
        self.snapshot = module._snapshot
        super().__init__(module, {})
        self.warned_grad = True

    def capture(self, spec, leaves, varying):
        return self.capture_snapshot(self.snapshot, spec, leaves, varying)

    def call(self, args, kwargs):
        if _is_observed():
            return SnapshotInterpreter(self.target, self.snapshot).run_parameters(args)
        return super().call(args, kwargs)

    def eager(self, reason, args, kwargs):
        return SnapshotInterpreter(self.target, self.snapshot).run_parameters(args)


class _PartCompanion(_SnapshotCompanion):
    """A part of a program between Python calls."""

    def __init__(self, root, graph, options):
        self.snapshot = graph
        _Companion.__init__(self, root, options)
        self.warned_grad = True


def snapshot_executor(module: fx.GraphModule):
    """The callable behind a GraphModule: one positional argument per parameter of forward."""
    return _SnapshotCompanion(module).compiled


def compile(obj=None, *, strict=False, fast_math=False, **options):  # noqa: A001 - the name that users know
    """Compiles a callable: the first call runs eagerly and is recorded, later ones run machine code.

    obj: an nn.Module, a function, a GraphModule of fxjit.fx or torch.fx, or a torch.export.ExportedProgram
    strict: what cannot be compiled raises RuntimeError with the reason, instead of running in ATen or Python
    fast_math: allows contraction, reassociation and approximations beyond eager's rounding
    options: the others of the table in docs/options.md; an unknown one is a TypeError that names those there are

    The result is callable, forwards obj's attributes, and has explain(), code and reset(). Results equal eager's.
    """
    options = dict(options, strict=strict, fast_math=fast_math)
    _C.check_options(options)
    if obj is None:
        return lambda f: compile(f, **options)
    if isinstance(obj, (torch.fx.GraphModule, torch.export.ExportedProgram)):
        from .interop import from_torch
        obj = from_torch(obj)
    if not callable(obj):
        raise TypeError(f"fxjit.compile takes a module or a function, not {type(obj).__name__}")
    companion = _GraphCompanion if isinstance(obj, fx.GraphModule) else _Companion
    return companion(obj, options).compiled
