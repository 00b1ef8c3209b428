"""CapabilityBasedPartitioner, fuser_utils, operator_support and tools_common against torch.fx's."""

import importlib
import operator
import random

import pytest
import torch

FX = ("torch.fx", "fxjit.fx")


def passes(fx, name):
    return importlib.import_module(f"{fx.__name__}.passes.{name}")


def partitioner(fx, gm, supported, **options):
    support = passes(fx, "operator_support").create_op_support(lambda mods, node: supported(node))
    return passes(fx, "infra.partitioner").CapabilityBasedPartitioner(gm, support, **options)


def text(gm):
    lines = {name: [n.format_node() for n in m.graph.nodes] for name, m in gm.named_modules() if hasattr(m, "graph")}
    return lines, [name for name, _ in gm.named_modules()]


def unary(*names):
    functions = {getattr(torch, name) for name in names}
    return lambda node: node.op == "call_function" and node.target in functions


def chain(x):
    for _ in range(3):
        x = torch.relu(torch.neg(x))
        x = torch.exp(x)
        x = torch.neg(torch.relu(x))
    return x


def forks(x, y):
    a, b = torch.neg(x), torch.neg(y)
    c = torch.exp(a)
    d = torch.relu(c) + torch.relu(b)
    e = torch.relu(a)
    return torch.neg(d), e, torch.exp(e)


def tuples(x):
    a, b = torch.chunk(torch.neg(x), 2)
    c = torch.relu(a)
    return torch.exp(b) + c, torch.relu(b)


