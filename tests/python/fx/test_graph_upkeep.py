"""Dead code, queries and names of graphs, on both."""

import operator

import pytest
import torch
from helpers import Simple, names, node_named, ops, targets


def test_profiler_ranges_side_effect(fx):
    g = fx.Graph()
    handle = g.call_function(torch.ops.profiler._record_function_enter_new, ("test_range",))
    g.call_function(torch.ops.profiler._record_function_exit, (handle,))
    g.output(None)
    g.eliminate_dead_code()
    assert targets(g, "call_function") == [
        torch.ops.profiler._record_function_enter_new, torch.ops.profiler._record_function_exit
    ]  # fmt: skip


def side_effect_func(x):
    print(x)


def test_adding_side_effect_function(fx):
    class TestModule(torch.nn.Module):
        def forward(self, x):
            return x

    gm = fx.symbolic_trace(TestModule())
    with gm.graph.inserting_after(node_named(gm.graph, "x")):
        gm.graph.call_function(side_effect_func, (node_named(gm.graph, "x"),))
    fx.node.has_side_effect(side_effect_func)
    assert not gm.graph.eliminate_dead_code() and side_effect_func in targets(gm.graph, "call_function")
    torch.fx.node._side_effectful_functions.discard(side_effect_func)


# ---- dead code ----


def test_dead_code(fx):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.attr_1 = torch.nn.Parameter(torch.tensor([-0.9]))

        def forward(self, x):
            a = x + 1
            a + 2
            return x + self.attr_1

    traced = fx.symbolic_trace(M())
    assert traced.graph.eliminate_dead_code() is True
    assert names(traced.graph) == ["x", "attr_1", "add_2", "output"]
    assert traced.graph.eliminate_dead_code() is False


def test_random_numbers_and_assertions_are_no_dead_code(fx):
    def f(x):
        torch.rand_like(x)
        torch._assert(x, "x")
        return x

    graph = fx.Tracer().trace(f)
    graph.eliminate_dead_code()
    assert torch._assert in targets(graph, "call_function") and torch.rand_like in targets(graph, "call_function")


def test_in_place_methods_are_no_dead_code(ours):
    def f(x):
        x.mul_(2)
        return x

    traced = ours.symbolic_trace(f)
    assert not traced.graph.eliminate_dead_code()
    assert torch.equal(traced(torch.ones(2)), torch.full((2,), 2.0))


def test_dead_code_by_the_users_own_measure(fx):
    graph = fx.Tracer().trace(lambda x: (x.neg(), x)[1])
    assert not graph.eliminate_dead_code(lambda node: True)
    assert graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
    assert ops(graph) == ["placeholder", "output"]


# ---- queries ----


def test_find_nodes(fx):
    traced = fx.symbolic_trace(Simple())
    g = traced.graph
    assert g.find_nodes(op="call_module", target="linear") == [node_named(g, "linear")]
    assert g.find_nodes(op="call_function", target=operator.add) == [node_named(g, "add")]
    assert g.find_nodes(op="placeholder") == [node_named(g, "x")] and g.find_nodes(op="call_method", target="no") == []
    with pytest.raises(AssertionError, match="target must not be None"):
        g.find_nodes(op="call_function")
    node_named(g, "linear").target = "other"
    assert g.find_nodes(op="call_module", target="other") and not g.find_nodes(op="call_module", target="linear")
    node_named(g, "add").target = operator.sub
    assert g.find_nodes(op="call_function", target=operator.sub) and not g.find_nodes(op="call_function", target=operator.add)
    first = node_named(g, "relu")
    with g.inserting_before(first):
        g.call_method("relu", (node_named(g, "linear"),))
    assert names(g).index("relu_1") < names(g).index("relu")
    assert [n.name for n in g.find_nodes(op="call_method")] == ["relu_1", "relu"]
    assert [n.name for n in g.find_nodes(op="call_method", sort=False)] == ["relu", "relu_1"]
    assert g.output_node() is node_named(g, "output")


