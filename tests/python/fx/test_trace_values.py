"""Operators, constants and attributes in traced programs, each traced by both."""

import enum
import math
import operator

import pytest
import torch
from helpers import names, node_named, ops, targets


def check(fx, m, *args):
    traced = fx.symbolic_trace(m)
    traced.graph.lint()
    torch.testing.assert_close(traced(*args), m(*args), rtol=0, atol=0)
    return traced


def test_fx_shifts(fx):
    x = torch.tensor([1, 2, 3])
    check(fx, lambda x: x << 3, x)
    check(fx, lambda x: x >> 3, x)


def test_fx_and_or(fx):
    x = torch.tensor([0, 1, 5])
    for f in (lambda x: x & x, lambda x: x | x, lambda x: x ^ 1):
        check(fx, f, x)


def test_matmul_tracing(fx):
    const = torch.randn(3)

    def f(x):
        return x @ const

    def g(x):
        return const @ x

    x = torch.randn(3)
    assert targets(check(fx, f, x).graph, "call_function") == [operator.matmul]
    # The constant is asked first: it records the method.
    assert targets(check(fx, g, x).graph, "call_method") == ["matmul"]


OPERATORS = [
    (lambda x: x + 1, operator.add), (lambda x: 1 + x, operator.add), (lambda x: x - 1, operator.sub),
    (lambda x: 1 - x, operator.sub), (lambda x: x * 2, operator.mul), (lambda x: 2 / x, operator.truediv),
    (lambda x: x // 2, operator.floordiv), (lambda x: 7 // x, operator.floordiv), (lambda x: x % 3, operator.mod),
    (lambda x: 7 % x, operator.mod), (lambda x: x**2, operator.pow), (lambda x: 2**x, operator.pow),
    (lambda x: 1 << x, operator.lshift), (lambda x: 9 >> x, operator.rshift), (lambda x: 1 & x, operator.and_),
    (lambda x: 1 | x, operator.or_), (lambda x: 1 ^ x, operator.xor), (lambda x: -x, operator.neg),
    (lambda x: +x, operator.pos), (lambda x: ~x, operator.invert), (lambda x: abs(x), operator.abs),
    (lambda x: x == 1, operator.eq), (lambda x: x != 1, operator.ne), (lambda x: x < 1, operator.lt),
    (lambda x: x <= 1, operator.le), (lambda x: x > 1, operator.gt), (lambda x: 1 > x, operator.lt),
    (lambda x: x >= 1, operator.ge), (lambda x: x[1], operator.getitem), (lambda x: x[..., None, 0:2], operator.getitem),
]  # fmt: skip


@pytest.mark.parametrize(("f", "function"), OPERATORS)
def test_operators(fx, f, function):
    traced = check(fx, f, torch.tensor([1, 2, 3]))
    (node,) = [n for n in traced.graph.nodes if n.op == "call_function"]
    assert node.target is function
    oracle = torch.fx.Tracer().trace(f)
    expected = next(n for n in oracle.nodes if n.op == "call_function")
    assert node.name == expected.name and str(node.args) == str(expected.args)


@pytest.mark.parametrize("symbol", ["+", "-", "*", "@", "/", "//", "%", "**", "&", "|", "^", "<<", ">>"])
def test_reflected_operators_of_a_number_keep_the_order(fx, symbol):
    graph = fx.Tracer().trace(eval(f"lambda x: 3 {symbol} x"))
    node = list(graph.nodes)[1]
    assert node.args == (3, node_named(graph, "x"))


def test_augmented_assignment_rebinds(fx):
    def f(x):
        x += 1
        x *= 2
        return x

    assert targets(fx.Tracer().trace(f), "call_function") == [operator.add, operator.mul]


def test_unpack(fx):
    def f(x):
        a, (b, c) = x
        return a + b + c

    traced = check(fx, f, (torch.tensor(1), (torch.tensor(2), torch.tensor(3))))
    assert targets(traced.graph, "call_function").count(operator.getitem) == 4


def test_unpack_of_many(fx):
    count = 300  # needs an EXTENDED_ARG
    scope = {}
    exec(f"def f(x):\n    {', '.join(f'a{i}' for i in range(count))} = x\n    return a0 + a{count - 1}", scope)
    graph = fx.Tracer().trace(scope["f"])
    assert targets(graph, "call_function").count(operator.getitem) == count


def test_reserved_getattr(fx):
    class M(torch.nn.Module):
        def forward(self, a):
            return a.foo.bar.baz

    graph = fx.Tracer().trace(M())
    assert [n.args for n in graph.nodes if n.target is getattr] == [
        (node_named(graph, "a"), "foo"), (node_named(graph, "getattr_1"), "bar"), (node_named(graph, "getattr_2"), "baz"),
    ]  # fmt: skip


def test_attributes_are_read_when_they_are_used(fx):
    def f(x):
        x.shape  # nobody uses it
        return x.T + x.grad_fn.name

    graph = fx.Tracer().trace(f)
    assert [n.args[1] for n in graph.nodes if n.target is getattr] == ["T", "grad_fn", "name"]


def test_an_attribute_read_twice_is_two_nodes_and_one_object_is_one(fx):
    def f(x):
        s = x.shape
        return s[0] + s[1] + x.shape[0]

    assert targets(fx.Tracer().trace(f), "call_function").count(getattr) == 2


def test_calling_a_proxy(fx):
    graph = fx.Tracer().trace(lambda f, x: f(x, k=1))
    node = node_named(graph, "call")
    assert (node.op, node.target, dict(node.kwargs)) == ("call_method", "__call__", {"k": 1})


def test_tensor_attribute(fx):
    class TensorAttribute(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tensor = torch.rand(3, 4)

        def forward(self, x):
            return torch.nn.functional.linear(x, self.tensor)

    class WrapperForQualname(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.ta = TensorAttribute()

        def forward(self, x):
            return torch.nn.functional.linear(x, self.ta.tensor)

    assert targets(check(fx, TensorAttribute(), torch.rand(2, 4)).graph, "get_attr") == ["tensor"]
    assert targets(check(fx, WrapperForQualname(), torch.rand(2, 4)).graph, "get_attr") == ["ta.tensor"]


def test_tensor_attribute_coalseced(fx):
    def count_attrs(graph):
        return len(set(targets(graph, "get_attr")))

    val = torch.tensor(5)
    assert count_attrs(fx.Tracer().trace(lambda x: x + val + val)) == 1
    val2 = torch.tensor(5)
    assert count_attrs(fx.Tracer().trace(lambda x: x + val + val2)) == 2


def test_tensor_constant(fx):
    class ConstTensor(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.linear(x, torch.zeros(3, 4))

    traced = check(fx, ConstTensor(), torch.rand(2, 4))
    assert dict(traced.named_buffers()).keys() == {"_tensor_constant0"}


def test_trace_fn_constant(fx):
    some_constant = torch.rand(3, 4)

    def add_const(x):
        return some_constant + x

    check(fx, add_const, torch.rand(3, 4))


def test_direct_param_use(fx):
    class TransposeTest(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.b = torch.nn.Parameter(torch.rand(4, 3))

        def forward(self, x):
            return self.b

    class Foo(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = TransposeTest()

        def forward(self, x):
            return self.a.b, self.a.b.t(), self.a.b.view(12)

    traced = check(fx, Foo(), torch.rand(1))
    assert set(targets(traced.graph, "get_attr")) == {"a.b"}


def test_layout(fx):
    class M(torch.nn.Module):
        def forward(self, x):
            return torch.empty_like(x, layout=torch.strided, pin_memory=False).fill_(0)

    check(fx, M(), torch.rand(5, 9))


def test_ellipsis(fx):
    traced = check(fx, lambda x: x[:, 1:10, ...], torch.rand(5, 9, 3, 4))
    assert node_named(traced.graph, "getitem").args[1] == (slice(None), slice(1, 10), ...)


def test_inf_nan(fx):
    traced = check(fx, lambda x: (x + float("inf"), x + float("-inf"), x * 0.5), torch.rand(3))
    assert node_named(traced.graph, "add_1").args[1] == -math.inf
    nan = fx.symbolic_trace(lambda x: x + float("nan"))
    assert math.isnan(nan(1.0)) and math.isnan(node_named(nan.graph, "add").args[1])


def test_inf_nan_kwds(fx):
    graph = fx.Graph()
    x = graph.create_node("placeholder", "x")
    b = graph.create_node("call_function", operator.add, (x, float("inf")), {}, name="inf")
    c = graph.create_node("call_function", operator.add, (x, float("nan")), {}, name="nan")
    graph.output((b, c))
    assert names(graph) == ["x", "inf_1", "nan_1", "output"]
    out = fx.GraphModule(torch.nn.Module(), graph)(torch.rand(3))
    assert torch.isinf(out[0]).all() and torch.isnan(out[1]).all()


class Foo(enum.Enum):
    A = 1
    B = 2


def leaf_fn(arr, enum_val):
    arr.append(enum_val)
    return arr[-1].value


def test_enum(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(leaf_fn, (x, Foo.B)))
    assert fx.GraphModule({}, graph)([]) == 2
    assert node_named(graph, "leaf_fn").args[1] is Foo.B


def test_getitem(fx):
    for f in (lambda x, i: x[i], lambda x, i: x[i:], lambda x, i: x[:, i], lambda x, i: x[None, i, ..., 0:i]):
        traced = fx.symbolic_trace(f)
        x, i = torch.rand(4, 5), 2
        assert torch.equal(traced(x, i), f(x, i))
        assert node_named(traced.graph, "i") in node_named(traced.graph, "getitem").all_input_nodes


def test_getitem_subproc(fx):
    import concurrent.futures

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert pool.submit(test_getitem, fx).result() is None


def test_torch_custom_ops(fx):
    class M(torch.nn.Module):
        def forward(self, a):
            b = torch.ops.aten.sigmoid(a)
            c = torch.ops.aten.cat([a, b])
            return torch.ops.aten.cat((c, c))

    traced = check(fx, M(), torch.rand(3))
    oracle = torch.fx.symbolic_trace(M())
    assert targets(traced.graph, "call_function") == targets(oracle.graph, "call_function")
    assert names(traced.graph) == names(oracle.graph)


def test_torch_op_overloads(fx):
    class M(torch.nn.Module):
        def forward(self, a):
            return torch.ops.aten.add.Tensor(a, a)

    traced = check(fx, M(), torch.rand(3))
    node = list(traced.graph.nodes)[1]
    assert node.target is torch.ops.aten.add.Tensor
    assert "torch.ops.aten.add.Tensor" in node.format_node()
    assert node.name == list(torch.fx.symbolic_trace(M()).graph.nodes)[1].name


def test_imul_code_print(fx):
    graph = fx.Graph()
    a, b = graph.placeholder("a"), graph.placeholder("b")
    graph.call_function(operator.imul, (a, b), {})
    graph.output(a)
    module = fx.GraphModule({}, graph)
    assert "operator.imul" in str(graph)
    assert torch.equal(module(torch.tensor(2), 3), torch.tensor(6))


def test_unpack_list_better_error(fx):
    class SomeArgs(torch.nn.Module):
        def forward(self, a, b):
            return torch.rand(3)

    class UnpacksList(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.sa = SomeArgs()

        def forward(self, x: list):
            return self.sa(*x)

    with pytest.raises(fx.proxy.TraceError, match="Proxy object cannot be iterated."):
        fx.symbolic_trace(UnpacksList())


def test_unpack_dict_better_error(fx):
    with pytest.raises(fx.proxy.TraceError, match="Proxy object cannot be iterated."):
        fx.symbolic_trace(lambda x: dict(**x))


def test_wrong_target_type(fx):
    graph = fx.Graph()
    with pytest.raises(ValueError):
        graph.create_node("call_function", "foo", (), {})


def test_throw_out_variant(fx):
    def foo(x):
        y = torch.rand_like(x)
        torch.sigmoid(x, out=y)
        return y

    class MyTracer(fx.Tracer):
        check_mutable_operations = True

    with pytest.raises(RuntimeError, match="mutable operation aten::sigmoid.out"):
        MyTracer().trace(foo)
    assert "sigmoid" in names(fx.Tracer().trace(foo))


def test_deep_structures_and_big_numbers(fx):
    big = 2**80
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(operator.mul, (x, big))
    graph.output([[[node, {"a": (node, [big])}]]])
    assert node.args[1] == big and fx.GraphModule({}, graph)(2)[0][0][1]["a"][1] == [big]
    assert ops(graph) == ["placeholder", "call_function", "output"]
