"""split_module against torch.fx's: same submodules, names, results."""

import importlib

import pytest
import torch

FX = ("torch.fx", "fxjit.fx")


def splitter(fx):
    return importlib.import_module(fx.__name__ + ".passes.split_module").split_module


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.param = torch.nn.Parameter(torch.rand(3, 4))
        self.register_buffer("buffer", torch.rand(4))
        self.linear = torch.nn.Linear(4, 5)
        self.deep = torch.nn.Module()
        self.deep.inner = torch.nn.Linear(5, 5)
        self.deep.scale = torch.nn.Parameter(torch.rand(5))

    def forward(self, x, y, gain=2.0):
        z = self.linear(x + self.param).clamp(min=0.0, max=1.0)
        w = self.linear(y).clamp(min=0.0, max=1.0)
        a, b = torch.chunk(z + w, 2, dim=1)
        v = self.deep.inner(z * self.deep.scale) * gain
        return {"sum": z + w, "parts": (a, b), "v": v, "param": self.param}


def by_turns(count):
    number = -1

    def callback(node):
        nonlocal number
        number = (number + 1) % count
        return number

    return callback


def in_order(size):
    """Groups of `size` nodes. Without state: torch.fx asks several times where states are switched."""

    def callback(node):
        before = 0
        while (node := node.prev).op != "root":
            before += node.op not in ("placeholder", "get_attr")
        return before // size

    return callback


def backwards(node):
    return 1 if node.name in ("linear", "clamp", "add") else 0


CALLBACKS = {
    "one": lambda: lambda node: 0,
    "pairs": lambda: in_order(2),
    "single nodes": lambda: in_order(1),
    "half": lambda: in_order(5),
    "backwards": lambda: backwards,
}


def split(fx, module, callback, **options):
    gm = fx.symbolic_trace(module)
    for node in gm.graph.nodes:
        node.meta["from"] = node.name
    names = {}
    options.setdefault("qualname_map", names)
    return splitter(fx)(gm, module, callback, **options), options["qualname_map"]


def text(gm):
    lines = {"": [n.format_node() for n in gm.graph.nodes]}
    lines |= {name: [n.format_node() for n in sub.graph.nodes] for name, sub in gm.named_children() if hasattr(sub, "graph")}
    metas = {
        name: [n.meta.get("from") for n in sub.graph.nodes] for name, sub in gm.named_children() if hasattr(sub, "graph")
    }
    return lines, metas, sorted(n for n, _ in gm.named_modules()), sorted(n for n, _ in gm.named_parameters())


