"""Guards of a traced graph, checked where the graph is run: what a trace decided holds for the inputs that decide alike."""

import linecache
import operator

import torch

from .._C import Proxy, find_proxy
from ._guards import evaluate
from ._paths import lookup


class GuardError(AssertionError):
    """A decision that the trace of a graph took on its example inputs comes out differently for the inputs of a call."""


def bind_guards(graph, root):
    """The guards of `graph` with inputs by their position among the placeholders as they are now.

    A guard speaks about parameters by name. What the graph has been edited to read no more (a parameter that was
    removed, an attribute that `root` does not have) can come with no other value, and its guards say nothing.
    """
    if not graph.guards:
        return ()
    inputs = {n.target.lstrip("*"): (i, n.target.lstrip("*")) for i, n in enumerate(graph.find_nodes(op="placeholder"))}
    bound = (g.bound_to(inputs) for g in graph.guards)
    return tuple(g for g in bound if g is not None and all(lookup(root, path) is not None for path in g.attributes()))


def guards_on(graph, copies):
    """The guards of `graph` for a graph in which `copies`, {placeholder: its copy there}, stand for its inputs."""
    inputs = {old.target.lstrip("*"): (i, new.target.lstrip("*")) for i, (old, new) in enumerate(copies.items())}
    return [g for g in (guard.bound_to(inputs) for guard in graph.guards) if g is not None]


def check_guards(guards, values, root):
    """GuardError for the first of the bound guards that does not hold. values: one per placeholder. Where they are
    proxies the decision becomes one of their trace."""
    if find_proxy(values) is None:
        failed = next((g for g in guards if not g.holds(values, root)), None)
        if failed is not None:
            raise GuardError(_failure(failed, values, root))
        return
    for guard in guards:
        _hand_on(guard, values, root)


def _hand_on(guard, values, root):
    """A guard on proxies: with example inputs their trace decides it, and notes a guard of its own; otherwise the check
    is recorded as a call of torch._assert."""

    def call(function, args, kwargs):
        proxy = find_proxy((args, kwargs))
        if proxy is None:
            return function(*args, **kwargs)
        if function in (operator.is_, operator.is_not):  # a proxy is no constant
            return function(*args)
        return proxy.tracer.create_proxy("call_function", function, args, kwargs)

    holds = evaluate(guard.expression, values, root, call)
    if isinstance(holds, Proxy) and getattr(holds.tracer, "knowledge", None) is None:
        torch._assert(holds, f"the graph was traced for {guard}")
    elif not holds:
        raise GuardError(_failure(guard, values, root))


def _failure(guard, values, root):
    lines = [f"this call does not fit the graph, which was traced for {guard}"]
    if guard.place is not None:
        file, line = guard.place
        lines.append(f"  decided at {file}:{line}  {linecache.getline(file, line).strip()}".rstrip())
    if guard.traced:
        lines.append(f"  traced with {_listed(guard.traced)}")
    lines.append(f"  called with {_listed(guard.subjects(values, root))}")
    lines.append("fxjit.compile of the function traces again for such inputs; or trace it with other example_inputs.")
    return "\n".join(lines)


def _listed(subjects):
    return ", ".join(f"{name} = {value}" for name, value in subjects.items())
