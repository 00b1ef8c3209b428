"""wrap, autowrap, and what they leave behind: each program runs on both."""

import functools
import math
import operator

import pytest
import torch
from helpers import names, node_named, targets

PROGRAM = '''
import math
from math import sqrt
import functools

def a_non_torch_leaf(a, b):
    return a + b

def a_lifted_leaf(a, b):
    return a[0] + a[1] + b

fx.wrap("a_lifted_leaf")
fx.wrap("a_lifted_leaf")  # twice is once

def a_lifted_leaf2(a, b):
    return a[0] + a[1] + b

fx.wrap(a_lifted_leaf2)
fx.wrap("len")
fx.wrap("getattr")

def wrapped_named_tup(p1, *, p2):
    return p1.x + p2.y

fx.wrap(wrapped_named_tup)

@fx.wrap
def wrapped_via_decorator(a):
    return a + 1

def wrapped_with_submodule(x, batchnorm1d):
    return batchnorm1d(x)

fx.wrap(wrapped_with_submodule)

def wrapped_decorated(f):
    @functools.wraps(f)
    def inner(*args):
        return f(*args)
    return inner

@fx.wrap
@wrapped_decorated
def wrapped_decorated_fn(x):
    return x

def my_decorator(f):
    @functools.wraps(f)
    def wrapper_inside_decorator(*args, **kwargs):
        return f(*args, **kwargs)
    return wrapper_inside_decorator

class M(torch.nn.Module):
    def forward(self, x):
        return wrapped_via_decorator(x)
'''


@pytest.fixture
def lib(fx, program):
    return program(fx, PROGRAM, "wrap_lib")


def run_in(lib, source):
    scope = {}
    exec(compile(source, "<user>", "exec"), lib.__dict__, scope)
    return next(iter(scope.values()))


def test_wrap(fx, lib):
    assert lib.a_lifted_leaf((4, 5), 3) == 12
    to_trace = run_in(lib, "def to_trace(y): return a_lifted_leaf((4, y), 3) + a_lifted_leaf((3, 4), 5) + a_lifted_leaf((y, y), y)")
    traced = fx.symbolic_trace(to_trace)
    assert targets(traced.graph, "call_function").count(lib.a_lifted_leaf) == 2
    assert traced(2) == 27
    assert lib.a_lifted_leaf.__name__ == "a_lifted_leaf" and not hasattr(lib.a_lifted_leaf, "__wrapped__")


def test_wrap_fn_directly(fx, lib):
    to_trace = run_in(lib, "def to_trace(y): return a_lifted_leaf2((4, y), 3) + a_lifted_leaf2((3, 4), 5) + a_lifted_leaf2((y, y), y)")
    traced = fx.symbolic_trace(to_trace)
    assert targets(traced.graph, "call_function").count(lib.a_lifted_leaf2) == 2
    assert traced(2) == 27


def test_wrapped_via_decorator(fx, lib):
    fn = lib.wrapped_via_decorator
    assert fn(0) == 1
    traced = fx.symbolic_trace(lib.M())
    assert targets(traced.graph, "call_function") == [fn] and traced(0) == 1
    assert lib.wrapped_via_decorator is fn


def test_wrapped_via_decorator_and_transformed(fx, lib):
    traced = fx.symbolic_trace(lib.M())
    transformed = fx.Transformer(traced).transform()
    assert targets(transformed.graph, "call_function") == [lib.wrapped_via_decorator]
    assert transformed(0) == 1


def test_wrap_with_submodule(fx, lib):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.batchnorm1d = torch.nn.BatchNorm1d(2, affine=False)

        forward = run_in(lib, "def forward(self, x): return wrapped_with_submodule(x, self.batchnorm1d)")

    m = M().eval()
    traced = fx.symbolic_trace(m)
    assert targets(traced.graph, "get_attr") == ["batchnorm1d"]
    assert targets(traced.graph, "call_function") == [lib.wrapped_with_submodule]
    x = torch.rand(3, 2)
    assert torch.equal(traced(x), m(x))


