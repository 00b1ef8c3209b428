"""The first seed, row by row: what symbolic tracing of a module does (S1.1 to S1.13)."""

import operator

import pytest
import torch
from helpers import NoLeaves, names, node_named, ops, targets


class Affine(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(4))
        self.linear = torch.nn.Linear(4, 5)

    def forward(self, x):
        return self.linear(x + self.w).relu()


def test_s1_01_both_entries_give_a_callable_equal_to_eager(fx):
    m = Affine()
    x = torch.randn(3, 4)
    graph = fx.Tracer().trace(m)
    assert isinstance(graph, fx.Graph)
    for traced in (fx.symbolic_trace(m), fx.GraphModule(m, graph)):
        assert isinstance(traced, fx.GraphModule) and isinstance(traced, torch.nn.Module)
        torch.testing.assert_close(traced(x), m(x), rtol=0, atol=0)


def test_s1_01_a_function_traces_too(fx):
    def double(x):
        return x + x

    traced = fx.symbolic_trace(double)
    assert type(traced).__name__ == "double"
    x = torch.randn(3)
    assert torch.equal(traced(x), x + x)


def test_s1_02_forward_is_the_one_of_the_class(fx):
    m = Affine()
    m.forward = lambda x: x * 0
    assert "linear" in names(fx.Tracer().trace(m))


@pytest.mark.parametrize("root", [len, torch.relu, print, Affine], ids=["len", "relu", "print", "class"])
def test_s1_02_a_root_that_is_no_plain_function_raises(fx, root):
    with pytest.raises(AssertionError, match="FunctionType"):
        fx.Tracer().trace(root)


def test_s1_02_a_forward_that_is_no_plain_function_raises(fx):
    class Bad(torch.nn.Module):
        forward = torch.relu

    with pytest.raises(AssertionError, match="FunctionType"):
        fx.Tracer().trace(Bad())


def test_s1_02_the_error_is_a_type_error_as_well(ours):
    with pytest.raises(TypeError, match="FunctionType.*builtin"):
        ours.Tracer().trace(len)


def test_s1_03_self_is_the_module_itself_and_its_flags_decide(fx):
    class Flagged(torch.nn.Module):
        def __init__(self, flag):
            super().__init__()
            self.flag = flag

        def forward(self, x):
            return x.neg() if self.flag else x.abs()

    assert targets(fx.Tracer().trace(Flagged(True)), "call_method") == ["neg"]
    assert targets(fx.Tracer().trace(Flagged(False)), "call_method") == ["abs"]


def test_s1_04_one_placeholder_per_positional_and_keyword_only_parameter(fx):
    class M(torch.nn.Module):
        def forward(self, a, b: int = 4, *, c: float = 5):
            return a + b + c

    graph = fx.Tracer().trace(M())
    inputs = [n for n in graph.nodes if n.op == "placeholder"]
    assert [n.target for n in inputs] == [n.name for n in inputs] == ["a", "b", "c"]
    assert [n.args for n in inputs] == [(), (4,), (5,)]
    assert [n.type for n in inputs] == [None, int, float]
    traced = fx.GraphModule(M(), graph)
    x = torch.ones(2)
    assert torch.equal(traced(x), x + 9)
    assert torch.equal(traced(x, 1, 2), x + 3)
    assert torch.equal(traced(x, b=0), x + 5)


def test_s1_04_positional_only_parameters(fx):
    def f(a, b, /, c):
        return a + b * c

    traced = fx.symbolic_trace(f)
    assert targets(traced.graph, "placeholder") == ["a", "b", "c"]
    assert traced(2, 3, 4) == 14


def test_s1_05_starred_parameters_are_single_placeholders(fx):
    class M(torch.nn.Module):
        def forward(self, a, *args, **kwargs):
            return a + args[0] + kwargs["foo"]

    traced = fx.symbolic_trace(M())
    assert targets(traced.graph, "placeholder") == ["a", "*args", "**kwargs"]
    assert names(traced.graph)[:3] == ["a", "_args", "_kwargs"]
    assert targets(traced.graph, "call_function").count(operator.getitem) == 2
    assert traced(1, 10, foo=100) == 111


def test_s1_06_closure_defaults_and_globals_survive_starred_parameters(fx):
    scale = torch.tensor(3.0)

    def f(x, *args, bias=2.0, **kwargs):
        return torch.mul(x, scale) + args[0] + bias + kwargs["k"]

    traced = fx.symbolic_trace(f)
    assert targets(traced.graph, "placeholder") == ["x", "bias", "*args", "**kwargs"]
    assert node_named(traced.graph, "bias").args == (2.0,)
    x = torch.ones(2)
    assert ops(traced.graph).count("get_attr") == 1
    assert torch.mul in targets(traced.graph, "call_function")
    assert f.__code__.co_flags & 0x0C  # the function itself is as it was
    assert torch.equal(f(x, 1.0, k=4.0), x * 3 + 7)


