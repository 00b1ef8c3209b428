"""What several tests compare."""

import importlib

import fxjit
import torch


def names(graph):
    return [node.name for node in graph.nodes]


def ops(graph):
    return [node.op for node in graph.nodes]


def targets(graph, op):
    return [node.target for node in graph.nodes if node.op == op]


def node_named(graph, name):
    return next(node for node in graph.nodes if node.name == name)


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.view(torch.uint8), b.view(torch.uint8))


def part(fx, path):
    return importlib.import_module(f"{fx.__name__}.{path}")


def as_kind(fx, gm):
    return gm if fx is torch.fx else fxjit.fx.GraphModule.from_torch(gm)


def calls(graph):
    return [n for n in graph.nodes if n.op.startswith("call")]


class NoLeaves:
    """Mixed into a Tracer: every module is traced through."""

    def is_leaf_module(self, m, qualname):
        return False


LIBRARY = '''
def sigmoid_lowp(x: torch.Tensor):
    x = x.float()
    x = x.sigmoid()
    return x.half()

fx.wrap(sigmoid_lowp)

def add_lowp(a: torch.Tensor, b: torch.Tensor):
    a, b = a.float(), b.float()
    c = a + b
    return c.half()

fx.wrap(add_lowp)

class Foo(torch.nn.Module):
    def forward(self, x, y):
        x = sigmoid_lowp(x)
        y = sigmoid_lowp(y)
        return add_lowp(x, y)

def inline_call(node):
    tracer = fx.proxy.GraphAppendingTracer(node.graph)
    with node.graph.inserting_before(node):
        args = fx.node.map_arg(node.args, lambda n: fx.Proxy(n, tracer))
        kwargs = fx.node.map_arg(node.kwargs, lambda n: fx.Proxy(n, tracer))
        result = node.target(*args, **kwargs)
        node.replace_all_uses_with(result.node)
        node.graph.erase_node(node)

class InliningTracer(fx.Tracer):
    def __init__(self, *functions):
        super().__init__()
        self.functions = functions or (add_lowp,)

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        if kind == "call_function" and target in self.functions:
            tracer = fx.proxy.GraphAppendingTracer(self.graph)
            args = fx.node.map_arg(args, lambda n: fx.Proxy(n, tracer))
            kwargs = fx.node.map_arg(kwargs, lambda n: fx.Proxy(n, tracer))
            return target(*args, **kwargs).node
        return super().create_node(kind, target, args, kwargs, name, type_expr)
'''


def calling(fx, inner):
    """A GraphModule that calls `inner`, a GraphModule, as a module of its own and adds 1."""
    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return self.inner(x) + 1

    class Keeping(fx.Tracer):
        def is_leaf_module(self, m, qualname):
            return True

    outer = Outer()
    return fx.GraphModule(outer, Keeping().trace(outer))


def inline_all(lib, traced, *functions):
    for node in traced.graph.nodes:
        if node.op == "call_function" and node.target in functions:
            lib.inline_call(node)
    traced.recompile()
    return traced


class Simple(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.rand(3))
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.linear(x + self.w).relu()
