"""Python objects of the core: identity, free attributes, weak references, garbage, use after erase."""

import copy
import gc
import operator
import sys
import weakref

import pytest
import torch
from helpers import names, node_named


def chain(fx, count):
    graph = fx.Graph()
    value = graph.placeholder("x")
    for _ in range(count):
        value = graph.call_function(operator.add, (value, 1))
    graph.output(value)
    return graph


def test_a_node_is_the_same_object_each_time(fx):
    graph = chain(fx, 2)
    x, a, b, out = graph.nodes
    assert a.args[0] is x and b.args[0] is a and out.args[0] is b
    assert list(x.users) == [a] and next(iter(a.users)) is b and b.prev is a and a.next is b
    assert x.graph is graph and {x: 1}[next(iter(graph.nodes))] == 1


def test_free_attributes_stay(fx):
    graph = chain(fx, 2)
    node_named(graph, "add").tag = "mine"
    gc.collect()
    assert node_named(graph, "add").tag == "mine"
    assert not hasattr(node_named(graph, "add_1"), "tag")
    with pytest.raises(AttributeError):
        node_named(graph, "add_1").tag


def test_weak_references_live_as_long_as_the_graph(fx):
    graph = chain(fx, 2)
    ref = weakref.ref(node_named(graph, "add"))
    graph_ref = weakref.ref(graph)
    gc.collect()
    assert ref() is node_named(graph, "add")
    del graph
    gc.collect()
    assert ref() is None and graph_ref() is None


def test_a_node_keeps_its_graph(fx):
    node = node_named(chain(fx, 2), "add_1")
    gc.collect()
    assert names(node.graph) == ["x", "add", "add_1", "output"]


def test_a_proxy_keeps_its_graph(fx):
    proxy = fx.Proxy(node_named(chain(fx, 2), "add_1"))
    gc.collect()
    proxy.neg()
    assert names(proxy.node.graph)[-1] == "neg"


class Thing:
    pass


def cycle_through_meta(fx):
    graph, thing = chain(fx, 1), Thing()
    node_named(graph, "add").meta["thing"] = thing
    thing.node = node_named(graph, "x")
    return graph, thing


def cycle_through_attribute(fx):
    graph, thing = chain(fx, 1), Thing()
    node_named(graph, "add").thing = thing
    thing.graph = graph
    return graph, thing


def cycle_through_target(fx):
    graph, thing = chain(fx, 1), Thing()

    def target(x):
        return thing

    thing.graph = graph
    with graph.inserting_before(node_named(graph, "output")):
        graph.call_function(target, (node_named(graph, "x"),))
    return graph, thing


def cycle_through_the_module(fx):
    graph, thing = chain(fx, 1), Thing()
    module = fx.GraphModule({}, graph)
    module.thing = thing
    thing.module = module
    module(1)
    return graph, thing


def cycle_through_a_proxy(fx):
    graph, thing = chain(fx, 1), Thing()
    proxy = fx.Proxy(node_named(graph, "x"))
    proxy.thing = thing
    thing.proxy = proxy
    return graph, thing


def cycle_through_an_argument(fx):
    graph, thing = chain(fx, 1), Thing()
    thing.graph = graph
    with graph.inserting_before(node_named(graph, "output")):
        graph.call_function(max, (node_named(graph, "x"), thing))
    return graph, thing


def cycle_through_nested_arguments(fx):
    graph, thing = chain(fx, 1), Thing()
    thing.node = node_named(graph, "x")
    node_named(graph, "add").args = (1, [2, (thing, {"k": thing, "l": slice(thing, None)})])
    node_named(graph, "add").kwargs = {"a": [thing], "b": thing}
    return graph, thing


def cycle_through_a_copy(fx):
    graph, thing = chain(fx, 1), Thing()
    other = fx.Graph()
    node_named(graph, "add").args = (node_named(graph, "x"), [thing])
    other.graph_copy(graph, {})
    thing.graphs = graph, other
    return other, thing


@pytest.mark.parametrize(
    "make",
    [cycle_through_an_argument, cycle_through_nested_arguments, cycle_through_a_copy, cycle_through_meta, cycle_through_attribute, cycle_through_target, cycle_through_the_module, cycle_through_a_proxy],
)
def test_cycles_are_collected(fx, make):
    graph, thing = make(fx)
    refs = weakref.ref(graph), weakref.ref(thing)
    gc.collect()
    assert refs[0]() is graph and refs[1]() is thing
    del graph, thing
    gc.collect()
    assert refs[0]() is None and refs[1]() is None


def test_a_cycle_through_arguments_of_a_module_is_collected(ours):
    graph, thing = chain(ours, 1), Thing()  # torch.fx cannot print such an argument as source
    with graph.inserting_before(node_named(graph, "output")):
        graph.call_function(isinstance, (node_named(graph, "x"), (int, [thing][0].__class__), [thing]))
    thing.module = ours.GraphModule({}, graph)
    ref = weakref.ref(thing)
    del graph, thing
    gc.collect()
    assert ref() is None


