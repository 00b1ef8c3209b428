"""Building and editing graphs, on both."""

import operator

import pytest
import torch
from helpers import Simple, names, node_named, targets


def test_custom_import(fx):
    graph = fx.Graph()
    a, b = graph.placeholder("x"), graph.placeholder("y")
    c = graph.call_function(operator.add, (a, b))
    d = graph.call_function(a_local_function, (c,))
    graph.output(d)
    x, y = torch.rand(1), torch.rand(1)
    assert torch.equal(fx.GraphModule(torch.nn.Module(), graph)(x, y), a_local_function(x + y))


def a_local_function(x):
    return torch.sin(x) + x


def test_graph_edit_with_proxy(fx):
    class M(torch.nn.Module):
        def forward(self, a, b):
            return a + b

    graph = fx.Tracer().trace(M())
    new_g = fx.Graph()
    result = new_g.graph_copy(graph, {})
    t = fx.Proxy(result)
    new_g.output((t + t).node)
    gm = fx.GraphModule(M(), new_g)
    gm.graph.lint()
    assert gm(3, 4) == 14


def test_graph_unique_names(fx):
    graph = fx.Tracer().trace(lambda a, b: a + b)
    new_g = fx.Graph()
    t = fx.Proxy(new_g.graph_copy(graph, {}))
    new_g.output((t + t).node)
    gm = fx.GraphModule({}, new_g)
    assert names(gm.graph) == ["a", "b", "add", "add_1", "output"]


def test_graph_unique_names_manual(fx):
    graph = fx.Graph()
    a = graph.create_node("placeholder", "x")
    b = graph.create_node("call_module", "linear_mod", args=(a,), name="foo_1_1")
    c = graph.create_node("get_attr", "y_attr", name="foo_1")
    d = graph.create_node("call_function", operator.add, args=(b, c))
    graph.output(d)
    graph2 = fx.Graph()
    val_map = {}
    graph2.graph_copy(graph, val_map)
    assert len(set(names(graph2))) == 4 and names(graph2) == names(graph)[:4] and val_map[a].graph is graph2


def test_graph_fns(fx):
    graph = fx.Graph()
    a = graph.placeholder("a")
    b = graph.call_module("linear", (a,))
    c = graph.get_attr("bias")
    d = graph.call_method("add", (b, c))
    e = graph.call_function(torch.sin, (d,))
    graph.output(e)
    mod = torch.nn.Module()
    mod.linear = torch.nn.Linear(3, 4)
    mod.bias = torch.rand(4)
    gm = fx.GraphModule(mod, graph)
    x = torch.rand(3)
    assert torch.equal(gm(x), torch.sin(mod.linear(x) + mod.bias))
    assert dict(gm.named_buffers()).keys() == {"bias"}


def test_all_input_nodes(fx):
    graph = fx.Graph()
    a = graph.placeholder("x")
    b = graph.call_module("linear_mod", args=(a,))
    c = graph.get_attr("y_attr")
    d = graph.call_function(operator.add, args=(b, c))
    e = graph.call_function(torch.unsqueeze, args=(d, 0), kwargs={"k": [d, (a,)]})
    graph.output(e)
    assert b.all_input_nodes == [a] and c.all_input_nodes == [] and d.all_input_nodes == [b, c]
    assert e.all_input_nodes == [d, a] and list(d.users) == [e]


def test_remove_uses(fx):
    g = fx.Graph()
    x = g.placeholder("x")
    relu = g.call_function(torch.relu, (x,))
    neg = g.call_function(torch.neg, (relu,))
    g.output(neg)
    neg.replace_all_uses_with(relu)
    g.erase_node(neg)
    assert neg not in relu.users and len(g.nodes) == 3


def test_prepend_does_not_leak(fx):
    g = fx.Graph()
    x = g.placeholder("x")
    relu = g.call_function(torch.relu, (x,))
    neg = g.call_function(torch.neg, (x,))
    relu.prepend(neg)
    assert names(g) == ["x", "neg", "relu"] and x.next is neg and neg.next is relu and relu.prev is neg


def test_remove_uses_with_custom_filter(fx):
    g = fx.Graph()
    x = g.placeholder("x")
    relu = g.call_function(torch.relu, (x,))
    neg = g.call_function(torch.neg, (relu,))
    g.output(neg)
    assert neg.replace_all_uses_with(relu, lambda n: n != next(iter(neg.users))) == []
    assert neg in relu.users and neg.users