OPTIONS = [
    {},
    {"keep_original_node_name": True},
    {"keep_original_input_name": False},
    {"partition_affix": "pp"},
    {"keep_original_order": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: next(iter(o), "default"))
@pytest.mark.parametrize("callback", CALLBACKS)
def test_splits(callback, options):
    torch.manual_seed(0)
    net, x, y = Net(), torch.rand(3, 4), torch.rand(3, 4)
    (theirs, their_names), (mine, my_names) = (
        split(importlib.import_module(name), net, CALLBACKS[callback](), **options) for name in FX
    )
    assert text(mine) == text(theirs)
    assert my_names == their_names and my_names
    assert [n for n, _ in mine.named_children()] == [n for n, _ in theirs.named_children()]
    torch.testing.assert_close(mine(x, y), theirs(x, y), rtol=0, atol=0)
    torch.testing.assert_close(mine(x, y, 3.0), net(x, y, 3.0), rtol=0, atol=0)


def test_cycles_are_errors(fx):
    with pytest.raises(RuntimeError, match="cycle exists between partitions"):
        split(fx, Net(), by_turns(2))


def test_the_original_order_may_be_impossible(fx):
    """The first partition reads what the second computes."""

    def program(x):
        return torch.neg(x) + torch.relu(x)

    callback = lambda node: 1 if node.name == "relu" else 0
    assert split(fx, program, callback)[0](torch.ones(2)).tolist() == [0, 0]
    with pytest.raises(KeyError, match="relu"):
        split(fx, program, callback, keep_original_order=True)


def test_attributes_are_shared(fx):
    net = Net()
    gm, _ = split(fx, net, in_order(2))
    assert gm.param is net.param and gm.submod_0.linear is net.linear


def test_nodes_remember_their_partition(fx):
    gm = fx.symbolic_trace(Net())
    splitter(fx)(gm, None, in_order(5))
    assert next(n for n in gm.graph.nodes if n.name == "clamp")._fx_partition == "0"
    assert not hasattr(next(iter(gm.graph.nodes)), "_fx_partition")


def test_without_calls(fx):
    for keep in (False, True):
        gm, _ = split(fx, lambda x, y: (y, x), lambda node: 0, keep_original_order=keep)
        assert gm(1, 2) == (2, 1) and list(gm.named_children()) == []


def test_unused_results(fx):
    def program(x):
        torch.neg(x)
        return torch.relu(x)

    gm, _ = split(fx, program, in_order(1))
    assert [n.name for n in gm.graph.nodes] == ["x", "submod_1", "submod_0", "output"]
    assert gm.submod_0.graph.output_node().args == ((),)


def test_module_as_argument():
    """A get_attr of a module is read inside of the partition."""

    def traced(fx):
        graph = fx.Graph()
        x = graph.placeholder("x")
        sub = graph.get_attr("sub")
        y = graph.call_function(torch.neg, (x,))
        graph.output(graph.call_function(call, (sub, y)))
        root = torch.nn.Module()
        root.sub = torch.nn.ReLU()
        return fx.GraphModule(root, graph)

    def call(module, x):
        return module(x)

    found = []
    for name in FX:
        fx = importlib.import_module(name)
        gm = splitter(fx)(traced(fx), None, in_order(1))
        found.append((text(gm), gm(torch.ones(2)).tolist()))
    assert found[1] == found[0]




def with_grad_switches(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.neg, (x,))
    graph.call_function(torch._C._set_grad_enabled, (False,))
    y = graph.call_function(torch.relu, (y,))
    y = graph.call_function(torch.exp, (y,))
    graph.call_function(torch._C._set_grad_enabled, (True,))
    graph.output(graph.call_function(torch.add, (y, x)))
    return fx.GraphModule(torch.nn.Module(), graph)


def with_autocast(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    enter = graph.call_function(torch.amp._enter_autocast, ("cpu", torch.bfloat16, True, False))
    y = graph.call_function(torch.matmul, (x, x))
    y = graph.call_function(torch.relu, (y,))
    y = graph.call_function(torch.matmul, (y, x))
    graph.call_function(torch.amp._exit_autocast, (enter,))
    graph.output(graph.call_function(torch.matmul, (y, y)))
    return fx.GraphModule(torch.nn.Module(), graph)


@pytest.mark.parametrize("program", [with_grad_switches, with_autocast])
@pytest.mark.parametrize("size", [1, 2, 3, 10])
def test_switches_of_state(program, size):
    x = torch.rand(2, 2, requires_grad=True)
    found = []
    for name in FX:
        fx = importlib.import_module(name)
        gm = splitter(fx)(program(fx), None, in_order(size))
        y = gm(x)
        assert torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")
        found.append((text(gm), y.dtype, y.requires_grad, y.tolist()))
    assert found[1] == found[0]


def test_switches_need_partitions_in_order(fx):
    with pytest.raises(AssertionError, match="monotonically increasing"):
        splitter(fx)(with_grad_switches(fx), None, lambda node: 0 if node.name == "add" else 1)


def test_symbols_of_shapes_are_inputs():
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    def traced(fx):
        mode = FakeTensorMode(shape_env=ShapeEnv())
        fake = mode.from_tensor(torch.rand(5, 5))
        graph = fx.Graph()
        size, x = graph.placeholder("s0"), graph.placeholder("x")
        y = graph.call_function(torch.neg, (x,))
        z = graph.call_function(torch.relu, (y,))
        graph.output(z)
        size.meta["example_value"] = fake.shape[0]
        x.meta["example_value"] = y.meta["example_value"] = z.meta["example_value"] = fake
        return fx.GraphModule(torch.nn.Module(), graph)

    found = []
    for name in FX:
        fx = importlib.import_module(name)
        gm = traced(fx)
        if not isinstance(gm.graph.find_nodes(op="placeholder")[0].meta["example_value"], torch.SymInt):
            pytest.fail("the fake tensor has no symbolic size")
        found.append(text(splitter(fx)(gm, None, in_order(1))))
    assert found[0] == found[1]
