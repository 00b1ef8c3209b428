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
                      is_plain_tensor, is_torch_function)

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
    captured program and its compiled function."""

    def __init__(self, captured: Capture, function, attributes):
        self.captured, self.function, self.attributes = captured, function, attributes

    def inputs(self, tensors):
        return tensors + [d[k] for d, k in self.attributes]

    def size_programs(self, tensors):
        """The captured graph's guards for the hot call; None where it cannot check them."""
        def position(path):
            owner, name = _owner(self.captured.root, path)
            tables = [id(t) for t in (owner._parameters, owner._buffers, owner.__dict__)]
            found = (i for i, (d, k) in enumerate(self.attributes) if k == name and id(d) in tables)
            i = next(found, None)
            return None if i is None else len(tensors) + i

        inputs, programs = self.inputs(tensors), []
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
        try:
            key = (spec, tuple(_TENSOR if is_plain_tensor(x) else constant_key(x) for x in leaves))
            hash(key)
        except TypeError:
            return self.eager("an argument is of an unhashable type", args, kwargs)
        with self.lock:
            variant = self.variant_for(key, spec, leaves)
        if variant is None:
            return self.eager(None, args, kwargs)
        tensors = [x for x in leaves if is_plain_tensor(x)]
        return self.run(variant, tensors)

    def eager(self, reason, args, kwargs):
        reason = reason or self.eager_reason
        if reason not in self.notes:
            self.notes.append(reason)
        if self.strict:
            raise RuntimeError(f"fxjit.compile(strict=True): the program would run eagerly: {reason}")
        return self.target(*args, **kwargs)

    def variant_for(self, key, spec, leaves):
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
            captured = self.capture(spec, leaves)
        except CaptureError as e:
            self.eager_reason = f"not captured: {e}"
            if len(self.failures) < 1024:
                self.failures[key] = self.eager_reason
            return None
        variant = self.make_variant(captured, leaves)
        self.variants.setdefault(key, []).append(variant)
        args_spec_is_flat = spec == pytree.tree_flatten((tuple(leaves), {}))[1]
        programs = variant.size_programs(tensors)
        if args_spec_is_flat and not captured.unwatched and programs is not None:
            constants = [_TENSOR if is_plain_tensor(x) else x for x in leaves]
            _C.add_variant(self.compiled, variant.function, constants, _TENSOR, variant.attributes, programs)
        self.watch()
        return variant

    def capture(self, spec, leaves) -> Capture:
        return capture(self.target, spec, leaves)

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
        names = [n.name for n in captured.graph.nodes if n.op == "placeholder"]
        names += [f"attribute {k}" for _, k in attributes]
        function = _C.make_function(self.options, names)
        function.set_capture(captured.way, [])
        return _Variant(captured, function, attributes)

    def run(self, variant, tensors):
        inputs = variant.inputs(tensors)
        function = variant.function
        if not all(is_plain_tensor(x) for x in inputs):
            function.note_fallback("", "generic form", "an attribute is no plain tensor")
        elif torch.is_grad_enabled() and any(x.requires_grad for x in inputs):
            self.warn_grad(function)
        else:
            result = _C.try_call(function, inputs)
            if result is not NotImplemented:
                return result
            if function.wants_recording(inputs):
                return record(variant, inputs, tensors)
        function.count_generic_call()
        if self.strict:
            raise RuntimeError("fxjit.compile(strict=True): the call would run in the generic form: "
                               + "; ".join(f["reason"] for f in function.report()["fallbacks"]))
        return variant.captured.generic(tensors)

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


_COMPANION_FIELDS = {"target", "options", "strict", "lock", "variants", "failures", "notes", "eager_reason", "warned_grad", "compiled",
                     "snapshot"}


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


# ---- recording ----

# torch.nn modules whose forward hands its input to operators without looking at sizes.
_SIZE_BLIND_MODULES = {getattr(torch.nn, n) for n in (
    "Linear Identity ReLU ReLU6 GELU SiLU Sigmoid Tanh Hardswish Hardsigmoid Hardtanh ELU LeakyReLU Softplus Mish "
    "LayerNorm RMSNorm Dropout Conv1d Conv2d Conv3d BatchNorm1d BatchNorm2d BatchNorm3d Embedding MaxPool1d MaxPool2d "
    "AvgPool1d AvgPool2d AdaptiveAvgPool1d AdaptiveAvgPool2d Flatten Softmax LogSoftmax GroupNorm").split()}
_SIZE_BLIND_FUNCTIONS = {getattr(torch.nn.functional, n) for n in (
    "relu relu6 gelu silu sigmoid tanh hardswish hardsigmoid hardtanh elu leaky_relu softplus mish layer_norm rms_norm "
    "dropout softmax log_softmax linear conv1d conv2d conv3d embedding").split()}