def test_replace_all_uses_with_returns_what_changed_and_propagates_meta(fx):
    g = fx.Graph()
    x = g.placeholder("x")
    relu = g.call_function(torch.relu, (x,))
    relu.meta["k"] = 1
    user = g.call_function(torch.add, (relu, relu))
    out = g.output((relu, [relu]))
    with g.inserting_after(relu):
        new = g.call_function(torch.neg, (x,))
    assert relu.replace_all_uses_with(new, propagate_meta=True) == [user, out]
    assert new.meta["k"] == 1 and user.args == (new, new) and out.args == ((new, [new]),)
    with pytest.raises(AssertionError, match="already has .meta keys"):
        relu.replace_all_uses_with(new, propagate_meta=True)


def test_a_replacement_that_uses_what_it_replaces_needs_the_filter(fx):
    g = fx.Graph()
    x = g.placeholder("x")
    out = g.output(x)
    with g.inserting_after(x):
        new = g.call_function(torch.neg, (x,))
    assert x.replace_all_uses_with(new, lambda user: user is not new) == [out]
    assert new.args == (x,) and out.args == (new,)
    g.lint()


def test_construct_root_dict(fx):
    graph = fx.Graph()
    a = graph.create_node("placeholder", "x")
    b = graph.create_node("call_module", "foo.bar.baz", args=(a,))
    c = graph.create_node("get_attr", "zip.zap.zam")
    d = graph.create_node("call_function", operator.add, args=(b, c))
    graph.create_node("output", "output", (d,))
    linear_mod, add_param = torch.nn.Linear(3, 4), torch.rand(3, 4)
    gm = fx.GraphModule({"foo.bar.baz": linear_mod, "zip.zap.zam": add_param}, graph)
    gm.graph.lint()
    x = torch.rand(3, 3)
    assert gm.foo.bar.baz is linear_mod and gm.zip.zap.zam is add_param
    assert torch.equal(gm(x), linear_mod(x) + add_param)


