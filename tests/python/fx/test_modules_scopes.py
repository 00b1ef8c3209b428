"""Modules, custom tracers and scopes, on both."""

import operator

import pytest
import torch
from helpers import names, node_named, ops, targets


def test_disallow_override(fx):
    class NoMutableCallTracer(fx.Tracer):
        def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
            name = target if isinstance(target, str) else torch.typename(target)
            if name[-1] == "_":
                raise RuntimeError("In-place operations are not supported")
            return super().create_node(kind, target, args, kwargs, name)

    class MyInplaceMod(torch.nn.Module):
        def forward(self, x):
            x.add_(3.0)
            return x

    class MyInplaceMod2(torch.nn.Module):
        def forward(self, x):
            torch.log_(x)
            return x

    for m in (MyInplaceMod(), MyInplaceMod2()):
        with pytest.raises(RuntimeError, match="In-place operations"):
            NoMutableCallTracer().trace(m)


def test_leaf_module(fx):
    class MyReluMod(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.relu = torch.nn.ReLU()

        def forward(self, x):
            return self.relu(x)

    class NoLeafModulesTracer(fx.Tracer):
        def is_leaf_module(self, m, qualname):
            return False

    assert "call_module" not in ops(NoLeafModulesTracer().trace(MyReluMod()))


def test_node_tagging(fx):
    class TaggingTracer(fx.Tracer):
        def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
            n = super().create_node(kind, target, args, kwargs, name)
            n.tag = "foo"
            return n

    class M(torch.nn.Module):
        def forward(self, a, b):
            return a + b

    graph = TaggingTracer().trace(M())
    graph.lint()
    assert {n.tag for n in graph.nodes} == {"foo"}


def test_symbolic_trace_sequential(fx):
    class Simple(torch.nn.Module):
        def forward(self, x):
            return torch.neg(x)

    seq = torch.nn.Sequential(Simple(), Simple(), Simple())
    traced = fx.symbolic_trace(seq)
    traced.graph.lint()
    x = torch.rand(3, 4)
    assert torch.equal(traced(x), seq(x)) and names(traced.graph) == ["input_1", "neg", "neg_1", "neg_2", "output"]


def test_sequential(fx):
    m = torch.nn.Sequential(torch.nn.Conv2d(1, 1, 1))
    gm = fx.symbolic_trace(m)
    copied = fx.GraphModule(gm, gm.graph)
    x = torch.rand(1, 1, 2, 2)
    assert torch.equal(copied(x), m(x)) and getattr(copied, "0") is m[0]


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 1, 1)

    def forward(self, x):
        return self.conv(x).relu() + 1


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Block()
        self.blocks = torch.nn.Sequential(Block(), Block())

    def forward(self, x):
        return self.blocks(self.first(self.first(x)))


def test_nn_module_stack(fx):
    graph, oracle = fx.Tracer().trace(Net()), torch.fx.Tracer().trace(Net())
    assert names(graph) == names(oracle)
    for node, expected in zip(graph.nodes, oracle.nodes):
        stack = node.meta.get("nn_module_stack")
        assert stack == expected.meta.get("nn_module_stack")
        if stack:
            assert list(stack.items()) == list(expected.meta["nn_module_stack"].items())
    conv = node_named(graph, "first_conv_1")
    assert list(conv.meta["nn_module_stack"]) == ["first@1", "first.conv@1"]


def test_scopes_of_nodes(fx):
    tracer, oracle = fx.Tracer(), torch.fx.Tracer()
    tracer.trace(Net())
    oracle.trace(Net())
    assert {k: v for k, v in tracer.node_name_to_scope.items()} == oracle.node_name_to_scope


def test_module_stacks_are_not_shared_between_nodes(fx):
    graph = fx.Tracer().trace(Net())
    relu, add = node_named(graph, "relu"), node_named(graph, "add")
    assert relu.meta["nn_module_stack"] == add.meta["nn_module_stack"]
    relu.meta["nn_module_stack"]["mine"] = 1
    relu.meta["other"] = 2
    assert "mine" not in add.meta["nn_module_stack"] and "other" not in add.meta