NAMES = ["x", "add", "add", "Add", "foo_3", "foo", "foo", "foo_3", "1abc", "a.b-c", "", "float", "sum", "for", "torch", "inf",
         "__add__", "CamelCase", "ALL_CAPS", "a__b", "x_1", "x", "max", "_", "__", "device", "nan", "x_1_1", "relu_007"]  # fmt: skip


def test_names_are_torchs(fx):
    def run(lib):
        graph = lib.Graph()
        out = [graph.create_node("placeholder", n, name=n).name for n in NAMES]
        out += [graph.placeholder(n).name for n in NAMES if n]
        return out + [graph.call_method(n, (1,)).name for n in NAMES if n]

    assert run(fx) == run(torch.fx)


def test_renaming(fx):
    graph = fx.Tracer().trace(lambda x: x.neg().neg())
    node = node_named(graph, "neg")
    node._rename("better")
    assert node.name == "better"
    node._rename("neg_1")
    assert node.name == "neg_2" and len(set(names(graph))) == 4


def test_a_graph_is_copied_into_itself(ours):
    graph = ours.Graph()
    x = graph.placeholder("x")
    graph.call_function(torch.relu, (x,))
    mapped = {}
    assert graph.graph_copy(graph, mapped) is None
    assert names(graph) == ["x", "relu", "x_1", "relu_1"] and len(mapped) == 2
    graph.lint()


def test_nodes_that_a_hook_adds_are_not_copied(ours):
    gm = ours.symbolic_trace(lambda x: torch.relu(x))

    def also(node):
        if node.target is torch.relu:
            for _ in range(50):
                gm.graph.call_method("sin", (node,))

    gm._register_create_node_hook(also)
    last = gm.graph.output_node()
    with gm.graph.inserting_before(last):
        gm.graph.graph_copy(gm.graph, {})
    assert len(gm.graph.nodes) == 3 + 2 + 50
    gm.graph.lint()


def test_hooks_learn_of_copies_and_of_dead_code(fx):
    gm, log = fx.symbolic_trace(lambda x: torch.relu(x)), []
    gm._register_create_node_hook(lambda n: log.append(("made", n.name)))
    gm._register_erase_node_hook(lambda n: log.append(("erased", n.name)))
    x, relu, output = gm.graph.nodes
    other = fx.symbolic_trace(lambda y: y.sin().cos()).graph
    with gm.graph.inserting_before(output):
        gm.graph.node_copy(relu)
        gm.graph.node_copy(relu, lambda n: n)
        gm.graph.graph_copy(other, {next(iter(other.nodes)): x})
    assert log == [("made", name) for name in ("relu_1", "relu_2", "sin", "cos")]
    log.clear()
    gm.graph.eliminate_dead_code()
    assert log == [("erased", name) for name in ("cos", "sin", "relu_2", "relu_1")]


def test_an_inserted_argument_leaves_the_order_of_users(fx):
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    first, second = (graph.call_function(torch.add, (x, n)) for n in (1, 2))
    first.insert_arg(2, y)
    first.insert_arg(0, x)
    first.insert_arg(0, 5)
    assert first.args == (5, x, x, 1, y)
    assert list(x.users) == [first, second] and list(y.users) == [first] and first.all_input_nodes == [x, y]
    first.args = (1,)
    assert list(x.users) == [second] and not y.users


@pytest.mark.parametrize("constant", [3, None, "text", [1, 2.5], torch.float32], ids=repr)
def test_uses_are_replaced_by_a_constant(fx, constant):
    graph = fx.Graph()
    x = graph.placeholder("x")
    relu = graph.call_function(torch.relu, (x,))
    total = graph.call_function(torch.add, (relu, 1), {"out": relu})
    graph.output((total, relu))
    assert [n.name for n in relu.replace_all_uses_with(constant, lambda user: user.op != "output")] == ["add"]
    assert total.args == (constant, 1) and total.kwargs == {"out": constant} and list(relu.users) == [graph.output_node()]
    assert [n.op for n in relu.replace_all_uses_with(constant)] == ["output"] and not relu.users
    assert graph.output_node().args == ((total, constant),)
    graph.lint()
