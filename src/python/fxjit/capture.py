"""The checked FX trace: a graph of what a callable does, with everything that the trace rested on.

`fxjit.fx.Tracer` records what torch.fx records, silent wrong results included. What is here does not: whatever a Proxy
cannot stand for raises `CaptureError` with the reason, and what was read is guarded. The caller then runs eagerly.
"""

from __future__ import annotations

import contextlib
import dis

import torch
from torch.utils import _pytree as pytree

from . import _C
from .callees import has_hooks
from .checked_tracer import CheckedTracer
from .code_watcher import CodeWatcher, ExceptionHandled, unsampled_randomness_raises
from .fx._known import SHAPE_TEXT
from .generic_form import GenericForm
from .inlining import inline_composites
from .leaves import CONSTANT_TYPES, flatten, is_plain_tensor
from .proxies import CaptureError
from .state_guards import (GLOBAL_HOOKS, CellGuard, DefaultDType, DictGuard, FunctionGuard, ModuleGuard,
                           NoHooks, StateGuard, TypeGuard, global_guards, global_names, module_state, restore, target_state)


class Basis:
    """What a trace rested on.

    guards: objects with changed() -> str | None; dicts, cells, lists, sets, types, functions: what to watch, in which
    every guarded value lives, unless `unwatched` is true
    """

    def __init__(self, guards):
        self.guards = list(guards)

        def of(kind):
            return [g for g in self.guards if isinstance(g, kind)]

        states = of(StateGuard)
        self.dicts = [d for g in of(ModuleGuard) for d in g.dicts()] + [g.owner for g in of(DictGuard)]
        self.dicts += [d for g in states for d in g.dicts]
        self.lists = [x for g in states for x in g.lists]
        self.sets = [x for g in states for x in g.sets]
        self.cells = [g.cell for g in of(CellGuard)]
        self.types = [g.type for g in of(TypeGuard)]
        self.functions = [g.function for g in of(FunctionGuard)]
        self.unwatched = any(g.unwatched for g in states)

    def changed(self):
        return next(filter(None, (g.changed() for g in self.guards)), None)


class Capture(Basis):
    """A captured program.

    root: the module whose attributes the graph reads
    graph: one placeholder per value of the call; values: which of the flattened arguments these are, in the order of the
    placeholders; varying: those of them that are numbers. All others are constants of the graph.
    conditions: guards on the tensors of a call (fxjit.fx), on which control flow rests
    generic: what runs calls that no specialisation covers
    """

    def __init__(self, root, graph, guards, way, conditions=(), *, values, varying):
        super().__init__(guards)
        self.root, self.graph, self.way, self.conditions = root, graph, way, conditions
        self.values, self.varying = values, varying
        placeholders = [n for n in graph.nodes if n.op == "placeholder"]
        self.numbers = [n for n, i in zip(placeholders, values) if i in varying]
        self.generic = GenericForm(root, graph)
        self.result_structure = root.__dict__.get("result_structure")

    def result(self, value):
        """The program's result, of what the graph gives."""
        return value if self.result_structure is None else pytree.tree_unflatten(value, self.result_structure)

    def code(self):
        return _C.generic_code(self.graph)

    def fits(self, leaves) -> bool:
        """Whether the graph is the program for these flattened arguments."""
        values = [leaves[i] for i in self.values] if self.conditions else ()
        return all(c.holds(values, self.root) for c in self.conditions)


def _is_kept(value) -> bool:
    """Whether a graph's output gives back containers of these types."""
    kind = type(value)  # isinstance() is the program's while it is traced
    if issubclass(kind, dict):
        return kind is dict and all(map(_is_kept, value.values()))
    if issubclass(kind, (tuple, list)):
        return (kind in (tuple, list, torch.Size) or hasattr(value, "_fields")) and all(map(_is_kept, value))
    return kind not in pytree.SUPPORTED_NODES


def _flat_result(root, result):
    """The program's result; where its containers are others than a graph has, its leaves, and their structure in
    root.result_structure."""
    if _is_kept(result):
        return result
    leaves, root.__dict__["result_structure"] = flatten(result)
    return tuple(leaves)


