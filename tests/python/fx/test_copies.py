"""Immutable arguments and copies, on both."""

import copy
import gc
import operator
import pickle

import pytest
import torch
from helpers import names, node_named, ops, targets
from torch.utils import _pytree as pytree


class Sub(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.rand(3))

    def forward(self, x):
        return x + self.w


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.linear(self.sub(x)).relu()


def test_no_mutation(fx):
    immutable = fx.immutable_collections.immutable_list([1, 2])
    with pytest.raises(TypeError, match="does not support mutation"):
        immutable[0] = 3


def test_copy_it(fx):
    d = fx.immutable_collections.immutable_dict([(3, 4), (5, 6)])
    items = fx.immutable_collections.immutable_list([(3, 4), (5, 6)])
    assert d == copy.deepcopy(d) and items == copy.deepcopy(items)


def test_immutable_list_pytree_ops(fx):
    items = fx.immutable_collections.immutable_list([3, [True, None, torch.randn(3)], (True, torch.randn(2))])
    leaves, spec = pytree.tree_flatten(items)
    rebuilt = pytree.tree_unflatten(leaves, spec)
    assert rebuilt == items and type(rebuilt) is type(items)


def test_immutable_dict_pytree_ops(fx):
    d = fx.immutable_collections.immutable_dict(a=3, b=[True, None, torch.randn(2)], c={"x": 1})
    leaves, spec = pytree.tree_flatten(d)
    assert type(pytree.tree_unflatten(leaves, spec)) is type(d)


def test_deepcopy_graphmodule_with_transform(fx):
    traced = fx.symbolic_trace(Net())
    copied = copy.deepcopy(traced)
    node = node_named(copied.graph, "relu")
    node.target = "neg"
    copied.recompile()
    x = torch.rand(2, 3)
    assert torch.equal(traced(x), traced.linear(x + traced.sub.w).relu())
    assert torch.equal(copied(x), traced.linear(x + traced.sub.w).neg())


def test_deepcopy_with_submods_params(fx):
    traced = fx.symbolic_trace(Net())
    copied = copy.deepcopy(traced)
    copied.graph.lint()
    x = torch.rand(2, 3)
    assert torch.equal(copied(x), traced(x)) and copied.sub.w is not traced.sub.w
    assert set(copied.state_dict()) == set(traced.state_dict())
    with torch.no_grad():
        copied.sub.w.add_(1)
    assert not torch.equal(copied.sub.w, traced.sub.w)


def test_deepcopy_graph_with_tracer_cls(fx):
    class TestTracer(fx.Tracer):
        def is_leaf_module(self, module, name):
            return True

    g = fx.Graph(tracer_cls=TestTracer)
    x = g.placeholder("x")
    g.output(x)
    assert copy.deepcopy(g)._tracer_cls is TestTracer
    assert fx.symbolic_trace(Net()).graph._tracer_cls is fx.Tracer


def test_deepcopy_recursion_depth(fx):
    depth = 2000
    g = fx.Graph()
    x = g.placeholder("x")
    for _ in range(depth):
        x = g.call_function(torch.relu, (x,))
    g.output(x)
    copied = copy.deepcopy(g)
    assert names(copied) == names(g) and not any(a is b for a, b in zip(g.nodes, copied.nodes))


def test_deepcopy_keeps_output_and_meta(fx):
    g = fx.Graph()
    x = g.placeholder("x", type_expr=int)
    x.meta["k"] = [1]
    out = g.output(([x], {"a": x}), type_expr=float)
    out.meta["o"] = 2
    copied = copy.deepcopy(g)
    new_x, new_out = copied.nodes
    assert new_x.meta == {"k": [1]} and new_x.meta is not x.meta and new_x.meta["k"] is x.meta["k"]
    assert new_out.args == (([new_x], {"a": new_x}),) and new_out.type is float and new_x.type is int
    assert new_out.meta["o"] == 2


def test_module_deepcopy_edit_nodes(fx):
    traced = fx.symbolic_trace(lambda x: torch.relu(x))
    copied = copy.deepcopy(traced)
    for node in copied.graph.nodes:
        if node.target is torch.relu:
            node.target = torch.neg
    copied.recompile()
    traced.recompile()
    x = torch.randn(5)
    assert torch.equal(traced(x), x.relu()) and torch.equal(copied(x), x.neg())


def test_deepcopy_tracer(fx):
    def fn(x, y):
        return (x + y).relu().sin()

    tracer = fx.Tracer()
    before = copy.deepcopy(tracer)
    result = tracer.trace(fn)
    after = copy.deepcopy(tracer)
    assert str(result) == str(before.trace(fn)) == str(after.trace(fn))
    assert not hasattr(before, "graph") or before.graph is not result


def test_deepcopy_graphmodule(fx):
    traced = fx.symbolic_trace(Net())
    traced.meta["foo"] = "bar"
    traced.extra = [1]
    copied = copy.deepcopy(traced)
    assert copied.meta == traced.meta and copied.meta is not traced.meta and type(copied) is not type(traced)
    assert copied.graph is not traced.graph and copied.graph.owning_module is copied