def test_s1_07_module_call_is_restored_when_forward_raises(fx):
    call, getattribute = torch.nn.Module.__call__, torch.nn.Module.__getattr__

    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)

        def forward(self, x):
            self.linear(x)
            raise KeyError("user's own")

    m = M()
    with pytest.raises(KeyError, match="user's own"):
        fx.Tracer().trace(m)
    assert torch.nn.Module.__call__ is call and torch.nn.Module.__getattr__ is getattribute
    assert m.linear(torch.ones(1, 2)).shape == (1, 2)


def test_s1_07_a_trace_inside_a_trace(fx):
    inner_graphs = []

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Affine()

        def forward(self, x):
            inner_graphs.append(fx.Tracer().trace(self.inner))
            return self.inner(x)

    graph = fx.Tracer().trace(Outer())
    assert "linear" in names(inner_graphs[0]) and "inner_linear" in names(graph)
    assert torch.nn.Module.__call__.__qualname__ == torch.nn.Module._wrapped_call_impl.__qualname__


def test_s1_08_a_shared_module_keeps_its_first_name(fx):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.ReLU()
            self.b = self.a

        def forward(self, x):
            return self.b(self.a(x))

    assert targets(fx.Tracer().trace(M()), "call_module") == ["a", "a"]


def test_s1_09_an_unknown_module_is_a_name_error(fx):
    class M(torch.nn.Module):
        def forward(self, x):
            return torch.nn.Softplus()(x)

    with pytest.raises(NameError, match="module is not installed as a submodule"):
        fx.Tracer().trace(M())


def test_s1_09_and_the_error_names_the_class(ours):
    class M(torch.nn.Module):
        def forward(self, x):
            return torch.nn.Softplus()(x)

    with pytest.raises(NameError, match="Softplus"):
        ours.Tracer().trace(M())


class Baz(torch.nn.Module):
    def forward(self, x):
        return x.neg()


class Bar(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.baz = Baz()
        self.seq = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())

    def forward(self, x):
        return self.seq(self.baz(x))


class Root(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.foo = Bar()

    def forward(self, x):
        return self.foo(x)


def test_s1_10_leaves_are_the_modules_of_torch_nn_but_for_sequential(fx):
    graph = fx.Tracer().trace(Root())
    assert targets(graph, "call_module") == ["foo.seq.0", "foo.seq.1"]
    assert names(graph) == ["x", "neg", "foo_seq_0", "foo_seq_1", "output"]


def test_s1_10_the_hook_gets_the_qualified_name(fx):
    asked = []

    class T(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            asked.append((type(m).__name__, module_qualified_name))
            return super().is_leaf_module(m, module_qualified_name)

    T().trace(Root())
    assert ("Baz", "foo.baz") in asked and ("Linear", "foo.seq.0") in asked


def test_s1_11_a_leaf_is_a_call_module_with_path_and_arguments(fx):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bag = torch.nn.EmbeddingBag(10, 3, mode="sum")

        def forward(self, x, offsets):
            return self.bag(x, offsets=offsets)

    m = M()
    traced = fx.symbolic_trace(m)
    node = node_named(traced.graph, "bag")
    assert node.op == "call_module" and node.target == "bag"
    assert node.args == (node_named(traced.graph, "x"),)
    assert dict(node.kwargs) == {"offsets": node_named(traced.graph, "offsets")}
    x, offsets = torch.tensor([1, 2, 4, 5]), torch.tensor([0, 2])
    assert torch.equal(traced(x, offsets), m(x, offsets))


def test_s1_11_the_parameters_of_the_callee_are_read_at_call_time(fx):
    m = Affine()
    traced = fx.symbolic_trace(m)
    x = torch.randn(3, 4)
    traced(x)
    with torch.no_grad():
        m.linear.weight.zero_()
        m.linear.bias.fill_(2.0)
    assert torch.equal(traced(x), torch.full((3, 5), 2.0))


def test_s1_12_without_leaves_there_are_operators_only_and_hooks_are_traced(fx):
    class T(NoLeaves, fx.Tracer):
        pass

    m = Root()
    m.foo.seq[0].register_forward_hook(lambda module, args, out: out * 7)
    graph = T().trace(m)
    assert not targets(graph, "call_module")
    assert targets(graph, "call_function") == [torch.nn.functional.linear, operator.mul, torch.nn.functional.relu]
    x = torch.randn(3, 2)
    assert torch.equal(fx.GraphModule(m, graph)(x), m(x))


def test_s1_13_a_parameter_is_a_get_attr_whose_value_is_read_at_call_time(fx):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.randn(5, 4))

        def forward(self, x):
            return torch.nn.functional.linear(x, self.w)

    m = M()
    traced = fx.symbolic_trace(m)
    assert targets(traced.graph, "get_attr") == ["w"]
    x = torch.randn(3, 4)
    assert torch.equal(traced(x), m(x))
    with torch.no_grad():
        m.w.mul_(2)
    assert torch.equal(traced(x), m(x))
    other = torch.nn.Parameter(torch.zeros(5, 4))
    assert torch.equal(torch.func.functional_call(traced, {"w": other}, (x,)), torch.zeros(3, 5))
