"""Interpreter and Transformer, on both."""

import importlib
import operator

import pytest
import torch
from helpers import names, node_named, targets


class MyModule(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.param = torch.nn.Parameter(torch.rand(3, 4))
        self.linear = torch.nn.Linear(4, 5)

    def forward(self, x):
        return self.linear(x + self.param).clamp(min=0.0, max=1.0)


def test_interpreter(fx):
    m = MyModule()
    gm = fx.symbolic_trace(m)
    x = torch.randn(3, 4)
    assert torch.equal(fx.Interpreter(gm).run(x), gm(x)) and torch.equal(gm(x), m(x))


def test_interpreter_refuses_extra_arguments(ours):
    gm = ours.symbolic_trace(lambda x, y=2: x + y)
    with pytest.raises(RuntimeError, match=r"expected 2 arguments for placeholders but received 3 \(extra arguments\)"):
        ours.Interpreter(gm).run(1, 2, 3)
    assert ours.Interpreter(gm).run(1) == 3
    assert ours.Interpreter(ours.symbolic_trace(lambda x, *rest: x + rest[1])).run(1, 2, 3) == 4

    class Own(ours.Interpreter):
        def placeholder(self, target, args, kwargs):
            return 5

    assert Own(gm).run("not", "asked", "for") == 10


def test_interpreter_shows_progress_on_demand(fx, monkeypatch, capfd):
    gm = fx.symbolic_trace(lambda x: x.relu() + 1)
    config = importlib.import_module(f"{fx.__name__}.config")
    fx.Interpreter(gm).run(torch.ones(1))
    assert capfd.readouterr().err == ""
    monkeypatch.setattr(config, "disable_progress", False)
    assert fx.Interpreter(gm).run(torch.ones(1)).item() == 2
    assert "100" in capfd.readouterr().err


def test_interpreter_boxed_run_argument_validation(fx):
    gm = fx.symbolic_trace(lambda x, y: x + y)
    interpreter = fx.Interpreter(gm)
    args = [1, 2]
    assert interpreter.boxed_run(args) == 3 and args == []
    with pytest.raises(RuntimeError, match=r"expected 2 arguments for placeholders but received 3 \(extra arguments\)"):
        interpreter.boxed_run([1, 2, 3])
    missing = [1]
    with pytest.raises(RuntimeError, match="missing arguments"):
        interpreter.boxed_run(missing)
    assert missing == [1]


def test_interpreter_other_graph(fx):
    gm = fx.symbolic_trace(MyModule())
    graph = fx.Graph()
    graph.graph_copy(gm.graph, {})
    graph.output(node_named(graph, "add"))
    x = torch.randn(3, 4)
    assert torch.equal(fx.Interpreter(gm, graph=graph).run(x), x + gm.param)


def test_interpreter_run_node_override(fx):
    gm = fx.symbolic_trace(MyModule())

    class RunNodeInterpreter(fx.Interpreter):
        def run_node(self, n):
            result = super().run_node(n)
            n.cached_value = result
            return result

    RunNodeInterpreter(gm).run(torch.randn(3, 4))
    assert all(hasattr(n, "cached_value") for n in gm.graph.nodes)


def test_interpreter_onthefly_swap(fx):
    gm = fx.symbolic_trace(lambda x: torch.sigmoid(x).neg())

    class NegSigmSwapInterpreter(fx.Interpreter):
        def call_function(self, target, args, kwargs):
            return torch.neg(*args, **kwargs) if target is torch.sigmoid else super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            if target == "neg":
                call_self, *args_tail = args
                return call_self.sigmoid(*args_tail, **kwargs)
            return super().call_method(target, args, kwargs)

    x = torch.randn(3, 4)
    assert torch.equal(NegSigmSwapInterpreter(gm).run(x), torch.neg(x).sigmoid())


def test_interpreter_partial_eval(fx):
    m = MyModule()
    gm = fx.symbolic_trace(m)
    interp = fx.Interpreter(gm)
    env = {n: torch.ones(3, 4) for n in gm.graph.nodes if n.op == "placeholder"}
    env[node_named(gm.graph, "linear")] = torch.full((3, 5), 0.25)
    assert torch.equal(interp.run(torch.randn(3, 4), initial_env=env), torch.full((3, 5), 0.25))


def test_interpreter_star_args(fx):
    def with_star_args(x, *args):
        return x + args[0]

    gm = fx.symbolic_trace(with_star_args)
    assert torch.equal(fx.Interpreter(gm).run(torch.ones(3, 4), torch.ones(3, 4), torch.rand(3, 4)), torch.full((3, 4), 2.0))


def test_interpreter_noop_resnet18(fx):
    torchvision = pytest.importorskip("torchvision")
    rn18 = torchvision.models.resnet18().eval()
    transformed = fx.Transformer(fx.symbolic_trace(rn18)).transform()
    x = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(transformed(x), rn18(x))


def test_interpreter_gc_values(fx):
    torchvision = pytest.importorskip("torchvision")
    gm = fx.symbolic_trace(torchvision.models.resnet18().eval())
    interp = fx.Interpreter(gm)
    with torch.no_grad():
        interp.run(torch.rand(1, 3, 64, 64))
    assert [n.op for n in interp.env] == ["output"]
    keeping = fx.Interpreter(gm, garbage_collect_values=False)
    with torch.no_grad():
        keeping.run(torch.rand(1, 3, 64, 64))
    assert len(keeping.env) == len(gm.graph.nodes)


def test_interpreter_default_args(fx):
    class Model(torch.nn.Module):
        def forward(self, x, y=3.14159):
            return x + y

    gm = fx.symbolic_trace(Model())
    x = torch.randn(5, 3)
    assert torch.equal(fx.Interpreter(gm).run(x), x + 3.14159)


def test_interpreter_not_enough_args(fx):
    gm = fx.symbolic_trace(lambda x, y: x + y)
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter y, but one was not passed in"):
        fx.Interpreter(gm).run(torch.randn(5, 3))


def test_interpreter_errors_keep_their_class_and_name_the_node(fx):
    class Mine(Exception):
        pass

    def fail(x):
        raise Mine("first", 2)

    graph = fx.Graph()
    graph.output(graph.call_function(fail, (graph.placeholder("x"),)))
    gm = fx.GraphModule({}, graph)
    with pytest.raises(Mine, match="(?s)first.*While executing %fail : .*call_function.*Original traceback") as info:
        fx.Interpreter(gm).run(1)
    assert info.value.args[1] == 2
    interpreter = fx.Interpreter(gm)
    interpreter.extra_traceback = False
    with pytest.raises(Mine) as info:
        interpreter.run(1)
    assert info.value.args == ("first", 2)


def test_interpreter_of_a_missing_attribute(fx):
    graph = fx.Graph()
    graph.output(graph.get_attr("a.b"))
    with pytest.raises(RuntimeError, match="Node referenced nonexistent target a"):
        fx.Interpreter(torch.nn.Module(), graph=graph).run()


def test_transformer_noop(fx):
    m = MyModule()
    gm = fx.symbolic_trace(m)
    new_gm = fx.Transformer(gm).transform()
    assert names(new_gm.graph) == names(gm.graph)
    x = torch.randn(3, 4)
    assert torch.equal(new_gm(x), m(x))


def test_transformer_op_swap(fx):
    class NegSigmSwapXformer(fx.Transformer):
        def call_function(self, target, args, kwargs):
            return torch.neg(*args, **kwargs) if target is torch.sigmoid else super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            if target == "neg":
                call_self, *args_tail = args
                return call_self.sigmoid(*args_tail, **kwargs)
            return super().call_method(target, args, kwargs)

    transformed = NegSigmSwapXformer(fx.symbolic_trace(lambda x: torch.sigmoid(x).neg())).transform()
    x = torch.randn(3, 4)
    assert torch.equal(transformed(x), torch.neg(x).sigmoid())
    assert targets(transformed.graph, "call_function") == [torch.neg]


def test_transformer_multi_outputs(fx):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.param = torch.nn.Parameter(torch.rand(3, 4))

        def forward(self, x, k=3):
            x = x + self.param
            return x, {"y": x * k}

    m = M()
    gm = fx.symbolic_trace(m)
    new_gm = fx.Transformer(gm).transform()
    x = torch.rand(3, 4)
    torch.testing.assert_close(new_gm(x), m(x))
    assert node_named(new_gm.graph, "k").args == (3,)


def test_transformer_preserves_nn_module_stack_for_get_attr(fx):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(1, 1))

        def forward(self, x):
            return self.weight + x

    gm = fx.GraphModule(M(), fx.Tracer().trace(M()))
    for node in gm.graph.nodes:
        if node.op == "get_attr":
            node.meta["nn_module_stack"] = "self"
            node.meta["stack_trace"] = "stack_trace"
            node.meta["source_fn_stack"] = "source_fn_stack"
    new_gm = fx.Transformer(gm).transform()
    (node,) = new_gm.graph.find_nodes(op="get_attr")
    assert [node.meta[k] for k in ("nn_module_stack", "stack_trace", "source_fn_stack")] == [
        "self", "stack_trace", "source_fn_stack"
    ]  # fmt: skip