def test_deepcopy_no_recursion(fx):
    traced = fx.symbolic_trace(Net())
    traced.meta["self"] = traced
    copied = copy.deepcopy(traced)
    assert copied.meta["self"] is copied


def test_proxy_deepcopy_without_tracer(fx):
    module = fx.symbolic_trace(Net())
    node = node_named(module.graph, "linear")
    proxy = fx.Proxy(node)
    copied = copy.deepcopy(proxy)
    assert copied.node.name == "linear" and isinstance(copied, fx.Proxy)


def test_proxy_deepcopy_with_tracer(fx):
    class TestTracer(fx.Tracer):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def is_leaf_module(self, module, name):
            return True

    module = fx.symbolic_trace(Net())
    tracer = TestTracer("mine")
    proxy = fx.Proxy(node_named(module.graph, "linear"), tracer)
    proxy.extra = [1]
    copied = copy.deepcopy(proxy)
    assert copied.tracer.name == "mine" and copied.extra == [1] and copied.extra is not proxy.extra


def test_copies_of_a_graph_module_share_parameters_with_copy_only(fx):
    traced = fx.symbolic_trace(Net())
    shallow = copy.copy(traced)
    assert shallow.sub.w is traced.sub.w and torch.equal(shallow(torch.ones(3)), traced(torch.ones(3)))


def test_graph_copy_with_given_values(fx):
    source = fx.Tracer().trace(lambda x, y: x + y)
    x, y, *_ = source.nodes
    target = fx.Graph()
    a = target.placeholder("a")
    val_map = {x: a, y: a}
    result = target.graph_copy(source, val_map)
    assert ops(target) == ["placeholder", "call_function"] and result.args == (a, a)
    assert targets(target, "call_function") == [operator.add] and len(val_map) == 3


def test_node_copy_with_a_transform(fx):
    source = fx.Graph()
    x = source.placeholder("x")
    node = source.call_function(max, ([x, 1],), {"k": x})
    node.meta["k"] = 1
    target = fx.Graph()
    a = target.placeholder("a")
    copied = target.node_copy(node, lambda n: a)
    assert copied.args == ([a, 1],) and dict(copied.kwargs) == {"k": a} and copied.meta == {"k": 1}
    assert copied.meta is not node.meta and copied.name == "max_1" and copied.target is max


def test_proxies_do_not_pickle(ours):
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(ours.Proxy(ours.Graph().placeholder("x")))


def small_graph(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    total = graph.call_function(torch.add, (x, 1))
    graph.output(total)
    return graph, x, total


def test_a_copied_node_lies_in_a_copy_of_its_graph(fx):
    graph, x, total = small_graph(fx)
    new = copy.deepcopy(total)
    assert new is not total and new.graph is not graph and new.name == "add" and new.target is torch.add
    assert new.args[0] is not x and new.args[0].name == "x" and new.args[0].graph is new.graph
    assert copy.deepcopy(total.args)[0] is not x


def test_nodes_in_a_container_stay_together_in_its_copy(fx):
    graph, x, total = small_graph(fx)
    new = copy.deepcopy({"total": total, "inputs": [x]})
    assert new["total"].args[0] is new["inputs"][0]


def test_a_graph_and_its_nodes_are_copied_into_one(ours):
    graph, x, total = small_graph(ours)  # torch.fx copies the graph twice
    new_graph, new_total, new_x = copy.deepcopy((graph, total, x))
    assert list(new_graph.nodes)[:2] == [new_x, new_total]


def test_users_are_copied_as_a_dict(fx):
    graph, x, total = small_graph(fx)
    assert copy.copy(x.users) == {total: None} and type(copy.copy(x.users)) is dict
    assert [n.name for n in copy.deepcopy(x.users)] == ["add"]


def test_a_copy_that_fails_leaves_the_map_with_what_was_copied(fx):
    graph, target, known = fx.Graph(), fx.Graph(), {}
    x = graph.placeholder("x")
    first = graph.call_function(operator.neg, (x,))
    late = graph.call_function(operator.neg, (x,))
    early = graph.call_function(operator.neg, (late,))
    late.prepend(early)
    graph.output(late)
    with pytest.raises(KeyError):
        target.graph_copy(graph, known)
    assert list(known) == [x, first]
    assert list(known.values()) == list(target.nodes)


def test_hashes_of_nodes(fx):
    """Of the object, whatever becomes of its graph, and the same for equal nodes: identity."""
    graph = fx.Graph()
    nodes = [graph.placeholder(f"x{i}") for i in range(100)]
    before = [hash(n) for n in nodes]
    assert len(set(before)) == 100
    del graph
    gc.collect()
    assert [hash(n) for n in nodes] == before
    assert {n: i for i, n in enumerate(nodes)}[nodes[7]] == 7