class _Recorder(SnapshotInterpreter):
    """Runs a captured program with one scope of the recorder per node."""

    def __init__(self, captured, recording):
        super().__init__(captured.root, captured.graph)
        self.recording = recording
        self.host_values: set = set()  # nodes whose value is no tensor

    def run_node(self, n):
        self.recording.begin_scope(n.name, self.looks_at_sizes(n))
        try:
            result = super().run_node(n)
        finally:
            self.recording.end_scope()
        if n.op not in ("output", "placeholder") and not isinstance(result, torch.Tensor):
            self.host_values.add(n)
        return result

    def looks_at_sizes(self, n):
        if n.op in ("placeholder", "get_attr"):
            return False
        if any(i in self.host_values for i in n.all_input_nodes):
            return True  # a result of the program among them: it is a constant of the record
        if n.op == "output":
            return False
        if n.op == "call_module":
            sub = self.module.get_submodule(n.target)
            if getattr(type(sub), "reads_sizes_only", False):
                return True
            if has_hooks(sub) or "forward" in sub.__dict__ or not type(sub).__module__.startswith("torch.nn"):
                self.recording.refuse(f"{n.name} calls the Python module {type(sub).__name__}")
            return type(sub) not in _SIZE_BLIND_MODULES
        if n.op == "call_method":
            return isinstance(getattr(torch.Tensor, n.target, None), types.FunctionType)
        if not is_torch_function(n.target):
            self.recording.refuse(f"{n.name} calls the Python function {getattr(n.target, '__name__', n.target)}")
        return isinstance(n.target, types.FunctionType) and n.target not in _SIZE_BLIND_FUNCTIONS


def record(variant, inputs, tensors):
    """The recorded call: an ordinary eager run, whose record is compiled."""
    recording = _C.Recording(variant.function, inputs)
    try:
        result = _Recorder(variant.captured, recording).run(*tensors, enable_io_processing=False)
    except BaseException:
        recording.refuse("the call raised an exception")
        recording.finish([], _C.STRUCTURE_TUPLE, None)
        raise
    outputs, kind, builder = structure_of(result)
    recording.finish(outputs, kind, builder)
    return result


def structure_of(result):
    """(tensors, kind, builder): how the result is made of its tensors; other leaves are constants of the builder."""
    if is_plain_tensor(result):
        return [result], _C.STRUCTURE_SINGLE, None
    if type(result) in (tuple, list) and all(is_plain_tensor(x) for x in result):
        return list(result), _C.STRUCTURE_TUPLE if type(result) is tuple else _C.STRUCTURE_LIST, None
    leaves, spec = pytree.tree_flatten(result)
    tensors = [x for x in leaves if isinstance(x, torch.Tensor)]
    constants = [None if isinstance(x, torch.Tensor) else x for x in leaves]
    places = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]

    def build(values):
        filled = list(constants)
        for i, v in zip(places, values):
            filled[i] = v
        return pytree.tree_unflatten(filled, spec)
    return tensors, _C.STRUCTURE_BUILT, build


class _GraphCompanion(_Companion):
    """For a GraphModule: its snapshot is the program."""

    def capture(self, spec, leaves):
        if has_hooks(self.target):
            raise CaptureError("the module has hooks")
        return self.capture_snapshot(self.target._snapshot, spec, leaves)

    def capture_snapshot(self, snapshot, spec, leaves):
        target = self.target
        if any(not is_plain_tensor(x) for x in leaves) or spec != pytree.tree_flatten((tuple(leaves), {}))[1]:
            raise CaptureError("an argument of the graph is no plain tensor")
        placeholders = [n for n in snapshot.nodes if n.op == "placeholder"]
        if len(placeholders) != len(leaves) or any(n.target.startswith("*") for n in placeholders):
            raise CaptureError("the arguments are not one tensor for each placeholder")
        higher = next((n for n in snapshot.nodes if isinstance(n.target, torch._ops.HigherOrderOperator)), None)
        if higher is not None:  # has no kernel under the recorder's dispatch key
            raise CaptureError(f"{higher.name} calls the higher-order operator {higher.target.name()}")
        graph = fx.Graph()
        result = graph.graph_copy(snapshot, {})
        try:
            graph.output(snapshot._codegen.process_outputs(result))
        except (TypeError, NotImplementedError, ValueError) as e:
            raise CaptureError(f"the graph's calling convention builds its result in Python: {e}") from e
        inline_composites(graph)
        guards = [ModuleGuard(m, path) for path, m in target.named_modules()]
        return Capture(target, graph, guards, [d for g in guards for d in g.dicts()], "the graph of a GraphModule")


class _SnapshotCompanion(_GraphCompanion):
    """What runs when a GraphModule is called: bound to one snapshot, silent about gradients."""

    def __init__(self, module):
        self.snapshot = module._snapshot
        super().__init__(module, {})
        self.warned_grad = True

    def capture(self, spec, leaves):
        return self.capture_snapshot(self.snapshot, spec, leaves)

    def call(self, args, kwargs):
        if _is_observed():
            return SnapshotInterpreter(self.target, self.snapshot).run_parameters(args)
        return super().call(args, kwargs)

    def eager(self, reason, args, kwargs):
        return SnapshotInterpreter(self.target, self.snapshot).run_parameters(args)


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
