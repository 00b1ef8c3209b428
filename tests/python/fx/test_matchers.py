"""SubgraphMatcher and its companions: the same matches as torch.fx's."""

import importlib
import itertools

import pytest
import torch
import torch.fx.passes.utils.fuser_utils

FX = ("torch.fx", "fxjit.fx")


def utils(fx, name):
    return importlib.import_module(f"{fx.__name__}.passes.utils.{name}")


def can_be_one_node(match):
    computed = [n for p, n in match.nodes_map.items() if p.op not in ("placeholder", "output")]
    return torch.fx.passes.utils.fuser_utils.validate_partition(computed)


def matches(fx, program, pattern, node_name_match="", **options):
    matcher = utils(fx, "matcher_utils").SubgraphMatcher(fx.symbolic_trace(pattern).graph, **options)
    target = fx.symbolic_trace(program)
    found = matcher.match(target.graph, node_name_match)
    if not options.get("remove_overlapping_matches", True):
        # torch.fx checks for cycles but returns the unchecked list in this case.
        found = [m for m in found if can_be_one_node(m)]
    name = lambda v: v.name if hasattr(v, "users") else repr(v)
    return [
        (
            [n.name for n in m.anchors],
            {k.name: name(v) for k, v in m.nodes_map.items()},
            [name(v) for v in m.placeholder_nodes],
            [n.name for n in m.returning_nodes],
        )
        for m in found
    ]


def check(program, pattern, found=None, **options):
    theirs, mine = (matches(importlib.import_module(name), program, pattern, **options) for name in FX)
    assert mine == theirs
    if found is not None:
        assert len(mine) == found
    return mine


PATTERNS = {
    "one node": lambda x: torch.relu(x),
    "two inputs": lambda x, y: x + y,
    "chain": lambda x: torch.relu(torch.neg(x)),
    "diamond": lambda x: torch.relu(x) + torch.neg(x),
    "two outputs": lambda x: (torch.relu(x), torch.neg(x)),
    "output used inside": lambda x: (torch.neg(x), torch.relu(torch.neg(x))),
    "disconnected": lambda x, y: (torch.relu(x), torch.neg(y)),
    "constant": lambda x: torch.add(x, 1),
    "captured": lambda x, c: torch.add(x, c),
    "list": lambda x, y: torch.cat([x, y], 0),
    "the same twice": lambda x: torch.mul(x, x),
    "method": lambda x: x.view(-1).sum(),
    "keywords": lambda x: torch.sum(x, dim=0),
}


def branches(x, y):
    a, b = torch.neg(x), torch.neg(y)
    c = torch.relu(a) + b
    return torch.relu(c), torch.neg(c), a


def constants(x, y):
    a = torch.add(x, 1) * torch.add(y, 2)
    return torch.mul(a, a) + torch.mul(x, y)


def structures(x, y):
    a = torch.cat([x, y], 0)
    b = torch.cat((y, a), 0)
    return torch.sum(b, dim=0) + a.view(-1).sum() + torch.sum(b, 0)


def repeated(x, y):
    for _ in range(3):
        x, y = torch.relu(torch.neg(x)), torch.relu(x) + torch.neg(x) + y
    return x, y, torch.relu(y)


PROGRAMS = (branches, constants, structures, repeated)
FLAGS = [{}, {"remove_overlapping_matches": False}, {"ignore_literals": True}, {"match_placeholder": True}]


@pytest.mark.parametrize("flags", FLAGS, ids=lambda f: next(iter(f), "default"))
@pytest.mark.parametrize("program", PROGRAMS)
def test_all_patterns(program, flags):
    found = 0
    for pattern in PATTERNS.values():
        # torch.fx raises KeyError where one anchor of several has no candidate: there is no match then.
        try:
            found += len(check(program, pattern, **flags))
        except KeyError:
            assert matches(importlib.import_module("fxjit.fx"), program, pattern, **flags) == []
    assert found > 0 or flags == {"match_placeholder": True}


def test_the_whole_graph():
    options = {"match_output": True, "match_placeholder": True}
    for a, b in itertools.product(PROGRAMS, repeat=2):
        check(a, b, found=int(a is b), **options)


def test_name_instead_of_target():
    check(lambda x: torch.tanh(torch.exp(x)), lambda x: torch.neg(x), found=1, node_name_match="exp")


def test_no_cycle_through_a_match():
    def program(x):
        a = torch.neg(x)
        b = torch.exp(a)
        return a, torch.relu(b)

    check(program, PATTERNS["disconnected"], found=0)


def test_bad_patterns(fx):
    matcher = utils(fx, "matcher_utils").SubgraphMatcher
    with pytest.raises(ValueError, match="empty pattern"):
        matcher(fx.Graph())

    def dead(x, y):
        torch.neg(y)
        return torch.relu(x)

    with pytest.raises(AssertionError, match="dead code"):
        matcher(fx.symbolic_trace(dead).graph)


