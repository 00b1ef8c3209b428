"""One program through torch.fx and through fxjit.fx: the same graph, or an error of the same class."""

import enum
import math
import signal
import warnings
from dataclasses import dataclass
from typing import Any, Callable

import torch

SAME, SAME_ERROR, FURTHER, DIFFERS, SKIPPED = "same graph", "same error", "gets further", "differs", "skipped"


class Skip(Exception):
    """A program that cannot be made here, and why."""


class TimedOut(Exception):
    """A trace that took too long to be one."""


@dataclass
class Case:
    """A program. `make` gives (root, concrete_args)."""

    name: str
    make: Callable[[], tuple[Any, Any]]


@dataclass
class Outcome:
    name: str
    verdict: str
    detail: str = ""
    nodes: int = 0


def attempt(action, seconds):
    """(result, None) or (None, exception); `seconds` None: no limit."""
    if seconds is None:
        return _call(action)

    def stop(*_):
        raise TimedOut(f"more than {seconds} s")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        return _call(action)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def _call(action):
    try:
        return action(), None
    except Exception as error:  # noqa: BLE001: whatever a program raises is what is compared
        return None, error


def trace(fx, root, concrete_args, tracer=None):
    """The graph; what the trace left on the module is taken off again."""
    module = root if isinstance(root, torch.nn.Module) else None
    before = [set(vars(module)), set(module._buffers), set(module._parameters)] if module is not None else None
    torch.manual_seed(0)
    try:
        return (tracer or fx.Tracer)().trace(root, concrete_args)
    finally:
        if module is not None:
            for table, names in zip((vars(module), module._buffers, module._parameters), before):
                for name in set(table) - names:
                    del table[name]


def value(a, index):
    """A node argument as something that compares."""
    if hasattr(a, "op") and hasattr(a, "all_input_nodes"):
        return ("node", index.get(a, "foreign"))
    if isinstance(a, torch.Tensor):
        return ("tensor", id(a))
    if isinstance(a, slice):
        return ("slice", *(value(part, index) for part in (a.start, a.stop, a.step)))
    if isinstance(a, dict):
        return ("dict", type(a).__name__, tuple((value(k, index), value(v, index)) for k, v in a.items()))
    if isinstance(a, (list, tuple)):
        return (type(a).__name__, tuple(value(item, index) for item in a))
    if isinstance(a, float) and math.isnan(a):
        return ("nan",)
    if isinstance(a, enum.Enum) or a is None or isinstance(a, (bool, int, float, complex, str)):
        return (type(a).__name__, a)
    if callable(a):
        return callee(a)
    try:
        hash(a)
    except TypeError:
        return (type(a).__name__, repr(a))
    return (type(a).__name__, a)


def callee(target):
    """Functions of either fx's own count as one."""
    module = getattr(target, "__module__", None) or ""
    if module.startswith(("torch.fx.", "fxjit.fx.")):
        return ("fx function", target.__qualname__)
    return ("callable", id(target))


def rows(graph):
    """What is compared of each node."""
    index = {node: i for i, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        stack = node.meta.get("nn_module_stack") or {}
        yield {
            "op": node.op,
            "name": node.name,
            "target": node.target if isinstance(node.target, str) else callee(node.target),
            "args": value(tuple(node.args), index),
            "kwargs": value(dict(node.kwargs), index),
            "type": repr(node.type),
            "users": tuple(index[user] for user in node.users),
            "module stack": tuple((key, str(entry)) for key, entry in stack.items()),
        }


def graph_difference(theirs, ours):
    """"" where the graphs are equal, else the first difference."""
    a, b = list(rows(theirs)), list(rows(ours))
    for i, (x, y) in enumerate(zip(a, b)):
        for key in x:
            if x[key] != y[key]:
                return f"node {i} ({x['name']}): {key} {y[key]!r:.200} instead of {x[key]!r:.200}"
    if len(a) != len(b):
        return f"{len(b)} nodes instead of {len(a)}"
    return ""


def describe(error):
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:160]


def trace_both(case, seconds, tracers):
    """((graph, error) of torch.fx, the same of fxjit.fx), or an Outcome where there is no program."""
    import fxjit.fx
    import torch.fx

    made, problem = attempt(case.make, seconds)
    if problem is not None:
        return Outcome(case.name, SKIPPED, describe(problem))
    theirs = attempt(lambda: trace(torch.fx, *made, tracers[0]), seconds)
    if tracers[2]:
        made, _ = attempt(case.make, seconds)
    return theirs, attempt(lambda: trace(fxjit.fx, *made, tracers[1]), seconds)


def refuses_proxies(error):
    """Did a C function of torch refuse a Proxy? fxjit.fx records such calls: factories on symbolic sizes, and methods of
    torch.Tensor that are called through the class."""
    return isinstance(error, TypeError) and "Proxy" in str(error)


def judge(name, theirs, their_error, ours, our_error):
    if their_error is None and our_error is None:
        difference = graph_difference(theirs, ours)
        return Outcome(name, DIFFERS if difference else SAME, difference, len(theirs.nodes))
    if their_error is not None and our_error is not None and isinstance(our_error, type(their_error)):
        return Outcome(name, SAME_ERROR, describe(their_error))
    if refuses_proxies(their_error) and (our_error is None or type(our_error).__name__ == "TraceError"):
        return Outcome(name, FURTHER, describe(their_error))
    said = describe(our_error) if our_error is not None else f"a graph of {len(ours.nodes)} nodes"
    wanted = describe(their_error) if their_error is not None else f"a graph of {len(theirs.nodes)} nodes"
    return Outcome(name, DIFFERS, f"{said} instead of {wanted}")


def compare(case, seconds=None, tracers=(None, None)):
    """The outcome of one case. `tracers`: classes to use instead of the two Tracers.

    Both trace one program, so that what it holds is the same; a program that a trace changes (models that cache values)
    is made once more for the second one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for anew in (False, True):
            both = trace_both(case, seconds, (*tracers, anew))
            if isinstance(both, Outcome):
                return both
            outcome = judge(case.name, *both[0], *both[1])
            if outcome.verdict != DIFFERS:
                break
    return outcome