def test_native_callable(fx):
    """A GraphModule that holds a callable object and calls it: how a compiled function goes into a module."""

    class Native(torch.nn.Module):
        def __call__(self, items):
            return items[0] * 2 + items[1]

    wrapper = torch.nn.Module()
    wrapper.interpreter = Native()
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    interpreter = graph.get_attr("interpreter")
    graph.output(graph.call_method("__call__", (interpreter, [x, y])))
    graph.lint()
    module = fx.GraphModule(wrapper, graph)
    a, b = torch.rand(3), torch.rand(3)
    assert torch.equal(module(a, b), a * 2 + b)


def test_script_method_trace(fx):
    class Scripted(torch.nn.Module):
        def forward(self, x):
            return torch.relu(x)

    class Holder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.s = torch.jit.script(Scripted())

        def forward(self, x):
            return self.s(x)

    traced = fx.symbolic_trace(Holder())
    x = torch.rand(2, 3)
    assert torch.equal(traced(x), Holder()(x))
    assert [(n.op, n.target) for n in traced.graph.nodes] == [
        (n.op, n.target) for n in torch.fx.symbolic_trace(Holder()).graph.nodes
    ]


def test_results_of_an_interpreter_over_operators(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    item = graph.call_function(operator.getitem, (x, slice(None, None, 2)))
    graph.output({"a": item})
    assert fx.Interpreter(fx.GraphModule({}, graph)).run([1, 2, 3]) == {"a": [1, 3]}