def _flat_root(target, spec, leaves, values):
    """A module whose forward takes the leaves at `values` and calls `target` with the whole arguments."""
    names = [f"arg_{k}" for k in range(len(values))]
    constants = [None if i in values else leaf for i, leaf in enumerate(leaves)]

    class Root(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.target = target

    def call(self, *given):
        filled = list(constants)
        for i, v in zip(values, given):
            filled[i] = v
        args, kwargs = pytree.tree_unflatten(filled, spec)
        result = _flat_result(self, self.target(*args, **kwargs))
        now, structure = flatten((args, kwargs))
        if structure != spec or any(a is not b for a, b in zip(now, filled)):
            raise CaptureError("the program changes a container among its arguments")
        return result

    scope = {"call": call}
    exec(compile(f"def forward(self, {', '.join(names)}): return call(self, {', '.join(names)})", "<fxjit root>", "exec"),
         scope)
    Root.forward = scope["forward"]
    return Root()


def check_root(target):
    if isinstance(target, torch.nn.Module):
        if "forward" in target.__dict__:
            raise CaptureError("the module has a forward of its own (set on the instance)")
        if has_hooks(target):
            raise CaptureError("the module has hooks")


def _check_number_tests(functions):
    """What a proxy of a number would answer wrongly without raising."""
    for code in functions:
        if {"type", "callable"} & global_names(code) or any(i.opname == "MATCH_CLASS" for i in dis.get_instructions(code)):
            raise CaptureError(f"{code.co_name} may test the type of a number that varies")


def capture(target, spec, leaves, varying=frozenset()) -> Capture:
    """Traces `target` (module or function) for these flattened arguments; the numbers at the positions `varying` stand
    for any of their type. Raises CaptureError with the reason, and with what it rests on."""
    modules = dict(target.named_modules()) if isinstance(target, torch.nn.Module) else {}
    before, state, watcher = [ModuleGuard(m, path) for path, m in modules.items()], [], CodeWatcher()
    try:
        state += [g for path, m in modules.items() for g in module_state(m, path)] + target_state(target)
        return _capture(target, spec, leaves, varying, before, state, watcher)
    except CaptureError as e:
        with contextlib.suppress(CaptureError):
            e.basis = Basis([*before, *state, *global_guards(watcher.functions)])
        raise


def _capture(target, spec, leaves, varying, before, state, watcher):
    check_root(target)
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor) and not is_plain_tensor(leaf):
            raise CaptureError(f"an argument is a tensor of another kind: {type(leaf).__name__}, layout {leaf.layout}")
        if not isinstance(leaf, torch.Tensor) and not isinstance(leaf, CONSTANT_TYPES):
            raise CaptureError(f"an argument is of type {type(leaf).__name__}")
    if any(GLOBAL_HOOKS):
        raise CaptureError("global module hooks are registered")
    # Tensors first: guards on them count the placeholders.
    tensors = [i for i, leaf in enumerate(leaves) if is_plain_tensor(leaf)]
    values = tensors + sorted(varying)
    examples = {f"arg_{k}": leaves[i] for k, i in enumerate(tensors)}
    number_types = {f"arg_{k}": type(leaves[i]) for k, i in enumerate(values) if i in varying}
    root, tracer = _flat_root(target, spec, leaves, values), CheckedTracer(number_types)
    watcher.count_nodes = lambda: len(tracer.graph.nodes) if hasattr(tracer, "graph") else 0
    try:
        with unsampled_randomness_raises(), watcher:
            graph = tracer.trace(root, example_inputs=examples)
        watcher.check()
        tracer.check_constants()
        if varying:
            _check_number_tests(watcher.functions)
        if what := next(filter(None, (g.changed() for g in before + state)), None):
            raise CaptureError(f"the program writes {what}")
        if tracer.knowledge.vague_texts and any(
                SHAPE_TEXT in f"{n.args}{n.kwargs}" for n in graph.nodes if n.target is not torch._assert):
            raise CaptureError("the text of a shape is part of the result")
    except CaptureError:
        restore(before, state)
        raise
    except ExceptionHandled as e:
        restore(before, state)
        raise CaptureError(str(e)) from None
    except Exception as e:  # noqa: BLE001 - whatever a Proxy made the program do, eager decides what is right
        restore(before, state)
        raise CaptureError(f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}") from e
    remove_decided(tracer, graph)
    inline_composites(graph, tracer.numbers)
    guards = before + state + list(global_guards(watcher.functions))
    kinds = {type(m) for m in target.modules()} if isinstance(target, torch.nn.Module) else set()
    kinds |= {t for g in guards if isinstance(g, StateGuard) for t in g.types}
    guards += [TypeGuard(t) for t in kinds]
    guards += [DictGuard(d, [], "global module hooks") for d in GLOBAL_HOOKS] + [NoHooks(), DefaultDType()]
    return Capture(root, graph, guards, "checked FX trace", graph.guards, values=values, varying=varying)


def remove_decided(tracer, graph):
    """Removes sizes, dtypes and comparisons of them that only control flow looked at: guards hold them."""
    for node in reversed(graph.nodes):
        if node.op in ("call_function", "call_method") and not node.users and tracer.knowledge.is_host(node):
            graph.erase_node(node)
