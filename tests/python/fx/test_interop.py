"""GraphModules from and to torch.fx, and exported programs."""

import collections
import copy

import fxjit
import pytest
import torch
import torchvision


def rows(graph):
    """Everything that a node is, with nodes as names, so that both fx's can be compared."""
    module = fxjit.fx if isinstance(graph, fxjit.fx.Graph) else torch.fx

    def plain(a):
        return module.map_arg(a, lambda n: ("node", n.name))

    return [(n.op, n.name, n.target, plain(n.args), plain(n.kwargs), n.type, dict(n.meta)) for n in graph.nodes]


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)
        self.tied = torch.nn.Linear(4, 4)
        self.tied.weight = self.lin.weight
        self.register_buffer("scale", torch.ones(4))
        self.plain = torch.ones(4)

    def forward(self, x: torch.Tensor, *, k: int = 2):
        y = self.tied(self.lin(x)) * self.scale + self.plain
        return {"y": torch.cat([y, x], dim=-1)[..., 1:None:2], "z": (y.sum(), k)}


def both_ways(gm):
    ours = fxjit.fx.GraphModule.from_torch(gm)
    ours.graph.lint()
    back = ours.to_torch()
    back.graph.lint()
    assert isinstance(ours, fxjit.fx.GraphModule) and isinstance(back, torch.fx.GraphModule)
    assert rows(gm.graph) == rows(ours.graph) == rows(back.graph)
    return ours, back


def test_round_trip_is_equal_node_by_node():
    gm = torch.fx.symbolic_trace(Block())
    for i, n in enumerate(gm.graph.nodes):
        n.meta["place"] = i
    gm.meta["mine"] = 1
    ours, back = both_ways(gm)
    x = torch.randn(3, 4)
    for a, b in zip(torch.utils._pytree.tree_leaves(gm(x, k=3)), torch.utils._pytree.tree_leaves(ours(x, k=3))):
        assert torch.equal(torch.as_tensor(a), torch.as_tensor(b))
    assert torch.equal(back(x)["y"], gm(x)["y"])
    assert ours.meta == {"mine": 1} == back.meta and type(back).__name__ == type(gm).__name__


def test_attributes_are_shared_and_stay_tied():
    gm = torch.fx.symbolic_trace(Block()).eval()
    ours, back = both_ways(gm)
    assert ours.lin.weight is gm.lin.weight is ours.tied.weight is back.tied.weight
    assert ours.scale is gm.scale and [n for n, _ in ours.named_parameters()] == [n for n, _ in gm.named_parameters()]
    assert ours.training is False and back.training is False


def test_names_that_were_set_by_hand_and_nodes_in_meta():
    gm = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    relu = list(gm.graph.nodes)[1]
    relu.name = "input"
    list(gm.graph.nodes)[2].meta["source"] = relu
    ours = fxjit.fx.GraphModule.from_torch(gm)
    names = {n.name: n for n in ours.graph.nodes}
    assert "input" in names and names["add"].meta["source"] is names["input"]


def test_nested_graph_modules_once_each():
    inner = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()))

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = inner
            self.holder = torch.nn.Module()
            self.holder.b = inner

        def forward(self, x):
            return self.a(x) + self.holder.b(x)

    class Leaves(torch.fx.Tracer):
        def is_leaf_module(self, m, qualname):
            return isinstance(m, torch.fx.GraphModule)

    outer = Outer()
    gm = torch.fx.GraphModule(outer, Leaves().trace(outer))
    call, other = (n for n in gm.graph.nodes if n.op == "call_module")
    gm.holder = torch.nn.Module()
    gm.holder.b = inner
    other.target = "holder.b"
    gm.recompile()
    ours, back = both_ways(gm)
    assert isinstance(ours.a, fxjit.fx.GraphModule) and ours.a is ours.holder.b
    assert isinstance(back.a, torch.fx.GraphModule) and back.a is back.holder.b
    assert isinstance(outer.a, torch.fx.GraphModule) and call.target == "a"
    x = torch.randn(2, 4)
    assert torch.equal(ours(x), gm(x)) and torch.equal(back(x), gm(x))


def test_resnet_round_trip():
    gm = torch.fx.symbolic_trace(torchvision.models.resnet18(weights=None).eval())
    ours, back = both_ways(gm)
    x = torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        assert torch.equal(ours(x), gm(x)) and torch.equal(back(x), gm(x))


def test_pytree_calling_convention():
    fx, ph = torch.fx, torch.fx.PH
    gm = fx.symbolic_trace(lambda d: {"s": d["a"] + d["b"]}, concrete_args={"d": {"a": ph, "b": ph}})
    ours, back = both_ways(gm)
    d = {"a": torch.ones(2), "b": torch.ones(2)}
    assert torch.equal(ours(d)["s"], gm(d)["s"]) and torch.equal(back(d)["s"], gm(d)["s"])