def test_wrapped_retrace(fx, lib):
    traced = fx.symbolic_trace(run_in(lib, "def to_trace(y): return wrapped_via_decorator(y)"))
    retraced = fx.symbolic_trace(traced)
    assert names(retraced.graph) == names(traced.graph)
    assert targets(retraced.graph, "call_function") == [lib.wrapped_via_decorator]
    assert retraced(0) == 1


def test_wrap_decorated_function(fx, lib):
    traced = fx.symbolic_trace(run_in(lib, "def to_trace(y): return wrapped_decorated_fn(y)"))
    assert targets(traced.graph, "call_function") == [lib.wrapped_decorated_fn]


def test_autowrap_functions(fx, lib):
    def fn1(x):
        return fx_int(x.shape[0] / 2)

    def fx_int(x):
        return int(x)

    def fx_int_x2(x):
        return int(x) * 2

    scope = {"fx_int": fx_int, "fx_int_x2": fx_int_x2, "torch": torch}
    exec(
        "def fn1(x): return fx_int(x.shape[0] / 2)\n"
        "def fn2(x): return fx_int(x.shape[0] / 2) + fx_int_x2(x.shape[0] / 2)\n"
        "class M(torch.nn.Module):\n    def forward(self, x): return fn1(x)\n",
        scope,
    )
    tracer = fx.Tracer(autowrap_functions=(fx_int,))
    graph = tracer.trace(scope["fn1"])
    assert fx.GraphModule(tracer.root, graph)(torch.rand(4)) == 2
    tracer = fx.Tracer(autowrap_functions=(fx_int, fx_int_x2))
    tracer.trace(scope["fn2"])
    # Through a module whose functions live in another module of Python.
    graph = fx.Tracer(autowrap_functions=(fx_int,)).trace(scope["M"]())
    assert targets(graph, "call_function")[-1] is fx_int
    retraced = fx.Tracer(autowrap_functions=(fx_int,)).trace(fx.GraphModule({}, graph))
    assert targets(retraced, "call_function")[-1] is fx_int
    assert scope["fx_int"] is fx_int and fn1.__name__ == "fn1"


def test_torch_fx_len(fx, lib):
    traced = fx.symbolic_trace(run_in(lib, "class FXLenTest(torch.nn.Module):\n    def forward(self, x): return len(x)")())
    assert targets(traced.graph, "call_function") == [len] and traced(torch.rand(3, 4)) == 3
    assert "len" not in lib.__dict__
    retraced = fx.symbolic_trace(traced)
    assert targets(retraced.graph, "call_function") == [len] and retraced(torch.rand(3, 4)) == 3

    class Elsewhere(torch.nn.Module):
        def forward(self, x):
            return len(x)

    with pytest.raises(RuntimeError, match="'len' is not supported"):
        fx.symbolic_trace(Elsewhere())


def test_torch_fx_getattr(fx, lib):
    traced = fx.symbolic_trace(run_in(lib, "def f(x): return getattr(x, 'nonexistent_attr', 2)"))
    assert targets(traced.graph, "call_function") == [getattr] and traced(torch.rand(3)) == 2


def test_sqrt(fx, lib):
    for source in ("def f(x): return math.sqrt(x.size(0))", "def f(x): return sqrt(x.size(0))"):
        f = run_in(lib, source)
        traced = fx.symbolic_trace(f)
        assert targets(traced.graph, "call_function") == [math.sqrt]
        assert traced(torch.rand(4)) == 2.0
        assert targets(fx.symbolic_trace(traced).graph, "call_function") == [math.sqrt]
    assert lib.sqrt is math.sqrt and math.sqrt.__name__ == "sqrt"


