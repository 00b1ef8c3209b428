"""Signatures, arguments, defaults and results of traced programs. Functions are named after the behaviour that torch.fx's
own tests name; each program is traced by both."""

import collections
import dataclasses
import typing

import pytest
import torch
from helpers import names, node_named, ops, targets


def check(fx, m, args, kwargs=None):
    traced = fx.symbolic_trace(m)
    traced.graph.lint()
    torch.testing.assert_close(traced(*args, **(kwargs or {})), m(*args, **(kwargs or {})), rtol=0, atol=0)
    return traced


class MySub(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.rand(4, 3))

    def forward(self, x):
        return self.w + x


class MyModule(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 3)
        self.sub = MySub()
        self.w = torch.nn.Parameter(torch.rand(3))

    def forward(self, a, b, c):
        x = self.sub(a) * b + self.lin(c)
        return torch.cat([x, self.w + x], 1), x


def test_graph_module(fx):
    m = MyModule()
    traced = check(fx, m, (torch.rand(4, 3), torch.rand(4, 3), torch.rand(4, 4)))
    assert set(dict(traced.named_parameters())) == {"lin.weight", "lin.bias", "sub.w", "w"}
    assert traced.lin is m.lin and traced.w is m.w and traced.sub.w is m.sub.w


def test_args_kwargs(fx):
    class T(torch.nn.Module):
        def forward(self, *args, **kwargs):
            return args[0] + kwargs["foo"]

    check(fx, T(), (torch.rand(1), torch.rand(2)), {"foo": torch.rand(1)})


def test_varargs_concrete(fx):
    class T(torch.nn.Module):
        def forward(self, *args, **kwargs):
            return args[0] + args[1]

    args = (torch.rand(1), torch.rand(1))
    traced = fx.symbolic_trace(T(), concrete_args=(fx._symbolic_trace.PH, fx._symbolic_trace.PH))
    assert targets(traced.graph, "placeholder") == ["input_0", "input_1"]
    assert torch.equal(traced(*args), T()(*args))


def test_args_kwargs_no_self(fx):
    class T(torch.nn.Module):
        def forward(*args, **kwargs):
            return args[0]

    with pytest.raises(RuntimeError, match=r"cannot be part of \*args expansion"):
        fx.symbolic_trace(T())


def test_dict(fx):
    class M(torch.nn.Module):
        def forward(self, d):
            return d["a"].relu(), {"neg": d["neg"].neg()}

    check(fx, M(), ({"a": torch.rand(3, 4), "neg": torch.rand(3, 4)},))


def test_trace_function(fx):
    def to_trace(y):
        return torch.relu(y) + y

    check(fx, to_trace, (torch.rand(3, 4),))


def test_a_parameter_may_be_called_self(ours):
    check(ours, lambda x, self, module: x + self - module, (torch.rand(3), torch.rand(3), torch.rand(3)))


def test_single_default_arg(fx):
    def f(y=1):
        return y

    traced = fx.symbolic_trace(f)
    assert traced() == 1 and traced(3) == 3 and traced(y=4) == 4
    assert node_named(traced.graph, "y").args == (1,)


def test_multiple_default_args(fx):
    traced = fx.symbolic_trace(lambda y=1, z=2: y + z)
    assert traced() == 3 and traced(3) == 5 and traced(3, 4) == 7 and traced(z=10) == 11


def test_regular_and_default_args(fx):
    traced = fx.symbolic_trace(lambda x, y=1: x + y)
    assert traced(2) == 3 and traced(2, 3) == 5
    with pytest.raises(TypeError):
        traced()


def test_string_literal_return(fx):
    traced = fx.symbolic_trace(lambda: "foo")
    assert traced() == "foo" and names(traced.graph) == ["output"]


def test_return_tuple(fx):
    check(fx, lambda x: (x, x + x), (torch.rand(3, 4),))


Pair = collections.namedtuple("Pair", ["left", "right"])


def test_namedtuple_return_qualname(fx):
    traced = fx.symbolic_trace(lambda x: Pair(x, x))
    assert node_named(traced.graph, "pair").target is Pair
    x = torch.rand(3, 4)
    assert traced(x) == Pair(x, x) and type(traced(x)) is Pair


def test_named_tuple_inlined(fx):
    class M(torch.nn.Module):
        def forward(self, x):
            return torch.add(Pair(x, x + 1).left, Pair(x, x).right)

    traced = check(fx, M(), (torch.rand(3),))
    assert "pair" not in names(traced.graph)


class Typed(typing.NamedTuple):
    foo: torch.Tensor
    bar: torch.Tensor