def test_arguments_shared_with_a_living_graph_survive_the_other_one(ours):
    graph, thing = chain(ours, 1), Thing()
    node_named(graph, "add").args = (node_named(graph, "x"), [thing, {"k": (thing,)}])
    other, third = copy.deepcopy(graph), ours.Graph()
    third.graph_copy(graph, {})
    kept = node_named(graph, "add").args
    node_named(graph, "add").meta["cycle"] = graph
    weak = weakref.ref(thing)
    del graph, thing
    for _ in range(3):
        gc.collect()
    for args in (node_named(other, "add").args, node_named(third, "add").args, kept):
        assert args[1][0] is weak() and args[1][1]["k"] == (weak(),) and weak() is not None


def test_users_of_a_copy_are_in_program_order(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    for value in (Thing(), 1, Thing(), 2):
        graph.call_function(max, (x, value))
    for copied in (copy.deepcopy(graph), graph):
        users = list(next(iter(copied.nodes)).users)
        assert [n.name for n in users] == ["max_1", "max_2", "max_3", "max_4"]


def test_a_target_shared_with_a_living_graph_survives_the_other_one(ours):
    def target(x):
        return x

    graph = ours.Graph()
    graph.output(graph.call_function(target, (graph.placeholder("x"),)))
    other = copy.deepcopy(graph)
    third = ours.Graph()
    third.graph_copy(graph, {})
    node_named(graph, "target").meta["cycle"] = graph
    del graph
    for _ in range(3):
        gc.collect()
    assert [node_named(g, "target").target for g in (other, third)] == [target, target]
    assert node_named(other, "target").target(7) == 7


def test_nothing_leaks_over_many_traces(ours):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)

        def forward(self, x):
            return self.linear(x).relu() + torch.ones(2)

    def round_():
        for _ in range(20):
            ours.symbolic_trace(M())(torch.ones(1, 2))
        gc.collect()
        return len(gc.get_objects())

    round_()
    first = round_()
    assert round_() <= first + 50


def test_references_of_arguments_are_balanced(ours):
    sentinel = Thing()
    before = sys.getrefcount(sentinel)
    graph = ours.Graph()
    node = graph.call_function(max, ([sentinel], sentinel), {"k": {"a": sentinel}})
    assert node.args[1] is sentinel and node.kwargs["k"]["a"] is sentinel
    node.meta["s"] = sentinel
    node.args = ()
    del graph, node
    gc.collect()
    assert sys.getrefcount(sentinel) == before


def test_an_erased_node_stays_readable(fx):
    graph = chain(fx, 2)
    node = node_named(graph, "add_1")
    node_named(graph, "output").args = (node_named(graph, "add"),)
    node.meta["k"] = 1
    graph.erase_node(node)
    assert (node.op, node.name, node.target, node.meta["k"]) == ("call_function", "add_1", operator.add, 1)
    assert node.args == (None, 1) and not node.users and node not in node_named(graph, "add").users
    assert "add_1" in node.format_node()


def test_erasing_twice_warns_and_a_used_node_raises(fx):
    graph = chain(fx, 2)
    with pytest.raises(RuntimeError, match="Tried to erase Node add but it still had 1 users"):
        graph.erase_node(node_named(graph, "add"))
    output = node_named(graph, "output")
    graph.erase_node(output)
    with pytest.warns(UserWarning, match="already erased"):
        graph.erase_node(output)
    with pytest.raises(RuntimeError, match="wrong graph"):
        graph.erase_node(next(iter(reversed(chain(fx, 1).nodes))))


def test_nodes_of_another_graph_as_arguments_are_found_by_lint(fx):
    graph, other = fx.Graph(), chain(fx, 1)
    graph.output(graph.call_function(operator.neg, (node_named(other, "x"),)))
    del other
    gc.collect()
    with pytest.raises(RuntimeError, match="does not belong to this Graph"):
        graph.lint()
    assert node_named(graph, "neg").args[0].name == "x"


def test_users_read_like_a_dict(fx):
    graph = chain(fx, 1)
    x, add, out = graph.nodes
    assert len(x.users) == 1 and add in x.users and x not in x.users
    assert dict(x.users) == {add: None} and x.users == {add: None} and list(x.users.keys()) == [add]
    assert list(x.users.items()) == [(add, None)] and repr(x.users) == "{add: None}" and bool(x.users)
    users = x.users
    add.args = (1, 1)
    assert len(users) == 0


def test_iteration_survives_edits(fx):
    graph = chain(fx, 5)
    seen = []
    for node in graph.nodes:
        seen.append(node.name)
        if node.name in ("add", "add_2"):
            following = node.next
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
            with graph.inserting_after(following):
                graph.call_function(operator.neg, (following,))
    assert seen == ["x", "add", "add_1", "neg", "add_2", "add_3", "neg_1", "add_4", "output"]
    assert [n.name for n in reversed(graph.nodes)][0] == "output"
    assert len(graph.nodes) == len(list(graph.nodes)) == 7


def test_nodes_compare_in_program_order(fx):
    graph = chain(fx, 3)
    nodes = list(graph.nodes)
    assert sorted(reversed(nodes)) == nodes and nodes[0] < nodes[1] and not nodes[1] < nodes[1] and nodes[2] > nodes[0]
    nodes[0].prepend(nodes[2])
    assert sorted(nodes) == list(graph.nodes)


def test_the_graph_itself_may_be_changed_by_a_weak_reference_callback(ours):
    graph = chain(ours, 1)
    log = []
    ref = weakref.ref(node_named(graph, "add"), lambda _: log.append("dead"))
    del graph
    gc.collect()
    assert log == ["dead"] and ref() is None