def test_tracing_graphmodules_as_leaf_submodules(fx):
    class A(torch.nn.Module):
        def forward(self, t):
            return t + t

    class B(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = fx.symbolic_trace(A())

        def forward(self, t):
            return self.a(t)

    class GraphModuleLeaves(fx.Tracer):
        def is_leaf_module(self, m, qualname):
            return isinstance(m, fx.GraphModule) or super().is_leaf_module(m, qualname)

    b = B()
    graph = GraphModuleLeaves().trace(b)
    assert targets(graph, "call_module") == ["a"]
    assert torch.equal(fx.GraphModule(b, graph)(torch.ones(2)), torch.full((2,), 2.0))
    inlined = fx.Tracer().trace(b)
    assert targets(inlined, "call_function") == [operator.add]


def test_fx_create_arg(fx):
    class CustomArgObject:
        def __init__(self, x, y):
            self.x, self.y = x, y

        def __fx_create_arg__(self, tracer):
            return tracer.create_node(
                "call_function", CustomArgObject, args=(tracer.create_arg(self.x), tracer.create_arg(self.y)), kwargs={}
            )

    class HasCustomArgObjectWhenLeaf(torch.nn.Module):
        def forward(self, o):
            for x in o.x:
                o.y += x
            return o.y

    class Root(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = HasCustomArgObjectWhenLeaf()

        def forward(self, x, y):
            return self.inner(CustomArgObject(x, y))

    class Leaf(fx.Tracer):
        def is_leaf_module(self, m, qualname):
            return type(m) is HasCustomArgObjectWhenLeaf

    root = Root()
    traced = fx.GraphModule(root, Leaf().trace(root))
    x, y = [torch.ones(2), torch.ones(2)], torch.zeros(2)
    assert torch.equal(traced(x, y.clone()), torch.full((2,), 2.0))
    assert CustomArgObject in targets(traced.graph, "call_function")


def test_stack_traces(fx):
    class M(torch.nn.Module):
        def forward(self, a, b):
            return self.helper(a, b)

        def helper(self, a, b):
            return torch.relu(a + b)

    tracer = fx.Tracer()
    tracer.record_stack_traces = True
    graph = tracer.trace(M())
    for node in graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        assert node.stack_trace is not None and "test_modules_scopes.py" in node.stack_trace
        assert "in forward" in node.stack_trace and "return torch.relu(a + b)" in node.stack_trace
        assert "return self.helper(a, b)" in node.stack_trace and "test_stack_traces" not in node.stack_trace
    assert all(n.stack_trace is None for n in fx.Tracer().trace(M()).nodes)


def test_stack_traces_with_transformer(fx):
    class M(torch.nn.Module):
        def forward(self, a, b):
            return a + b

    tracer = fx.Tracer()
    tracer.record_stack_traces = True
    module = fx.GraphModule(tracer.root if hasattr(tracer, "root") else M(), tracer.trace(M()))
    transformed = fx.Transformer(module).transform()
    (add,) = [n for n in transformed.graph.nodes if n.op == "call_function"]
    assert add.stack_trace is not None and "in forward" in add.stack_trace


def test_symbolic_trace_assert(fx):
    class AssertsTensorShape(torch.nn.Module):
        def forward(self, x):
            torch._assert(x.shape[1] > 4, "assert_foobar")
            return x

    traced = fx.symbolic_trace(AssertsTensorShape())
    traced(torch.rand(4, 5))
    with pytest.raises(AssertionError, match="assert_foobar"):
        traced(torch.rand(4, 3))
    assert not traced.graph.eliminate_dead_code()


def test_trace_asserts(ours):
    fx = ours  # torch.fx does not know the bytecode of Python 3.11 and later

    class AssertTracer(fx.Tracer):
        trace_asserts = True

    scope = {}  # pytest rewrites the assertions of its own modules
    exec('def f(x, y):\n    assert x > y\n    assert x > 1, "message"\n    assert y\n    return x + y\n', scope)
    graph = AssertTracer().trace(scope["f"])
    called = ["gt", "assert_fn", "gt", "assert_fn", "assert_fn", "add"]
    assert [t.__name__ for t in targets(graph, "call_function")] == called
    traced = fx.GraphModule({}, graph)
    assert traced(3, 2) == 5
    with pytest.raises(AssertionError):
        traced(2, 3)
    with pytest.raises(fx.proxy.TraceError):
        AssertTracer().trace(lambda x: 1 if x > 1 else 2)


def test_snake_case(fx):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.activations = torch.nn.ModuleDict(
                [["snake_case", torch.nn.ReLU()], ["PascalCase", torch.nn.LeakyReLU()], ["ALL_CAPS", torch.nn.PReLU()]]
            )

        def forward(self, x):
            a = self.activations["snake_case"](x)
            b = self.activations["PascalCase"](x)
            c = self.activations["ALL_CAPS"](x)
            return a, b, c

    graph = fx.Tracer().trace(M())
    assert [(n.name, n.target) for n in graph.nodes if n.op == "call_module"] == [
        ("activations_snake_case", "activations.snake_case"), ("activations_pascal_case", "activations.PascalCase"),
        ("activations_all_caps", "activations.ALL_CAPS"),
    ]  # fmt: skip


def test_param_shapes_constant(fx):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.rand(4, 3))

        def forward(self, x):
            return x + self.w if self.w.dim() == 2 and self.w.shape[0] > 2 else x

    with pytest.raises(fx.proxy.TraceError):
        fx.Tracer().trace(M())
    assert targets(fx.Tracer(param_shapes_constant=True).trace(M()), "get_attr") == ["w"]


def test_proxy_buffer_attributes(fx):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("b", torch.rand(2))

        def forward(self, x):
            return x + self.b.neg()

    class T(fx.Tracer):
        proxy_buffer_attributes = True

    assert targets(T().trace(M()), "call_method") == ["neg"]
    assert targets(fx.Tracer().trace(M()), "get_attr") == ["_tensor_constant0"]


def test_hooks_set_on_an_instance_or_a_class_count(ours):
    made = []

    class T(ours.Tracer):
        pass

    def create_node(self, *args, **kwargs):
        made.append(args[0])
        return ours.Tracer.create_node(self, *args, **kwargs)

    T().trace(lambda x: x + 1)
    assert made == []
    T.create_node = create_node  # after the first trace
    T().trace(lambda x: x + 1)
    assert made == ["placeholder", "call_function", "output"]
    del T.create_node
    tracer = T()
    tracer.create_node = lambda *a, **k: made.append("mine") or ours.Tracer.create_node(tracer, *a, **k)
    tracer.trace(lambda x: x + 1)
    assert made.count("mine") == 3


def test_wide_and_named_modules_are_found_by_identity(fx):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Linear(2, 2) for _ in range(30))

        def forward(self, x):
            for layer in self.layers:
                x = torch.nn.functional.linear(layer(x), layer.weight)
            return x

    graph = fx.Tracer().trace(M())
    assert targets(graph, "call_module") == [f"layers.{i}" for i in range(30)]
    assert targets(graph, "get_attr") == [f"layers.{i}.weight" for i in range(30)]