def test_namedtuple_return_trace(fx):
    graph = fx.Tracer().trace(lambda x: Typed(x, x + 1))
    assert node_named(graph, "typed").args == (node_named(graph, "x"), node_named(graph, "add"))


def test_trace_return_namedtuple(fx):
    check(fx, lambda d: Typed(foo=d + 3.0, bar=d * 1.5), (torch.rand(5),))


@dataclasses.dataclass
class Output:
    foo: torch.Tensor
    bar: torch.Tensor


@dataclasses.dataclass
class Outer:
    inner: Output
    extra: torch.Tensor


def test_trace_return_dataclass(fx):
    traced = fx.symbolic_trace(lambda d: Output(foo=d + 3.0, bar=d * 1.5))
    d = torch.rand(5)
    out = traced(d)
    assert type(out) is Output and torch.equal(out.foo, d + 3.0) and torch.equal(out.bar, d * 1.5)
    (node,) = traced.graph.find_nodes(op="call_function", target=Output)
    assert list(node.kwargs) == ["foo", "bar"]


def test_trace_return_dataclass_nested(fx):
    traced = fx.symbolic_trace(lambda d: Outer(Output(d, d + 1), d * 2))
    d = torch.rand(5)
    assert torch.equal(traced(d).inner.bar, d + 1) and torch.equal(traced(d).extra, d * 2)