def test_a_module_of_another_kind_is_refused():
    with pytest.raises(TypeError, match="symbolic_trace traces other modules"):
        fxjit.fx.GraphModule.from_torch(torch.nn.Linear(2, 2))


# ---- torch.export ----

Pair = collections.namedtuple("Pair", "a b")


class Exported(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("hidden", torch.ones(4), persistent=False)
        self.constant = torch.full((4,), 2.0)

    def forward(self, x, d, *, scale, flag=2):
        self.count.add_(1)
        d["u"].mul_(2)
        y = self.lin(x) + self.hidden + self.constant * scale
        return {"y": y + d["u"] * flag, "z": (x, None, 3, Pair(y, self.count + 1))}


def exported(decomposed):
    m = Exported().eval()
    args, kwargs = (torch.randn(2, 4), {"u": torch.ones(2, 4)}), {"scale": torch.full((1,), 3.0)}
    program = torch.export.export(m, args, kwargs)
    return (program.run_decompositions() if decomposed else program), m


def leaves(value):
    return torch.utils._pytree.tree_flatten(value)


@pytest.mark.parametrize("decomposed", [False, True])
def test_exported_program(decomposed):
    program, m = exported(decomposed)
    gm = fxjit.fx.from_exported(program)
    assert {n.target for n in gm.graph.nodes if n.op == "get_attr"} >= {"lin.weight", "lin.bias", "count", "hidden", "constant"}
    assert [n.target for n in gm.graph.nodes if n.op == "placeholder"] == ["x", "d_u", "scale"]
    assert gm.lin.weight is program.state_dict["lin.weight"] and gm.state_dict().keys() == program.state_dict.keys()
    reference = copy.deepcopy(m)
    for _ in range(3):
        x, scale = torch.randn(2, 4), torch.randn(1)
        d, expected_d = {"u": torch.ones(2, 4)}, {"u": torch.ones(2, 4)}
        got, want = leaves(gm(x, d, scale=scale)), leaves(reference(x, expected_d, scale=scale))
        assert got[1] == want[1]
        for a, b in zip(got[0], want[0]):
            assert torch.equal(a, b) if isinstance(b, torch.Tensor) else a == b
        assert torch.equal(d["u"], expected_d["u"]) and torch.equal(gm.count, reference.count)


def test_exported_program_guards_its_inputs():
    class Baked(torch.nn.Module):
        def forward(self, x, n: int):
            return x.sum() / x.shape[0] * n

    program = torch.export.export(Baked(), (torch.ones(4, 2), 3))
    gm = fxjit.fx.GraphModule.from_torch(program)
    assert gm(torch.ones(4, 2), 3) == program.module()(torch.ones(4, 2), 3)
    for bad in [(torch.ones(2, 2), 3), (torch.ones(4, 2), 4), (torch.ones(4, 2, dtype=torch.float64), 3), (torch.ones(8), 3)]:
        with pytest.raises(AssertionError, match="Guard failed"):
            gm(*bad)


def test_exported_program_with_dynamic_sizes():
    batch = torch.export.Dim("batch", min=2, max=64)

    class Dynamic(torch.nn.Module):
        def forward(self, x, y):
            return (x * y).view(x.shape[0], -1).softmax(-1)

    args = (torch.randn(4, 2, 3), torch.randn(4, 2, 3))
    program = torch.export.export(Dynamic(), args, dynamic_shapes={"x": {0: batch}, "y": {0: batch}})
    gm = fxjit.fx.from_exported(program)
    for n in (4, 7):
        x, y = torch.randn(n, 2, 3), torch.randn(n, 2, 3)
        assert torch.equal(gm(x, y), Dynamic()(x, y))
    with pytest.raises(AssertionError, match=r"y.size\(\)\[0\] == 5, got 6"):
        gm(torch.randn(5, 2, 3), torch.randn(6, 2, 3))


def test_exported_control_flow_keeps_its_branches():
    class Branch(torch.nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda v: v.sin(), lambda v: v.cos(), (x,))

    program = torch.export.export(Branch(), (torch.ones(3),))
    gm = fxjit.fx.from_exported(program)
    for x in (torch.ones(3), -torch.ones(3)):
        assert torch.equal(gm(x), Branch()(x))


def test_compile_takes_an_exported_program():
    class Mlp(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = torch.nn.Linear(8, 8)

        def forward(self, x):
            return (self.lin(x).sigmoid() * 2,)

    m = Mlp().eval()
    program = torch.export.export(m, (torch.randn(4, 8),))
    f = fxjit.compile(program)
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(4, 8)
            assert torch.allclose(f(x)[0], m(x)[0], rtol=1e-5, atol=1e-6)
        assert f.explain().kernels and not f.explain().fallbacks
        with pytest.raises(AssertionError, match="Guard failed"):
            f(torch.randn(5, 8))
