"""Classes that are built from proxies, and custom proxies, on both."""

import copy
import operator

import pytest
import torch
from helpers import names, node_named, targets


def pair_class(fx):
    class TensorPair(metaclass=fx.ProxyableClassMeta):
        def __init__(self, left, right):
            self.left, self.right = left, right

        def add(self, other):
            return TensorPair(self.left + other.left, self.right + other.right)

        def mul(self, other):
            return TensorPair(self.left * other.left, self.right * other.right)

    return TensorPair


def check_pair(fx, make, use):
    pair = pair_class(fx)
    x, y = pair(torch.randn(5, 3), torch.randn(5, 3)), make(pair)
    traced = fx.symbolic_trace(lambda x, y: use(pair, x, y))
    expected, actual = use(pair, x, y), traced(x, y)
    assert torch.equal(actual.left, expected.left) and torch.equal(actual.right, expected.right)
    return traced, pair


def test_custom_proxy_type(fx):
    check_pair(fx, lambda p: p(torch.randn(5, 3), torch.randn(5, 3)), lambda p, x, y: x.add(y).mul(x))


def test_custom_proxy_type_literal(fx):
    literal = {}

    def use(pair, x, y):
        return x.add(literal.setdefault("p", pair(torch.ones(5, 3), torch.ones(5, 3)))).mul(x)

    traced, pair = check_pair(fx, lambda p: None, use)
    assert targets(traced.graph, "get_attr") == ["_TensorPair_constant_0"]
    assert traced._TensorPair_constant_0 is literal["p"]


def test_custom_proxy_dynamic_value(fx):
    traced, pair = check_pair(
        fx, lambda p: torch.randn(5, 3), lambda p, x, y: x.add(p(y, y)).mul(x)
    )
    node = node_named(traced.graph, "tensor_pair")
    assert node.target is pair and node.args == (node_named(traced.graph, "y"),) * 2


def test_custom_proxy_input_dependent_control_flow(fx):
    class ZeroTensor(metaclass=fx.ProxyableClassMeta):
        def __init__(self, inp):
            if inp.sum() == 0:
                self.is_zero, self.tensor = True, torch.tensor([])
            else:
                self.is_zero, self.tensor = False, inp

        def add(self, other):
            return ZeroTensor(other.tensor) if self.is_zero else self

    traced = fx.symbolic_trace(lambda x, y: ZeroTensor(x).add(ZeroTensor(y)))
    for x, y in ((torch.zeros(2), torch.ones(2)), (torch.ones(2), torch.zeros(2))):
        assert torch.equal(traced(x, y).tensor, torch.ones(2))


def test_a_tracer_with_its_own_proxy_class(fx):
    class Loud(fx.Proxy):
        def __add__(self, other):
            return self.tracer.create_proxy("call_function", torch.add, (self, other), {"alpha": 1})

        def loud(self):
            return self.node.name.upper()

    class T(fx.Tracer):
        def proxy(self, node):
            return Loud(node, self)

    seen = []

    def f(x):
        y = x + 1
        seen.append((type(y), y.loud()))
        return torch.relu(y).size(0) - 1

    graph = T().trace(f)
    assert seen == [(Loud, "ADD")] and node_named(graph, "add").target is torch.add
    assert names(graph) == ["x", "add", "relu", "size", "sub", "output"]
    assert names(T().trace(f)) == names(graph)


def test_a_proxy_that_knows_more_than_its_node(fx):
    class Sized(fx.Proxy):
        @property
        def shape(self):
            return (2, 3)

        def __len__(self):
            return 2

        def __bool__(self):
            return True

        def __iter__(self):
            return iter([self[i] for i in range(2)])

        def __getattr__(self, name):
            return 7 if name == "seven" else super().__getattr__(name)

    class T(fx.Tracer):
        def proxy(self, node):
            return Sized(node, self)

    def f(x):
        if x:
            return [row * len(x) * x.shape[1] for row in x], x.seven, x.T

    graph = T().trace(f)
    assert targets(graph, "call_function").count(operator.getitem) == 2
    output = node_named(graph, "output").args[0]
    assert output[1] == 7 and output[2].target is getattr