class WithModules(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(4, 4)
        self.b = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
        self.w = torch.nn.Parameter(torch.rand(4))

    def forward(self, x):
        y = self.b(self.a(x)) * self.w
        return torch.relu(torch.neg(y) + self.w)


CASES = {
    "chain": (chain, unary("relu", "neg"), 1),
    "everything": (chain, unary("relu", "neg", "exp"), 1),
    "nothing": (chain, unary(), 1),
    "forks": (forks, unary("relu", "neg"), 2),
    "tuples": (tuples, unary("relu", "neg", "chunk"), 1),
    "modules": (WithModules, lambda n: n.op in ("call_module", "call_function") and n.name != "neg", 1),
    "get_attr": (WithModules, lambda n: n.op in ("call_module", "call_function", "get_attr"), 1),
}


@pytest.mark.parametrize("options", [{}, {"allows_single_node_partition": True}], ids=["default", "single"])
@pytest.mark.parametrize("case", CASES)
def test_partition_and_fuse(case, options):
    program, supported, inputs = CASES[case]
    torch.manual_seed(0)
    program = program() if isinstance(program, type) else program
    args = [torch.rand(4, 4) for _ in range(inputs)]
    found = []
    for name in FX:
        fx = importlib.import_module(name)
        gm = fx.symbolic_trace(program)
        for node in gm.graph.nodes:
            node.meta["mark"] = node.name
        p = partitioner(fx, gm, supported, **options)
        proposed = p.propose_partitions()
        rows = [(q.id, [(n.name, order) for n, order in q.nodes.items()]) for q in proposed]
        fused = p.fuse_partitions(proposed)
        assert fused is gm
        gm.graph.lint()
        metas = [n.meta.get("mark") for n in gm.graph.nodes]
        found.append((rows, text(gm), metas, gm(*args)))
    torch.testing.assert_close(found[1][3], found[0][3], rtol=0, atol=0)
    # torch.fx does not know the order of getitem nodes that it brings to their producers.
    assert [(i, [n for n, _ in nodes]) for i, nodes in found[1][0]] == [(i, [n for n, _ in q]) for i, q in found[0][0]]
    if case != "tuples":
        assert found[1][0] == found[0][0]
    assert found[1][1:3] == found[0][1:3]


def random_graph(fx, seed, size=30):
    rng = random.Random(seed)
    graph = fx.Graph()
    values = [graph.placeholder("x"), graph.placeholder("y")]
    for _ in range(size):
        near = values[-8:]
        function = rng.choice([torch.add, torch.mul, torch.neg, torch.relu])
        count = 2 if function in (torch.add, torch.mul) else 1
        values.append(graph.call_function(function, tuple(rng.choice(near) for _ in range(count))))
    unused = [v for v in values if not v.users]
    graph.output(tuple(unused))
    return fx.GraphModule(torch.nn.Module(), graph)


def test_random_graphs_group_as_in_torch():
    """Groups are torch.fx's wherever those are valid; ours always are."""
    same = 0
    for seed in range(150):
        supported = unary("add", "neg") if seed % 2 else unary("relu", "mul", "neg")
        found = []
        for name in FX:
            fx = importlib.import_module(name)
            gm = random_graph(fx, seed)
            p = partitioner(fx, gm, supported, allows_single_node_partition=True)
            groups = p.propose_partitions()
            found.append([(g.id, [n.name for n in g.nodes]) for g in groups])
            x, y = torch.rand(3), torch.rand(3)
            before = gm(x, y)
            try:
                p.fuse_partitions(groups)
            except AssertionError:
                assert name == "torch.fx", f"seed {seed}: a cycle through {found[-1]}"
                break
            torch.testing.assert_close(gm(x, y), before, rtol=0, atol=0)
        if len(found) == 2:
            same += 1
            assert found[0] == found[1], f"seed {seed}"
    assert same > 100


def test_single_nodes_of_allowed_operators(fx):
    gm = fx.symbolic_trace(chain)
    name = "torch.exp"
    p = partitioner(fx, gm, unary("exp"), allowed_single_node_partition_ops=[name])
    assert [[n.name for n in q.nodes] for q in p.propose_partitions()] == [["exp_2"], ["exp_1"], ["exp"]]
    p = partitioner(fx, gm, unary("exp"))
    assert p.propose_partitions() == []


def test_non_compute_operators(fx):
    def program(x):
        for _ in range(2):
            x = torch.exp(torch.neg(torch.relu(torch.neg(torch.relu(torch.neg(x))))))
        return x

    gm = fx.symbolic_trace(program)
    p = partitioner(fx, gm, unary("relu", "neg"), non_compute_ops=["torch.neg"])
    groups = p.propose_partitions()
    assert [q.size() for q in groups] == [5, 5]
    p.remove_bookend_non_compute_ops(groups)
    assert [[n.name for n in q.nodes] for q in groups] == [["relu_2", "neg_4", "relu_3"], ["relu", "neg_1", "relu_1"]]


def test_partition_object(fx):
    Partition = passes(fx, "infra.partitioner").Partition
    p = Partition(3, ["a", "b"], [1, 0])
    p.add_node("c")
    p.remove_node("a")
    assert p.nodes == {"b": 0, "c": None} and p.size() == 2 and repr(p) == "{'b': 0, 'c': None}"
    with pytest.raises(AssertionError, match="same length"):
        Partition(0, ["a"], [])


def nodes_of(gm, *names):
    return [next(n for n in gm.graph.nodes if n.name == name) for name in names]


def test_fuse_as_graphmodule(fx):
    fuser = passes(fx, "utils.fuser_utils")
    gm = fx.symbolic_trace(forks)
    nodes = fuser.topo_sort(nodes_of(gm, "add", "relu_1", "neg_1", "relu"))
    assert [n.name for n in nodes] == ["neg_1", "relu", "relu_1", "add"] or nodes[-1].name == "add"
    sub, inputs, outputs = fuser.fuse_as_graphmodule(gm, nodes, "Part")
    assert type(sub).__name__ == "Part"
    assert sorted(n.name for n in inputs) == ["exp", "y"] and [n.name for n in outputs] == ["add"]
    tupled, _, _ = fuser.fuse_as_graphmodule(gm, nodes, "Part", always_return_tuple=True)
    assert isinstance(tupled.graph.output_node().args[0], tuple)
    with pytest.raises(AssertionError, match="cycles"):
        fuser.fuse_as_graphmodule(gm, nodes_of(gm, "neg", "relu"), "Part")
    other = fx.symbolic_trace(forks)
    with pytest.raises(AssertionError, match="belong"):
        fuser.fuse_as_graphmodule(other, nodes, "Part")


def test_fuse_by_partitions(fx):
    fuser = passes(fx, "utils.fuser_utils")
    x, y = torch.rand(3), torch.rand(3)
    gm = fx.symbolic_trace(forks)
    for node in gm.graph.nodes:
        node.meta["val"] = node.name
    parts = [nodes_of(gm, "neg_1", "neg"), nodes_of(gm, "exp_1", "relu_2")]
    fuser.fuse_by_partitions(gm, [dict.fromkeys(p) for p in parts], prefix="part_")
    for got, want in zip(gm(x, y), forks(x, y)):
        assert torch.equal(got, want)
    assert [n.name for n in gm.graph.nodes if n.op == "call_module"] == ["part_0", "part_1"]
    assert nodes_of(gm, "part_0")[0].meta["val"] == ("neg_1", "neg")
    again = fx.symbolic_trace(forks)
    with pytest.raises(AssertionError, match="cycles"):
        fuser.fuse_by_partitions(again, [nodes_of(again, "neg", "relu")])


def test_a_cycle_between_partitions(fx):
    """Each of them alone would be fine."""
    gm = fx.symbolic_trace(lambda x, y: (torch.relu(torch.neg(x)), torch.exp(torch.sin(y))))
    groups = [nodes_of(gm, "neg", "exp"), nodes_of(gm, "relu", "sin")]
    with pytest.raises(AssertionError, match="cycles"):
        passes(fx, "utils.fuser_utils").fuse_by_partitions(gm, [dict.fromkeys(g) for g in groups])


def test_validate_partition(fx):
    fuser = passes(fx, "utils.fuser_utils")
    gm = fx.symbolic_trace(chain)
    assert fuser.validate_partition(nodes_of(gm, "neg", "relu"))
    assert not fuser.validate_partition(nodes_of(gm, "neg", "exp"))
    nodes_of(gm, "neg")[0].args = (nodes_of(gm, "relu")[0],)
    with pytest.raises(AssertionError, match="same length"):
        fuser.topo_sort(nodes_of(gm, "neg", "relu"))


def test_sorting(fx):
    tools = passes(fx, "tools_common")
    found = []
    for sort in (tools.stable_topological_sort, tools.legalize_graph):
        gm = fx.symbolic_trace(forks)
        before = [n.name for n in gm.graph.nodes]
        first = gm.graph.find_nodes(op="call_function", target=torch.neg)[0]
        first.prepend(nodes_of(gm, "exp_1")[0])
        assert sort(gm) is gm
        gm.graph.lint()
        found.append([n.name for n in gm.graph.nodes])
        x, y = torch.rand(3), torch.rand(3)
        assert torch.equal(gm(x, y)[0], forks(x, y)[0])
    assert found[0] != before and sorted(found[0]) == sorted(before)
    assert found == [
        ["x", "y", "neg", "neg_1", "exp", "relu", "relu_1", "add", "relu_2", "exp_1", "neg_2", "output"],
        ["x", "y", "neg", "neg_1", "exp", "relu_2", "relu_1", "relu", "add", "exp_1", "neg_2", "output"],
    ]


def test_cycles_cannot_be_sorted(fx):
    tools = passes(fx, "tools_common")
    for sort, error in ((tools.stable_topological_sort, AssertionError), (tools.legalize_graph, RuntimeError)):
        gm = fx.symbolic_trace(chain)
        first, last = nodes_of(gm, "neg", "exp")
        first.args = (last,)
        with pytest.raises(error, match="Input graph has cycles, unable to add .*neg.*exp"):
            sort(gm)


def test_targets(fx):
    tools = passes(fx, "tools_common")
    gm = fx.symbolic_trace(WithModules())
    submodules = dict(gm.named_modules())
    names = {n.name: tools.get_node_target(submodules, n) for n in gm.graph.nodes if n.op in tools.CALLABLE_NODE_OPS}
    assert names["a"] == "torch.nn.modules.linear.Linear" and names["mul"] == "_operator.mul"
    assert names["neg"] == "torch.neg" and names["b_1"] == "torch.nn.modules.activation.ReLU"
    graph = fx.Graph()
    x = graph.placeholder("x")
    assert tools.get_node_target({}, graph.call_method("view", (x, -1))) == "view"
    assert tools.get_node_target({}, graph.call_function(torch.ops.aten.add.Tensor, (x, x))) == "torch.ops.aten.add.Tensor"
    assert tools.get_node_target({}, graph.call_function(operator.getitem, (x, 0))) == "_operator.getitem"
    with pytest.raises(AssertionError, match="Expect op types"):
        tools.get_node_target({}, x)
    assert tools.get_acc_ops_name("name") == "name" and tools.get_acc_ops_name(torch.relu).endswith(".relu")


def test_operator_support(fx):
    support = passes(fx, "operator_support")

    def program(x, i):
        a = torch.add(x, x)
        b = torch.add(x, 1)
        c = torch.add(i, i)
        return torch.sum(a, dim=0, dtype=torch.float64), torch.mul(b, b), torch.add(x, other=i), c

    gm = fx.symbolic_trace(program)
    passes(fx, "shape_prop").ShapeProp(gm).propagate(torch.rand(2), torch.ones(2, dtype=torch.int64))
    submodules = dict(gm.named_modules())

    def supported(s):
        calls = [n for n in gm.graph.nodes if n.op == "call_function"]
        return [n.name for n in calls if s.is_node_supported(submodules, n)]

    floats = [torch.float32]
    by_type = support.OperatorSupport({"torch.add": ((floats, floats), {"other": floats}), "torch.mul": None})
    assert supported(by_type) == ["add", "add_1", "mul"]
    anything = support.OperatorSupport({"torch.add": ((None,), {})})
    assert supported(anything) == ["add", "add_1", "add_2", "add_3"]
    no_ints = support.OpSupports.decline_if_input_dtype(torch.int64)
    no_add = support.OpSupports.decline_if_node_in_names({"add"})
    assert supported(no_ints) == ["add", "add_1", "sum_1", "mul"]
    assert supported(support.chain(anything, no_ints, no_add)) == ["add_1"]
    assert supported(support.any_chain(by_type, no_add)) == ["add", "add_1", "add_2", "sum_1", "mul", "add_3"]
    assert by_type.is_node_supported(submodules, next(iter(gm.graph.nodes)))
    assert supported(support.OperatorSupport()) == []
    with pytest.raises(TypeError):
        support.OperatorSupportBase()
