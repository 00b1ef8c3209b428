"""GraphModule as an nn.Module, on both."""

import copy
import inspect
import operator

import pytest
import torch
from helpers import names, node_named, targets


class Sub(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 1, 1)
        self.w = torch.nn.Parameter(torch.rand(1))

    def forward(self, x):
        return self.conv(x) * self.w


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Sub()
        self.b = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Dropout(0.5))
        self.unused = torch.nn.Linear(1, 1)
        self.register_buffer("buf", torch.ones(1))
        self.plain = 5

    def forward(self, x):
        return self.b(self.a(x)) + self.buf


def image():
    return torch.rand(1, 1, 2, 2)


def test_graph_module_replicate_for_dp(fx):
    gm = fx.symbolic_trace(Net().eval())
    x = image()
    replica = gm._replicate_for_data_parallel()
    assert torch.equal(replica(x), gm(x))


def test_submodule_manipulation_API(fx):
    a = fx.symbolic_trace(Net())
    assert a.add_submodule("conv", torch.nn.Conv2d(1, 1, 1)) and isinstance(a.conv, torch.nn.Conv2d)
    assert a.add_submodule("net_b.net_c.dropout", torch.nn.Dropout(0.2))
    assert isinstance(a.net_b.net_c.dropout, torch.nn.Dropout)
    assert not a.add_submodule("buf.inner", torch.nn.ReLU())
    assert a.delete_submodule("net_b.net_c.dropout") and not hasattr(a.net_b.net_c, "dropout")
    assert not a.delete_submodule("net_b.nothing") and not a.delete_submodule("buf") and not a.delete_submodule("x.y.z")
    a.graph.lint()