def test_a_proxy_whose_node_is_a_property(fx):
    class Lazy(fx.Proxy):
        def __init__(self, root, attr):
            self.root, self.attr, self.tracer = root, attr, root.tracer

        @property
        def node(self):
            return self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node

    tracer = fx.proxy.GraphAppendingTracer(fx.Graph())
    x = fx.Proxy(tracer.graph.placeholder("x"), tracer)
    assert (Lazy(x, "T") + 1).node.args[0].args == (x.node, "T")
    assert torch.relu(Lazy(x, "mT")).node.args[0].args == (x.node, "mT")


def test_custom_torch_function(fx):
    calls = []

    class Watching(fx.Proxy):
        @classmethod
        def __torch_function__(cls, orig_method, types, args=None, kwargs=None):
            calls.append(orig_method)
            return super().__torch_function__(orig_method, types, args, kwargs)

    class T(fx.Tracer):
        def proxy(self, node):
            return Watching(node, self)

    graph = T().trace(lambda x: torch.relu(x) + torch.ones(1) @ x)
    assert calls == [torch.relu, torch.Tensor.matmul]
    assert targets(graph, "call_method") == ["matmul"]


def test_control_flow_that_a_tracer_decides(fx):
    class T(fx.Tracer):
        def to_bool(self, obj):
            return obj.node.target is operator.gt

        def iter(self, obj):
            return iter([obj[0], obj[1]])

        def keys(self, obj):
            return ["a", "b"]

    def f(x):
        y = sum(v for v in x) if x.sum() > 0 else x
        return dict(**y)

    graph = T().trace(f)
    assert node_named(graph, "output").args[0].keys() == {"a", "b"}


def test_attributes_set_on_a_proxy_stay_with_it(fx):
    seen = []

    def f(x):
        x.mine = [1]
        seen.append(x.mine)
        return x.other

    graph = fx.Tracer().trace(f)
    assert seen == [[1]] and names(graph) == ["x", "getattr_1", "output"]


def test_proxies_are_hashable_by_identity(fx):
    tracer = fx.proxy.GraphAppendingTracer(fx.Graph())
    x, y = (fx.Proxy(tracer.graph.placeholder(n), tracer) for n in "xy")
    assert {x: 1, y: 2}[x] == 1 and len(tracer.graph.nodes) == 2
    assert repr(x) == "Proxy(x)" and copy.copy(x).node is x.node


def test_a_tensor_and_a_proxy_meet(fx):
    def f(x):
        t = torch.ones(2)
        return t + x, x + t, t.add(x), torch.where(x > 0, t, x)

    graph = fx.Tracer().trace(f)
    oracle = torch.fx.Tracer().trace(f)
    assert [(n.op, n.name) for n in graph.nodes] == [(n.op, n.name) for n in oracle.nodes]
    assert "isinstance" and not isinstance(fx.Proxy(list(graph.nodes)[0]), torch.Tensor)


@pytest.mark.parametrize("name", ["relu", "add", "cat", "stack", "where", "clamp", "softmax", "einsum", "split", "max"])
def test_torch_functions(fx, name):
    args = {
        "cat": lambda x: ([x, x], 0), "stack": lambda x: ((x, x),), "where": lambda x: (x, x, x), "add": lambda x: (x, 1),
        "clamp": lambda x: (x, 0, 1), "softmax": lambda x: (x, -1), "einsum": lambda x: ("ij,jk->ik", x, x),
        "split": lambda x: (x, 2),
    }.get(name, lambda x: (x,))  # fmt: skip

    def f(x):
        return getattr(torch, name)(*args(x))

    graph, oracle = fx.Tracer().trace(f), torch.fx.Tracer().trace(f)
    assert str(graph) == str(oracle)


def test_functionals_with_modules_parameters_and_keywords(fx):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.rand(3, 3))

        def forward(self, x):
            x = torch.nn.functional.linear(x, self.w, bias=None)
            return torch.nn.functional.layer_norm(x, (3,), eps=1e-3), torch.sum(x, dim=[0], keepdim=True, dtype=torch.float64)

    m = M()
    assert str(fx.Tracer().trace(m)) == str(torch.fx.Tracer().trace(m))
