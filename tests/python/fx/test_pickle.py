"""Pickles of GraphModules, Graphs and Nodes: where torch.fx can, fxjit.fx can, and the graph is the same afterwards."""

import copy
import io
import pickle
import typing

import pytest
import torch
from helpers import calling


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 4)
        self.scale = torch.nn.Parameter(torch.tensor(2.0))
        self.register_buffer("offset", torch.ones(4), persistent=False)

    def forward(self, x: torch.Tensor, *rest, k: typing.Optional[float] = 1.5):
        return torch.nn.functional.gelu(self.linear(x) * self.scale + self.offset, approximate="tanh")[..., 1:] * k


def run_both(a, b, *args):
    torch.testing.assert_close(a(*args), b(*args), rtol=0, atol=0)


def through_torch_save(gm):
    buffer = io.BytesIO()
    torch.save(gm, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=False)


@pytest.mark.parametrize("through", [lambda gm: pickle.loads(pickle.dumps(gm)), through_torch_save], ids=["pickle", "torch"])
def test_graph_module(fx, through):
    gm = fx.symbolic_trace(Net().eval())
    new = through(gm)
    assert isinstance(new, fx.GraphModule)  # torch.fx loses the name of the class
    assert [n.op for n in new.graph.nodes] == [n.op for n in gm.graph.nodes]
    assert not new.training and list(new.state_dict()) == list(gm.state_dict())
    run_both(new, gm, torch.randn(2, 3))
    new.graph.lint()


def test_the_graph_itself_is_pickled(ours):
    gm = ours.symbolic_trace(Net())
    node = next(n for n in gm.graph.nodes if n.op == "call_module")
    node.name = "renamed"  # a trace of generated code would not know
    node.meta["stack_trace"] = "here"
    new = pickle.loads(pickle.dumps(gm))
    assert str(new.graph) == str(gm.graph) and type(new).__name__ == "Net"
    assert next(n for n in new.graph.nodes if n.op == "call_module").meta == {"stack_trace": "here"}
    assert [n.type for n in new.graph.nodes] == [n.type for n in gm.graph.nodes]


def test_unused_attributes_survive(fx):
    gm = fx.symbolic_trace(Net())
    gm.add_submodule("unused", torch.nn.Linear(1, 1))
    gm.dummy = torch.ones(2)
    gm.number = 3
    new = pickle.loads(pickle.dumps(gm))
    assert torch.equal(new.unused.weight, gm.unused.weight) and torch.equal(new.dummy, gm.dummy) and new.number == 3


def test_operators_that_pickle_cannot_name(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.ops.aten.add.Tensor, (x, x), {"alpha": 2})
    z = graph.call_function(torch.ops.aten.relu, (y,))
    graph.output(graph.call_function(torch.nn.functional.max_pool2d, (z, 2)))
    gm = fx.GraphModule(torch.nn.Module(), graph)
    run_both(pickle.loads(pickle.dumps(gm)), gm, torch.randn(1, 4, 4))


def test_custom_operators(fx):
    if not hasattr(torch.ops.fxjit_pickle_test, "double"):
        torch.library.define("fxjit_pickle_test::double", "(Tensor x) -> Tensor")
        torch.library.impl("fxjit_pickle_test::double", "cpu", lambda x: x * 2)
    gm = fx.symbolic_trace(lambda x: torch.ops.fxjit_pickle_test.double(x) + torch.ops.fxjit_pickle_test.double.default(x))
    run_both(pickle.loads(pickle.dumps(gm)), gm, torch.randn(3))


def test_none_annotations(fx):
    graph = fx.Graph()
    x = graph.placeholder("x", type(None))
    graph.output(x, type(None))
    new = pickle.loads(pickle.dumps(fx.GraphModule(torch.nn.Module(), graph)))
    assert new(None) is None and "NoneType" in str(next(iter(new.graph.nodes)).type)


def test_tuples_without_subscript(fx):
    def forward(x: typing.Tuple):  # noqa: UP006 - the spelling matters
        return x[0]

    gm = fx.symbolic_trace(forward)
    assert pickle.loads(pickle.dumps(gm))((torch.ones(1),)) == torch.ones(1)


def test_graphs_and_nodes(ours):
    gm = ours.symbolic_trace(Net())
    graph = pickle.loads(pickle.dumps(gm.graph))
    assert str(graph) == str(gm.graph) and graph.owning_module is None
    graph.lint()
    nodes = list(gm.graph.nodes)
    node, graph = pickle.loads(pickle.dumps((nodes[3], gm.graph)))
    assert (node.name, node.op, node.target, node.type) == (nodes[3].name, nodes[3].op, nodes[3].target, nodes[3].type)
    assert node.graph is graph and list(graph.nodes)[3] is node


def test_an_erased_node_cannot_be_pickled(ours):
    graph = ours.Graph()
    node = graph.placeholder("x")
    graph.erase_node(node)
    with pytest.raises(TypeError, match="cannot pickle node x: it was erased"):
        pickle.dumps(node)


def test_nested_graph_modules(fx):
    gm = calling(fx, fx.symbolic_trace(Net()))
    new = pickle.loads(pickle.dumps(gm))
    assert isinstance(new.inner, fx.GraphModule) and new.inner is not gm.inner
    run_both(new, gm, torch.randn(2, 3))


def test_copies_of_pickled_modules(fx):
    new = copy.deepcopy(pickle.loads(pickle.dumps(fx.symbolic_trace(Net()))))
    assert new(torch.randn(2, 3)).shape == (2, 3)


def test_pytree_calling_convention(ours):
    def tree(x):
        return {"sum": x["a"] + x["b"]}

    gm = ours.symbolic_trace(tree, concrete_args={"x": {"a": ours.PH, "b": ours.PH}})
    x = {"a": torch.ones(1), "b": torch.ones(1)}
    assert pickle.loads(pickle.dumps(gm))(x) == gm(x) == {"sum": torch.tensor([2.0])}