def test_delete_unused_submodules_leaf(fx):
    class SubModule(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(10, 10)
            self.relu = torch.nn.ReLU()

        def forward(self, x):
            return self.relu(self.linear(x))

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.submod = SubModule()

        def forward(self, x):
            return self.submod(x)

    class MyCustomTracer(fx.Tracer):
        def is_leaf_module(self, module, qualname):
            return qualname == "submod"

    model = Model()
    gm = fx.GraphModule(model, MyCustomTracer().trace(model))
    x = torch.randn(1, 10)
    expected = gm(x)
    gm.delete_all_unused_submodules()
    assert torch.equal(gm(x), expected) and hasattr(gm.submod, "linear")


def test_delete_all_unused_submodules(fx):
    gm = fx.symbolic_trace(Net())
    gm.add_submodule("x.y.z", torch.nn.ReLU())
    gm.add_submodule("a.extra", torch.nn.ReLU())
    gm.delete_all_unused_submodules()
    assert {name for name, _ in gm.named_modules()} == {"", "a", "a.conv", "b", "b.0", "b.1"}


def test_fx_stateless(fx):
    class MockModule(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.l1 = torch.nn.Linear(1, 1)
            self.register_buffer("buffer", torch.ones(1))

        def forward(self, x):
            return self.l1(x) + self.buffer

    module = MockModule()
    x = torch.rand((1, 1))
    traced = fx.symbolic_trace(module)
    parameters = {"l1.weight": torch.tensor([[1.0]]), "l1.bias": torch.tensor([0.0]), "buffer": torch.tensor([0.0])}
    result = torch.func.functional_call(traced, parameters, x)
    torch.testing.assert_close(result, x)
    for name in ("l1.weight", "l1.bias"):
        parameters[name] = parameters[name].requires_grad_()
    torch.func.functional_call(traced, parameters, x).backward()
    assert traced.l1.weight.grad is None and parameters["l1.weight"].grad is not None


def test_graph_module_init_buffer_param_copied_dict_init(fx):
    class MyModule(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("my_buff", torch.rand(3, 4))
            self.register_parameter("my_param", torch.nn.Parameter(torch.rand(3, 4)))

        def forward(self, x):
            return x + self.my_buff + self.my_param

    mod = MyModule()
    traced = fx.symbolic_trace(mod)
    res = fx.GraphModule({"my_buff": traced.my_buff, "my_param": traced.my_param}, traced.graph)
    res.graph.lint()
    assert res.my_buff is mod.my_buff and res.my_param is mod.my_param
    assert set(dict(res.named_parameters())) == {"my_param"} and set(dict(res.named_buffers())) == {"my_buff"}


def test_graph_module_init_buffer_param_copied_mod_init(fx):
    mod = Net()
    res = fx.GraphModule(mod, fx.symbolic_trace(mod).graph)
    assert set(res.state_dict()) == {"a.conv.weight", "a.conv.bias", "a.w", "buf"}
    assert res.a.conv is mod.a.conv and not hasattr(res, "unused") and not hasattr(res, "plain")


def test_custom_traceback_raised_when_exception_source_is_graphmodule(fx):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.W = torch.nn.Parameter(torch.randn(5))

        def forward(self, x):
            return torch.dot(self.W, x)

    traced = fx.symbolic_trace(M())
    (output,) = (n for n in traced.graph.nodes if n.op == "output")
    with traced.graph.inserting_before(output):
        output.args = (traced.graph.call_function(operator.matmul, (node_named(traced.graph, "dot"),) * 2),)
    traced.recompile()
    with pytest.raises(RuntimeError):
        traced(torch.rand(5))


def test_custom_traceback_not_raised_when_exception_source_is_submodule(fx):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 4)

        def forward(self, x):
            return self.linear(x)

    traced = fx.symbolic_trace(M())
    with pytest.raises(RuntimeError) as info:
        traced(torch.rand(5, 5))
    assert "mat1 and mat2 shapes cannot be multiplied" in str(info.value)


def test_each_instance_has_its_class_and_forward(fx):
    a, b = fx.symbolic_trace(Net()), fx.symbolic_trace(torch.nn.ReLU())
    assert type(a) is not type(b) and type(a).forward is not type(b).forward
    assert type(a).__name__ == "Net" and isinstance(a, fx.GraphModule)
    assert list(inspect.signature(b.forward).parameters) == ["input"]


def test_a_subclass_stays_one(fx):
    class Mine(fx.GraphModule):
        def extra(self):
            return 7

    m = Mine({}, fx.Tracer().trace(lambda x: x + 1))
    assert m.extra() == 7 and m(1) == 2 and isinstance(copy.deepcopy(m), Mine) and copy.deepcopy(m)(1) == 2
    assert [c.__name__ for c in type(m).__mro__].count("Mine") == 1


def test_hooks_and_training_mode(fx):
    m = Net()
    m.eval()
    traced = fx.symbolic_trace(m)
    assert traced.training is False
    x = image()
    assert torch.equal(traced(x), m(x))
    traced.register_forward_hook(lambda mod, args, out: out * 2)
    traced.register_forward_pre_hook(lambda mod, args: (args[0] + 1,))
    assert torch.equal(traced(x), m(x + 1) * 2)
    traced.train()
    assert traced.b[1].training if not hasattr(traced.b, "1") else getattr(traced.b, "1").training


def test_state_dict_moves_and_gradients(fx):
    m = Net()
    traced = fx.symbolic_trace(m.eval())
    other = Net().eval()
    traced.load_state_dict({k: v for k, v in other.state_dict().items() if not k.startswith("unused")})
    x = image()
    torch.testing.assert_close(traced(x), other(x))
    traced(x).sum().backward()
    assert traced.a.w.grad is not None and m.a.w.grad is traced.a.w.grad
    traced.double()
    assert traced(x.double()).dtype is torch.float64


def test_assigning_the_graph_recompiles(fx):
    traced = fx.symbolic_trace(lambda x: x + 1)
    assert traced(1) == 2
    traced.graph = fx.Tracer().trace(lambda x: x * 10)
    assert traced(3) == 30 and traced.graph.owning_module is traced


def test_an_edited_graph_runs_after_recompile_only(fx):
    traced = fx.symbolic_trace(lambda x: x + 1)
    node_named(traced.graph, "add").target = operator.sub
    assert traced(5) == 6
    traced.recompile()
    assert traced(5) == 4
    node_named(traced.graph, "add").args = (node_named(traced.graph, "x"), 3)
    assert traced(5) == 4
    assert fx.Interpreter(traced).run(5) == 2


def test_a_traced_module_traces_again(fx):
    m = Net().eval()
    traced = fx.symbolic_trace(m)
    again = fx.symbolic_trace(traced)
    assert names(again.graph) == names(traced.graph)
    x = image()
    assert torch.equal(again(x), m(x))


def test_a_traced_module_called_on_a_proxy_inlines_its_graph(fx):
    inner = fx.symbolic_trace(lambda x: (x + 1).relu())
    graph = fx.Tracer().trace(lambda x: x.neg())
    with graph.inserting_before(node_named(graph, "output")):
        result = inner(fx.Proxy(node_named(graph, "neg")))
    assert isinstance(result, fx.Proxy) and names(graph) == ["x", "neg", "add", "relu", "output"]


def test_retracing_keeps_signature_and_defaults(fx):
    def f(x, y=2, *args, k=3, **kwargs):
        return x + y + args[0] + k + kwargs["z"]

    traced = fx.symbolic_trace(f)
    again = fx.symbolic_trace(traced)
    assert targets(again.graph, "placeholder") == targets(traced.graph, "placeholder") == ["x", "y", "k", "*args", "**kwargs"]
    assert [n.args for n in again.graph.nodes if n.op == "placeholder"] == [(), (2,), (3,), (), ()]
    assert traced(1, 2, 3, 4, z=5) == again(1, 2, 3, 4, z=5) == 15


def test_structured_results_are_plain(fx):
    traced = fx.symbolic_trace(lambda x: {"a": [x, (x, {"b": x})]})
    out = traced(1)
    assert out == {"a": [1, (1, {"b": 1})]} and type(out) is dict and type(out["a"]) is list
    assert type(out["a"][1][1]) is dict


def test_callees_get_plain_containers(fx):
    got = []

    def callee(items, table=None):
        got.append((type(items), type(table)))
        return items[0]

    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(callee, ([x, 1],), {"table": {"k": x}}))
    assert fx.GraphModule({}, graph)(4) == 4 and got == [(list, dict)]


def test_nested_graph_modules_recompile_together(fx):
    inner = fx.symbolic_trace(lambda x: x + 1)
    graph = fx.Graph()
    graph.output(graph.call_module("inner", (graph.placeholder("x"),)))
    outer = fx.GraphModule({"inner": inner}, graph)
    node_named(outer.inner.graph, "add").target = operator.mul
    outer.recompile()
    node_named(outer.inner.graph, "add").args = (node_named(outer.inner.graph, "x"), 5)
    outer.recompile()
    assert outer(3) == 15


def test_hooks_on_edits(fx):
    traced = fx.symbolic_trace(lambda x: x.neg())
    log = []
    traced._create_node_hooks.append(lambda node: log.append(("create", node.name)))
    traced._erase_node_hooks.append(lambda node: log.append(("erase", node.name)))
    traced._replace_hooks.append(lambda old, new, user: log.append(("replace", old.name, new, user.name)))
    neg = node_named(traced.graph, "neg")
    with traced.graph.inserting_after(neg):
        new = traced.graph.call_method("abs", (neg.args[0],))
    neg.replace_all_uses_with(new)
    traced.graph.erase_node(neg)
    assert log == [("create", "abs_1"), ("replace", "neg", "abs_1", "output"), ("erase", "neg")]


def test_text(fx):
    traced = fx.symbolic_trace(Net())
    assert "print_readable" in str(traced) and "add" in str(traced)
    assert "class Net" in traced.print_readable(print_output=False)


def test_default_before_required_parameter(ours):
    graph = ours.Graph()
    x, y = graph.placeholder("x", default_value=1), graph.placeholder("y")
    graph.output(graph.call_function(operator.sub, (x, y)))
    module = ours.GraphModule({}, graph)
    assert module(5, 2) == 3 and module(y=2) == -1
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        module(5)


def test_calls_of_other_values_than_tensors_run_the_generic_form(ours, monkeypatch):
    """From the second one on; the interpreter runs the first."""
    from fxjit import graph_companion

    runs = []

    class Counted(graph_companion.SnapshotInterpreter):
        def run_parameters(self, args):
            runs.append(args)
            return super().run_parameters(args)

    def program(x, mode, *rest, scale=2, **more):
        return {mode if isinstance(mode, str) else "m": [x * scale, (rest[0] - 1, more["z"])]}

    monkeypatch.setattr(graph_companion, "SnapshotInterpreter", Counted)
    traced = ours.symbolic_trace(program)
    for k in range(1, 4):
        assert traced(3 * k, None, 2, k, z="z") == {"m": [6 * k, (k - 1, "z")]}
    assert len(runs) == 1
    with pytest.raises(TypeError) as caught:
        traced(3, None, 2, "no number", z=1)
    assert "unsupported operand" in str(caught.value) and "While executing %sub" in caught.value.__notes__[0]
    with pytest.raises(IndexError):
        traced(3, None, z=1)
    assert len(runs) == 1

    structured = ours.symbolic_trace(lambda d: d["a"] + d["b"], concrete_args={"d": {"a": ours.PH, "b": ours.PH}})
    assert [structured({"a": [k], "b": [2]}) for k in range(3)] == [[0, 2], [1, 2], [2, 2]]
    assert len(runs) == 2
