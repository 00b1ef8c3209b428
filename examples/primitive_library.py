"""A library of composite operations.

A composite is a Python function made of several tensor operations that stays one node of the graph. That leaves the
choice of level to whoever looks at the graph: a backend may want `sigmoid_lowp` as a whole, another one its parts. This
program traces a module at the level of composites, opens them in three ways, and checks that every form computes the
same.

Run it with `python examples/primitive_library.py`.
"""

import torch

import fxjit.fx as fx


def sigmoid_lowp(x: torch.Tensor):
    """A sigmoid of half-precision values that is computed in single precision."""
    x = x.float()
    x = x.sigmoid()
    return x.half()


def add_lowp(a: torch.Tensor, b: torch.Tensor):
    """A sum of half-precision values that is computed in single precision."""
    a, b = a.float(), b.float()
    c = a + b
    return c.half()


# From here on calls of the two with traced values are recorded as one node each.
fx.wrap(sigmoid_lowp)
fx.wrap(add_lowp)


class Foo(torch.nn.Module):
    def forward(self, x, y):
        x = sigmoid_lowp(x)
        y = sigmoid_lowp(y)
        return add_lowp(x, y)


def inline_composite(call: fx.Node):
    """Replaces a call of one of this module's functions by the operations of its body."""
    if call.op != "call_function" or call.target.__module__ != __name__:
        return
    graph = call.graph
    tracer = fx.proxy.GraphAppendingTracer(graph)
    with graph.inserting_before(call):
        # Called on proxies, the function records what it does, in front of the call.
        args = fx.node.map_arg(call.args, lambda n: fx.Proxy(n, tracer))
        kwargs = fx.node.map_arg(call.kwargs, lambda n: fx.Proxy(n, tracer))
        result = call.target(*args, **kwargs)
    call.replace_all_uses_with(result.node)
    graph.erase_node(call)


class InliningTracer(fx.Tracer):
    """Opens some composites while it traces: they never become nodes."""

    FUNCTIONS = (add_lowp,)

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        if kind != "call_function" or target not in self.FUNCTIONS:
            return super().create_node(kind, target, args, kwargs, name, type_expr)
        tracer = fx.proxy.GraphAppendingTracer(self.graph)
        args = fx.node.map_arg(args, lambda n: fx.Proxy(n, tracer))
        kwargs = fx.node.map_arg(kwargs, lambda n: fx.Proxy(n, tracer))
        return target(*args, **kwargs).node


class OpeningTracer(fx.Tracer):
    """The same in one line, for composites with any structure of results."""

    def is_leaf_function(self, fn):
        return fn is not add_lowp


def show(title, module):
    print(f"== {title}")
    print(module.graph)
    print()


def main():
    x, y = torch.randn(8).half(), torch.randn(8).half()
    expected = Foo()(x, y)

    traced = fx.symbolic_trace(Foo())
    show("composites are nodes", traced)
    assert torch.equal(traced(x, y), expected)

    for node in traced.graph.nodes:
        if node.target is sigmoid_lowp:
            inline_composite(node)
    traced.recompile()  # until then the edited graph changes nothing
    show("sigmoid_lowp inlined in the graph", traced)
    assert torch.equal(traced(x, y), expected)

    for tracer in (InliningTracer(), OpeningTracer()):
        root = Foo()
        module = fx.GraphModule(root, tracer.trace(root))
        show(f"add_lowp opened by {type(tracer).__name__}", module)
        assert torch.equal(module(x, y), expected)

    print("== forward of the last one")
    print(module.code)


if __name__ == "__main__":
    main()