def test_attributes_of_other_kinds(fx):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.sub = torch.nn.Linear(2, 2)

    def program():
        graph = fx.Graph()
        x = graph.placeholder("x")
        graph.output(graph.call_function(torch.add, (x, graph.get_attr("sub"))))
        return fx.GraphModule(M(), graph)

    pattern, target = program(), program()
    matcher = utils(fx, "matcher_utils").SubgraphMatcher(pattern.graph)
    with pytest.raises(RuntimeError, match="Unsupported type"):
        matcher.match(target.graph)


def test_a_subclass_decides_about_attributes(fx):
    class M(torch.nn.Module):
        def __init__(self, value):
            super().__init__()
            self.register_buffer("c", torch.full((2,), value))

        def forward(self, x):
            return x + self.c

    class ByValue(utils(fx, "matcher_utils").SubgraphMatcher):
        def _match_attributes(self, pn, gn):
            return torch.equal(pn.graph.owning_module.c, gn.graph.owning_module.c)

    pattern, same, other = (fx.symbolic_trace(M(v)) for v in (1.0, 1.0, 2.0))
    matcher = ByValue(pattern.graph)
    assert len(matcher.match(same.graph)) == 1 and matcher.match(other.graph) == []


def test_compare_graphs(fx):
    compare = importlib.import_module(fx.__name__ + ".passes.utils").compare_graphs
    graphs = [fx.symbolic_trace(p).graph for p in PROGRAMS]
    for i, a in enumerate(graphs):
        assert [compare(a, b) for b in graphs] == [i == j for j in range(len(graphs))]


def test_lift_subgraph_as_module(fx):
    lift = importlib.import_module(fx.__name__ + ".passes.utils").lift_subgraph_as_module
    net = torch.nn.Sequential(torch.nn.Sequential(torch.nn.Linear(2, 2)), torch.nn.ReLU())
    gm = fx.symbolic_trace(net)
    lifted, names = lift(gm, gm.graph, comp_name="part", class_name="Part")
    assert type(lifted).__name__ == "Part" and names == {"0.0": "part.0.0", "1": "part.1"}
    x = torch.rand(2, 2)
    assert torch.equal(lifted(x), net(x)) and lifted.get_submodule("0.0") is net[0][0]


def named_pattern(fx, returns):
    graph = fx.Graph()
    x = graph.placeholder("x")
    neg = graph.call_function(torch.neg, (x,))
    relu = graph.call_function(torch.relu, (neg,))
    graph.output(returns(neg, relu))
    return fx.GraphModule(torch.nn.Module(), graph)


def test_nodes_by_name(ours):
    """torch.fx takes modules with an out_spec only, which torch.export makes; ours also takes traced ones."""
    module = utils(ours, "matcher_with_name_node_map_utils")
    pattern = named_pattern(ours, lambda neg, relu: (relu, {"negated": neg, "result": relu}))
    matcher = module.SubgraphMatcherWithNameNodeMap(pattern)
    target = ours.symbolic_trace(lambda x: torch.relu(torch.neg(torch.relu(torch.neg(x)))))
    found = matcher.match(target.graph)
    assert [{k: n.name for k, n in m.name_node_map.items()} for m in found] == [
        {"negated": "neg", "result": "relu"},
        {"negated": "neg_1", "result": "relu_1"},
    ]
    assert torch.equal(pattern(torch.ones(2))[0], torch.zeros(2))
    for returns in (lambda n, r: r, lambda n, r: (r,), lambda n, r: (r, n)):
        with pytest.raises(AssertionError):
            module.SubgraphMatcherWithNameNodeMap(named_pattern(ours, returns))


def sourced(fx):
    gm = fx.symbolic_trace(lambda x: torch.relu(torch.neg(torch.relu(torch.neg(x)))))
    calls = [n for n in gm.graph.nodes if n.op == "call_function"]
    for i, node in enumerate(calls):
        node.meta["source_fn_stack"] = [("outer", torch.nn.Module), (f"linear_{i // 2}", torch.nn.Linear)]
    calls[3].meta.pop("source_fn_stack")
    calls[3].meta["torch_fn"] = ("linear_1", "function.linear")
    return gm


def test_source_partitions(fx):
    module = utils(fx, "source_matcher_utils")
    gm = sourced(fx)
    found = module.get_source_partitions(gm.graph, [torch.nn.Linear, "linear", torch.nn.ReLU])
    show = lambda nodes: [n.name for n in nodes]
    parts = {
        k: [(show(p.nodes), show(p.input_nodes), show(p.output_nodes), p.params, p.source) for p in v]
        for k, v in found.items()
    }
    assert parts == {
        torch.nn.Linear: [
            (["neg", "relu"], ["x"], ["relu"], [], torch.nn.Linear),
            (["neg_1"], ["relu"], ["neg_1"], [], torch.nn.Linear),
        ],
        "linear": [(["relu_1"], ["neg_1"], ["relu_1"], [], "linear")],
    }
    first, second = found[torch.nn.Linear]
    assert module.check_subgraphs_connected(first, second) and not module.check_subgraphs_connected(second, first)
    kept = module.get_source_partitions(gm.graph, [torch.nn.Linear], filter_fn=lambda n: n.name != "neg_1")
    assert [show(p.nodes) for p in kept[torch.nn.Linear]] == [["neg", "relu"]]