def test_trace_dict_int_keys(fx):
    class ModWithDictArg(torch.nn.Module):
        def forward(self, d):
            return d[42]

    class CallsModWithDict(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.m = ModWithDictArg()

        def forward(self, x):
            return self.m({42: x})

    class LeafTracer(fx.Tracer):
        def is_leaf_module(self, m, name):
            return True

    traced = fx.GraphModule(CallsModWithDict(), LeafTracer().trace(CallsModWithDict()))
    assert node_named(traced.graph, "m").args == ({42: node_named(traced.graph, "x")},)
    assert torch.equal(traced(torch.ones(2)), torch.ones(2))


def test_trace_dict_proxy_keys(fx):
    class LeafTracer(fx.Tracer):
        def is_leaf_module(self, m, name):
            return True

    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.m = MySub()

        def forward(self, x):
            return self.m({x: x})

    with pytest.raises(RuntimeError, match="cannot contain a Node"):
        LeafTracer().trace(M())


def test_trace_multiple_funcs(fx):
    class M(torch.nn.Module):
        def forward(self, x):
            return x + 1

        def minus_forward(self, x):
            return x - 1

        def multiply_forward(self, x, y):
            return x * y

    x, y = torch.rand(5, 5), torch.rand(5, 5)
    for method, expected, args in [
        ("forward", x + 1, (x,)), ("minus_forward", x - 1, (x,)), ("multiply_forward", x * y, (x, y)),
    ]:  # fmt: skip
        tracer = fx.Tracer()
        tracer.traced_func_name = method
        assert torch.equal(fx.GraphModule(M(), tracer.trace(M()))(*args), expected)
    tracer.traced_func_name = "missing"
    with pytest.raises(AssertionError, match="doesn't exist in"):
        tracer.trace(M())


def test_nonetype_annotation(fx):
    class M(torch.nn.Module):
        def forward(self, x: None, y: typing.Optional[torch.Tensor] = None) -> None:
            return None

    graph = fx.Tracer().trace(M())
    assert node_named(graph, "y").type == typing.Optional[torch.Tensor]
    assert node_named(graph, "y").args == (None,) and node_named(graph, "x").args == ()


def test_annotations_with_no_forward_references(fx):
    class A:
        def __call__(self, x: torch.Tensor):
            return torch.add(x, x)

    class M(torch.nn.Module):
        def forward(self, x: torch.Tensor, a: A) -> torch.Tensor:
            return a(x)

    graph = fx.Tracer().trace(M())
    assert [node_named(graph, n).type for n in ("x", "a", "output")] == [torch.Tensor, A, torch.Tensor]
    assert node_named(graph, "call").target == "__call__"


def test_annotations_with_forward_references(fx):
    class M(torch.nn.Module):
        def forward(self, x: "torch.Tensor", a: "A") -> "torch.Tensor":  # noqa: F821
            return a(x)

    graph = fx.Tracer().trace(M())
    assert [node_named(graph, n).type for n in ("x", "a", "output")] == ["torch.Tensor", "A", "torch.Tensor"]


def test_annotations_with_non_torch_reference_and_no_internal_forward_references(fx):
    class M(torch.nn.Module):
        def forward(self, x: typing.List[torch.Tensor], a: int) -> torch.Tensor:
            return x[0]

    graph = fx.Tracer().trace(M())
    assert node_named(graph, "x").type == typing.List[torch.Tensor]
    assert "typing.List[torch.Tensor]" in node_named(graph, "x").format_node()


def test_annotations_with_non_torch_reference_and_internal_forward_references(fx):
    class M(torch.nn.Module):
        def forward(self, x: typing.List["torch.Tensor"], a: "int") -> "torch.Tensor":
            return x[0]

    graph = fx.Tracer().trace(M())
    assert node_named(graph, "x").type == typing.List["torch.Tensor"] and node_named(graph, "a").type == "int"


def test_annotations_are_kept_by_the_graph_module(fx):
    class M(torch.nn.Module):
        def forward(self, x: torch.Tensor, n: int = 3):
            return x * n

    import inspect

    signature = inspect.signature(fx.symbolic_trace(M()).forward)
    assert list(signature.parameters) == ["x", "n"] and signature.parameters["n"].default == 3
    assert signature.parameters["n"].annotation in (int, "int")


# ---- concrete arguments ----


def test_concrete_arg_none_assert(fx):
    class Foo(torch.nn.Module):
        def forward(self, x, val=None):
            return x if val is None else x + val

    traced = fx.symbolic_trace(Foo(), concrete_args={"val": None})
    with pytest.raises(AssertionError, match="val has been specialized to have value None"):
        traced(torch.randn(5), torch.randn(5))
    x = torch.randn(5)
    assert torch.equal(traced(x), x)


def test_partial_trace(fx):
    class Foo(torch.nn.Module):
        def forward(self, x, y):
            return 2 * x if y else x

    traced_true = fx.symbolic_trace(Foo(), concrete_args={"y": True})
    traced_false = fx.symbolic_trace(Foo(), concrete_args={"y": False})
    assert traced_true(3, True) == 6 and traced_false(3, False) == 3
    with pytest.raises(AssertionError, match="y has been specialized"):
        traced_true(3, False)

    def f(x, y):
        return x["a"] if y == "foo" else x["b"]

    assert fx.symbolic_trace(f, concrete_args={"x": {"a": fx.PH, "b": fx.PH}, "y": "foo"})({"a": 5, "b": 6}, "foo") == 5


def test_pytree(fx):
    def f_sum(x):
        return sum(x)

    def f_dict_list_map(x):
        return {k: [i + 1 for i in v] for k, v in x.items()}

    def f_return_custom(x):
        return Pair(x[0], x[1])

    ph = fx.PH
    for f, structure in [
        (f_sum, [ph, ph, ph]), (f_sum, []), (f_dict_list_map, {"a": [ph, ph], "z": (ph,)}), (f_return_custom, [ph, ph]),
        (lambda x: x["a"][0] + x["b"], {"a": (ph,), "b": ph}),
    ]:  # fmt: skip
        traced = fx.symbolic_trace(f, concrete_args={"x": structure})
        value = torch.utils._pytree.tree_map(lambda _: torch.rand(2), structure)
        torch.testing.assert_close(traced(value), f(value), rtol=0, atol=0)
        torch.testing.assert_close(fx.Interpreter(traced).run(value), f(value), rtol=0, atol=0)


def test_pytree_concrete(fx):
    def f(b, a):
        return a["a"] if b else a["z"]

    traced = fx.symbolic_trace(f, concrete_args={"b": True, "a": {"a": fx.PH, "z": fx.PH}})
    assert targets(traced.graph, "placeholder") == ["b_1", "a_1", "a_2"]
    args = (True, {"a": torch.rand(1), "z": torch.rand(1)})
    assert torch.equal(traced(*args), f(*args))


def test_metadata_on_ph(fx):
    def f_sum(a, b):
        return a + b

    ph = fx._symbolic_trace.PHWithMeta(ph_key="mine")
    graph = fx.Tracer().trace(f_sum, concrete_args={"a": ph, "b": fx.PH})
    assert [getattr(n, "ph_key", None) for n in graph.nodes if n.op == "placeholder"] == ["mine", None]


def test_concrete_arguments_of_the_wrong_number(fx):
    with pytest.raises(RuntimeError, match="Tracing expected 2 arguments but got 1 concrete arguments"):
        fx.Tracer().trace(lambda x, y: x, concrete_args=(1,))


def test_a_concrete_argument_of_another_type_warns(fx):
    with pytest.warns(UserWarning, match="Was not able to add assertion"):
        graph = fx.Tracer().trace(lambda x, y: x, concrete_args={"y": object()})
    assert ops(graph) == ["placeholder", "placeholder", "output"]