def test_replace_uses(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    relu = graph.call_function(torch.relu, (x,))
    graph.output(graph.call_function(torch.add, (relu, relu)))
    for node in list(graph.nodes):
        if node.target is torch.relu:
            with graph.inserting_after(node):
                new = graph.call_function(torch.sigmoid, node.args)
            node.replace_all_uses_with(new)
            graph.erase_node(node)
    assert targets(graph, "call_function") == [torch.sigmoid, torch.add]
    graph.lint()


def test_replace_input(fx):
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    b = graph.call_module("linear", (x,))
    out = graph.output([b, {"k": b}])
    b.replace_input_with(x, y)
    assert b.args == (y,) and not x.users and list(y.users) == [b] and out.args == ([b, {"k": b}],)


def test_insertion_point(fx):
    graph = fx.Graph()
    x = graph.create_node("placeholder", "x")
    b = graph.create_node("call_module", "linear_mod", args=(x,))
    output = graph.output(b)
    with graph.inserting_before(b):
        neg = graph.call_function(the_function=torch.neg, args=(x,))
        _, *relu_args = b.args
        b.args = (neg, *relu_args)
    with graph.inserting_after(b), graph.inserting_before(output):
        graph.call_function(torch.abs, (b,))
    assert names(graph) == ["x", "neg", "linear_mod", "abs_1", "output"]
    graph.inserting_before(x)  # permanent
    graph.get_attr("a")
    graph.inserting_before()
    graph.get_attr("b")
    graph.inserting_after()
    graph.get_attr("c")
    assert names(graph)[:2] == ["b", "a"] and names(graph)[-1] == "c"


def test_two_nodes_inserted_after_one_come_out_reversed(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(x)
    with graph.inserting_after(x):
        graph.call_function(torch.neg, (x,))
        graph.call_function(torch.abs, (x,))
    assert names(graph) == ["x", "abs_1", "neg", "output"]


def test_multi_insert_point(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    relu = graph.call_function(torch.relu, (x,))
    with graph.inserting_before(relu):
        graph.call_function(torch.neg, (x,))
        graph.call_function(torch.tanh, (x,))
    assert names(graph) == ["x", "neg", "tanh", "relu"]


def test_update_args_api(fx):
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    b = graph.call_module("linear", (x,))
    b.update_arg(0, y)
    assert b.args == (y,) and list(y.users) == [b] and not x.users


def test_update_kwargs_api(fx):
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    b = graph.call_module("linear", kwargs={"input": x})
    b.update_kwarg("input", y)
    b.update_kwarg("other", x)
    assert dict(b.kwargs) == {"input": y, "other": x} and list(y.users) == [b]


def test_move_before(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    b = graph.call_module("linear", (x,))
    out = graph.output(b)
    neg = graph.call_function(torch.neg, (x,))
    out.prepend(neg)
    b.update_arg(0, neg)
    b.prepend(neg)
    assert names(graph) == ["x", "neg", "linear", "output"]
    graph.lint()


def test_prepend_self(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    b = graph.call_module("linear", (x,))
    graph.output(b)
    b.prepend(b)
    x.append(b)
    assert names(graph) == ["x", "linear", "output"] and len(graph.nodes) == 3


def test_erase_node_error(fx):
    traced = fx.symbolic_trace(Simple())
    for node in traced.graph.nodes:
        if node.target in ("relu", torch.relu):
            with pytest.raises(RuntimeError, match="but it still had .* users in the graph"):
                traced.graph.erase_node(node)


def test_find_uses(fx):
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"))
    y = torch.relu(x)
    z = x + x
    u = torch.neg(x)
    graph.output((y + z + u).node)
    assert {n.name for n in x.node.users} == {"relu", "add", "neg"} and [n.name for n in y.node.users] == ["add_1"]


def test_inline_graph(fx):
    class InlineInto(torch.nn.Module):
        def forward(self, x):
            return torch.relu(x)

    class ToInline(torch.nn.Module):
        def forward(self, x):
            return torch.neg(x)

    inline_into, to_inline = fx.symbolic_trace(InlineInto()), fx.symbolic_trace(ToInline())
    combined = fx.Graph()
    output_node = combined.graph_copy(inline_into.graph, {})
    input_node = next(iter(to_inline.graph.nodes))
    val_map = {input_node: output_node}
    combined.output(combined.graph_copy(to_inline.graph, val_map))
    x = torch.rand(3, 4)
    assert torch.equal(fx.GraphModule(torch.nn.Module(), combined)(x), x.relu().neg())
    assert names(combined) == ["x", "relu", "neg", "output"]


def test_reassign_args_kwargs_uses(fx):
    graph = fx.Graph()
    x, y = fx.Proxy(graph.placeholder("x")), fx.Proxy(graph.placeholder("y"))
    z = x + y
    zed = z + z + z
    graph.output(zed.node)
    graph.lint()
    # zed = z + z + z -> zed = z + z + x
    zed.node.args = (zed.node.args[0], x.node)
    assert list(x.node.users) == [z.node, zed.node]
    z.node.args = (y.node, y.node)
    assert list(x.node.users) == [zed.node]
    node_named(graph, "add_1").kwargs = {"k": x.node}
    assert list(x.node.users) == [zed.node, node_named(graph, "add_1")]


def test_insert_arg(fx):
    class TwoBuffers(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("buf", torch.tensor(0))

        def forward(self, x):
            return x + self.buf

    graph = fx.symbolic_trace(TwoBuffers()).graph
    *_, output = graph.nodes
    with graph.inserting_before(output):
        node = graph.get_attr("buf")
    output.insert_arg(0, node)
    assert output.args[0] is node and list(node.users) == [output] and len(output.args) == 2


def test_empty_graph_codegen(fx):
    graph = fx.Graph()
    gm = fx.GraphModule(torch.nn.Module(), graph)
    assert gm() is None and str(graph) == "graph():"


def test_copy_no_remap(fx):
    traced = fx.symbolic_trace(Simple())
    copied = fx.Graph()
    for node in traced.graph.nodes:
        copied.node_copy(node)
    with pytest.raises(RuntimeError, match="does not belong to this Graph"):
        copied.lint()


def test_wrong_topo(fx):
    graph = fx.Graph()
    a = graph.create_node("placeholder", "x")
    b = graph.create_node("call_module", "foo.bar.baz", args=(a,))
    c = graph.create_node("get_attr", "zip.zap.zam")
    d = graph.create_node("call_function", operator.add, args=(b, c))
    graph.create_node("output", "output", (d,))
    nodes = list(graph.nodes)
    nodes[2].append(nodes[1])  # still fine
    graph.lint()
    nodes[3].append(nodes[2])
    with pytest.raises(RuntimeError, match="was used before it has been defined"):
        graph.lint()


def test_users_read_like_a_dict(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.add, (x, 1))
    assert x.users.get(y, "missing") is None
    assert x.users.get(x, "missing") == "missing" and x.users.get(x) is None
    assert x.users | {x: 1} == {y: None, x: 1} and y.users | x.users == {y: None}


def test_args_given_as_a_list(fx):
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    total = graph.call_function(torch.add, (x, x))
    graph.output(total)
    total.args = [x, y]
    assert list(total.args) == [x, y] and list(y.users) == [total]
    assert fx.GraphModule({}, graph)(1, 2) == 3


def test_names_that_modules_import_can_be_taken_from_them(fx):
    assert fx.graph.Node is fx.interpreter.Node is fx.proxy.Node is fx.Node
    assert fx.graph.map_arg([1, (2,)], lambda n: n) == [1, (2,)]
    assert fx.interpreter.GraphModule is fx.GraphModule and fx.interpreter.Tracer is fx.Tracer
    assert fx.proxy.Graph is fx.Graph