def test_wrapped_method(fx):
    def wrap_with_relu(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            return torch.relu(fn(*args, **kwargs))

        return wrapper

    class Foo(torch.nn.Module):
        @wrap_with_relu
        def forward(self, x, w):
            return torch.matmul(x, w)

    f = Foo()
    traced = fx.symbolic_trace(f)
    x, w = torch.rand(3, 4), torch.rand(4, 4)
    assert targets(traced.graph, "placeholder") == ["x", "w"]
    assert torch.equal(traced(x, w), f(x, w)) and torch.relu in targets(traced.graph, "call_function")


def test_ctx_mgr(fx):
    import contextlib

    @contextlib.contextmanager
    def do_nothing():
        yield

    class M(torch.nn.Module):
        @do_nothing()
        def forward(self, x):
            return torch.relu(x)

    traced = fx.symbolic_trace(M())
    x = torch.rand(5, 3)
    assert torch.equal(traced(x), M()(x))


def test_wrap_of_a_namedtuple_argument(fx, lib):
    import collections

    Point = collections.namedtuple("Point", ["x", "y"])
    lib.Point = Point
    traced = fx.symbolic_trace(run_in(lib, "def f(p1, p2): return wrapped_named_tup(p1, p2=p2)"))
    assert traced(Point(1, 2), Point(3, 4)) == 5


# ---- ours beside torch.fx ----


def test_the_wraps_of_torch_fx_are_honoured(ours, program):
    m = program(torch.fx, "def leaf(x): return x.neg()\nfx.wrap(leaf)\ndef f(x): return leaf(x)\n", "torch_wrapped")
    fn = m.leaf
    graph = ours.Tracer().trace(m.f)
    assert targets(graph, "call_function") == [fn] and m.leaf is fn
    assert ours._symbolic_trace.is_wrapped(fn)


def test_the_tracing_flag_is_torchs(ours):
    seen = []
    ours.Tracer().trace(lambda x: seen.append(torch.fx._symbolic_trace.is_fx_tracing()) or x)
    assert seen == [True] and not torch.fx._symbolic_trace._is_fx_tracing_flag
    with pytest.raises(ZeroDivisionError):
        ours.Tracer().trace(lambda x: 1 / 0)
    assert not torch.fx._symbolic_trace._is_fx_tracing_flag


def test_side_effects_are_shared(ours):
    def noisy(x):
        return x

    graph = ours.Graph()
    x = graph.placeholder("x")
    graph.call_function(noisy, (x,))
    graph.output(x)
    torch.fx.has_side_effect(noisy)
    assert not graph.eliminate_dead_code() and "noisy" in names(graph)
    torch.fx.node._side_effectful_functions.discard(noisy)
    assert graph.eliminate_dead_code() and names(graph) == ["x", "output"]


def test_the_hook_compares_with_the_function_not_with_its_patch(ours, program):
    m = program(
        ours,
        "def leaf(x): return x.neg()\nfx.wrap(leaf)\ndef f(x): return leaf(x)\n"
        "class Opening(fx.Tracer):\n    def is_leaf_function(self, fn): return fn is not leaf\n",
        "hook_compare",
    )
    assert targets(m.Opening().trace(m.f), "call_method") == ["neg"]
    assert targets(ours.Tracer().trace(m.f), "call_function") == [m.leaf]


def test_leaf_true_is_kept_by_every_tracer(ours, program):
    m = program(ours, "@fx.wrap\ndef a(x): return x.neg()\ndef b(x): return x.abs()\nfx.wrap(b, leaf=True)\n"
                "def f(x): return a(x) + b(x)\n", "leaf_true")  # fmt: skip

    class Opening(ours.Tracer):
        def is_leaf_function(self, fn):
            return False

    graph = Opening().trace(m.f)
    assert targets(graph, "call_function") == [m.b, operator.add] and targets(graph, "call_method") == ["neg"]
    assert ours.is_always_leaf(m.b) and not ours.is_always_leaf(m.a)


def test_composites_know_themselves_in_printed_graphs(fx, lib):
    graph = fx.Tracer().trace(lib.M())
    assert "target=wrap_lib.wrapped_via_decorator]" in str(graph)
    assert node_named(graph, "wrapped_via_decorator").meta["is_wrapped"] is True
