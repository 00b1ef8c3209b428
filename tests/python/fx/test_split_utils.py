"""split_by_tags and its companions against torch.fx's."""

import importlib
import types

import pytest
import torch

FX = ("torch.fx", "fxjit.fx")


def split_utils(fx):
    return importlib.import_module(fx.__name__ + ".passes.split_utils")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear1, self.linear2 = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
        self.linear3 = torch.nn.Sequential(torch.nn.Linear(6, 2))
        self.scale = torch.nn.Parameter(torch.rand(2))

    def forward(self, a, b):
        r1, r2 = self.linear1(a), self.linear2(b)
        r3 = torch.cat([r1, r2], 1)
        return self.linear3(r3) * self.scale, r1, self.scale


def tagged(fx, tags):
    gm = fx.symbolic_trace(Net())
    for node in gm.graph.nodes:
        node.meta["from"] = node.name
        if node.name in tags:
            node.tag = tags[node.name]
    return gm


TAGS = {
    "two": (["a", "b"], {"linear1": "a", "linear2": "b", "cat": "b", "linear3_0": "b", "mul": "b"}),
    "three": (["a", "b", "c"], {"linear1": "a", "linear2": "a", "cat": "b", "linear3_0": "b", "mul": "c"}),
}


@pytest.mark.parametrize("return_tuple", [False, True])
@pytest.mark.parametrize("case", TAGS)
def test_split_by_tags(case, return_tuple):
    order, tags = TAGS[case]
    a, b = torch.rand(4, 3), torch.rand(4, 3)
    found = []
    for name in FX:
        fx = importlib.import_module(name)
        torch.manual_seed(0)
        gm = tagged(fx, tags)
        split, names = split_utils(fx).split_by_tags(gm, order, return_fqn_mapping=True, return_tuple=return_tuple)
        parts = {n: [(x.format_node(), x.meta.get("from"), getattr(x, "tag", None)) for x in m.graph.nodes]
                 for n, m in split.named_modules() if hasattr(m, "graph")}
        found.append((parts, names, split(a, b)))
        assert all(torch.equal(x, y) for x, y in zip(split(a, b), gm(a, b)))
    assert found[1][:2] == found[0][:2]
    assert all(torch.equal(x, y) for x, y in zip(found[0][2], found[1][2]))


def test_bad_tags(fx):
    split = split_utils(fx).split_by_tags
    order, tags = TAGS["two"]
    with pytest.raises(AssertionError, match="Node does not have tag: %cat"):
        split(tagged(fx, {k: v for k, v in tags.items() if k != "cat"}), order)
    with pytest.raises(AssertionError, match="order must be >= max of its upstream components"):
        split(tagged(fx, tags), order[::-1])


def test_recursive_attributes(fx):
    module = split_utils(fx)
    net = torch.nn.Module()
    net.items = torch.nn.ModuleList([torch.nn.Linear(2, 2)])
    assert module.getattr_recursive(net, "items.0.weight") is net.items[0].weight
    assert module.getattr_recursive(net, "items.1") is None and module.getattr_recursive(net, "other.x") is None
    module.setattr_recursive(net, "items.mark", 3)
    assert net.items.mark == 3


def sizes(x, y):
    n = x.size(0)
    m = n + 1
    z = torch.relu(x)
    return y.reshape(m - 1, -1) + torch.sum(z), torch.neg(z)


def propagated(fx):
    gm = fx.symbolic_trace(sizes)
    importlib.import_module(fx.__name__ + ".passes.shape_prop").ShapeProp(gm).propagate(torch.rand(2, 2), torch.rand(4))
    return gm, {n.name: n for n in gm.graph.nodes}


def test_move_non_tensor_nodes():
    splits = [
        (["size", "add", "relu"], ["sub", "reshape", "sum_1", "add_1", "neg"]),
        (["relu", "size"], ["add", "sub"], ["reshape", "sum_1", "add_1", "neg"]),
        (["size"], ["add"], ["sub"]),
        (["size", "relu", "add", "sub"], ["reshape"]),
    ]
    for split in splits:
        found = []
        for name in FX:
            fx = importlib.import_module(name)
            _, nodes = propagated(fx)
            parts = [types.SimpleNamespace(nodes=[nodes[n] for n in part], is_acc=i % 2 == 0) for i, part in enumerate(split)]
            split_utils(fx).move_non_tensor_nodes_on_boundary(parts)
            found.append([sorted(n.name for n in part.nodes) for part in parts])
        assert found[0] == found[1]
        assert sorted(sum(found[1], [])) == sorted(sum(split, []))


@pytest.mark.parametrize(
    "names",
    [
        ["size", "add", "sub", "reshape"],
        ["size", "add", "sub", "reshape", "sum_1", "add_1"],
        ["size", "add", "sub"],
        ["relu", "neg"],
    ],
)
def test_fusion_groups(names):
    found = []
    for name in FX:
        fx = importlib.import_module(name)
        gm, nodes = propagated(fx)
        acc = {nodes[n] for n in names}
        finder = importlib.import_module(name + ".passes.tools_common").FxNetAccFusionsFinder(gm, acc)
        groups = finder()
        found.append(
            ({n.name: sorted(m.name for m in g) for n, g in groups.items()}, sorted(n.name for n in finder.acc_nodes))
        )
    assert found[0] == found[1]
