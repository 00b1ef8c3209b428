"""The second seed, its composites of composites, with several results and with constants."""

import operator

import torch
from helpers import LIBRARY, inline_all, ops, targets

NESTED = LIBRARY + '''
def outer(x, y):
    return add_lowp(sigmoid_lowp(x), y)

fx.wrap(outer)

def use_outer(x, y):
    return outer(x, y)
'''


def test_s2_23_inlining_after_the_trace_goes_right_through(fx, program):
    m = program(fx, NESTED, "nested_after")
    traced = inline_all(m, fx.symbolic_trace(m.use_outer), m.outer)
    assert targets(traced.graph, "call_function") == [operator.add]


def test_s2_23_inlining_during_the_trace_stops_at_wrapped_inner_functions(fx, program):
    m = program(fx, NESTED, "nested_during")
    graph = m.InliningTracer(m.outer).trace(m.use_outer)
    assert targets(graph, "call_function") == [m.sigmoid_lowp, m.add_lowp]


def test_s2_23_is_leaf_function_opens_them_level_by_level(ours, program):
    m = program(ours, NESTED, "nested_leaf")

    class Outer(ours.Tracer):
        def is_leaf_function(self, fn):
            return fn is not m.outer

    class All(ours.Tracer):
        def is_leaf_function(self, fn):
            return False

    assert targets(Outer().trace(m.use_outer), "call_function") == [m.sigmoid_lowp, m.add_lowp]
    assert targets(All().trace(m.use_outer), "call_function") == [operator.add]


PAIR = '''
def both(x):
    return x.neg(), {"abs": x.abs()}

fx.wrap(both)

def use(x):
    a, b = both(x)
    return a + b["abs"]
'''


def test_s2_24_a_composite_with_several_results(ours, program):
    m = program(ours, PAIR, "pair")

    class T(ours.Tracer):
        def is_leaf_function(self, fn):
            return fn is not m.both

    x = torch.randn(3)
    graph = T().trace(m.use)
    assert ops(graph) == ["placeholder", "call_method", "call_method", "call_function", "output"]
    assert torch.equal(ours.GraphModule({}, graph)(x), x.abs() - x)
    kept = ours.Tracer().trace(m.use)
    assert m.both in targets(kept, "call_function")
    assert torch.equal(ours.GraphModule({}, kept)(x), x.abs() - x)


CONSTANT = '''
bias = torch.full((3,), 2.0)

def shifted(x):
    return x + torch.add(x, bias)

fx.wrap(shifted)

def use(x):
    return shifted(x)
'''


def test_s2_25_a_tensor_constant_of_a_composite_moves_to_the_module(ours, program):
    m = program(ours, CONSTANT, "constant")

    class T(ours.Tracer):
        def is_leaf_function(self, fn):
            return False

    tracer = T()
    graph = tracer.trace(m.use)
    assert targets(graph, "get_attr") == ["_tensor_constant0"]
    x = torch.randn(3)
    assert torch.equal(ours.GraphModule(tracer.root, graph)(x), m.use(x))
