"""Passes that leave nodes out: common subexpressions, dead code, constant folding, against torch.fx."""

import copy
import operator

import fxjit
import pytest
import torch
from helpers import as_kind, calls, part
from torch.fx.experimental.proxy_tensor import make_fx


# ---- common subexpressions ----


def functional(x):
    a, b = x.cos(), x.cos()
    c, d = a + a, b + b
    return c + d, x.sum(dim=0), x.sum(dim=0), x.sum(dim=[0]), x.sum(dim=0, keepdim=True)


def cse_both(f, *args, banned=None):
    traced = make_fx(f)(*args)
    out = []
    for fx in (torch.fx, fxjit.fx):
        module = part(fx, "passes.dialect.common.cse_pass")
        gm = as_kind(fx, traced)
        before = len(list(gm.graph.nodes))
        result = module.CSEPass(banned_ops=banned or module.get_CSE_banned_ops())(gm)
        result.graph_module.graph.lint()
        assert len(list(gm.graph.nodes)) == before
        out.append((result.modified, [n.target for n in result.graph_module.graph.nodes], result.graph_module))
    return out


@pytest.mark.parametrize("f", [
    functional,
    lambda x: (x + 1) * (x + 1),
    lambda x: torch.cat([x, x]) + torch.cat([x, x]),
    lambda x: x.sin() + x.cos(),
    lambda x: torch.rand_like(x) + torch.rand_like(x),
])  # fmt: skip
def test_cse_does_what_torch_does(f):
    x = torch.randn(3, 4)
    (modified, targets, theirs), (our_modified, our_targets, ours) = cse_both(f, x)
    assert modified == our_modified and targets == our_targets
    torch.manual_seed(0)
    want = theirs(x)
    torch.manual_seed(0)
    got = ours(x)
    for a, b in zip(torch.utils._pytree.tree_leaves(want), torch.utils._pytree.tree_leaves(got)):
        assert torch.equal(a, b)


def test_cse_does_not_merge_dropouts(ours):
    # torch.fx's pass merges what dropout writes to here.
    x = torch.ones(64)
    traced = make_fx(lambda x: torch.nn.functional.dropout(x) - torch.nn.functional.dropout(x))(x)
    gm = part(ours, "passes.dialect.common.cse_pass").CSEPass()(ours.GraphModule.from_torch(traced)).graph_module
    torch.manual_seed(0)
    want = traced(x)
    torch.manual_seed(0)
    assert torch.equal(gm(x), want) and want.any()


def test_cse_banned_ops():
    (modified, targets, _), (our_modified, our_targets, _) = cse_both(
        lambda x: (x + 1) * (x + 1), torch.ones(2), banned={torch.ops.aten.add}
    )
    assert not modified and not our_modified and targets == our_targets
    theirs, ours = (part(fx, "passes.dialect.common.cse_pass").get_CSE_banned_ops() for fx in (torch.fx, fxjit.fx))
    assert theirs == ours


def test_cse_leaves_alone_what_only_looks_equal(ours):
    cse = part(ours, "passes.dialect.common.cse_pass").CSEPass()

    def writes(x):
        y = x + 1
        z = x + 1
        y.mul_(2)
        return y + z

    def types(x):
        return x + 1, x + 1.0, x + True

    class Dropouts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.d = torch.nn.Dropout()

        def forward(self, x):
            return self.d(x) + self.d(x) + torch.rand(2) - torch.rand(2) + torch.bernoulli(x) * torch.bernoulli(x)

    for program in (writes, types, Dropouts()):
        gm = ours.symbolic_trace(program)
        result = cse(gm)
        assert not result.modified, result.graph_module.graph
    # After the last write there is nothing to fear.
    result = cse(ours.symbolic_trace(lambda x: x.add_(1) * 2 + x.add_(1).sin() + x.sin() * x.sin()))
    assert result.modified


def test_cse_is_linear(ours):
    def steps(n):
        graph = ours.Graph()
        x = graph.placeholder("x")
        for _ in range(n):
            x = graph.call_function(operator.add, (graph.call_method("sin", (x,)), graph.call_method("sin", (x,))))
        graph.output(x)
        gm = ours.GraphModule({}, graph)
        result = part(ours, "passes.dialect.common.cse_pass").CSEPass()(gm)
        return len(list(result.graph_module.graph.nodes)), n

    left, n = steps(3000)
    assert left == 2 * n + 2


# ---- dead code ----


def test_dead_code_with_effects(fx):
    def f(x, y):
        x + 1
        torch.ops.aten.add_.Tensor(y, 1)
        torch.ops.aten.rand.default([2])
        torch.ops.aten.sin.default(x)
        torch._assert(True, "kept")
        return x

    gm = fx.symbolic_trace(f)
    graph = gm.graph
    with graph.inserting_before(list(graph.nodes)[-1]):
        graph.call_function(torch.ops.aten.rand.default, ([2],))
    assert graph.eliminate_dead_code()
    assert [n.target for n in calls(graph)] == [torch.ops.aten.add_.Tensor, torch.ops.aten.rand.default]
    x = torch.ones(2)
    gm.recompile()
    gm(x, y := torch.ones(2))
    assert torch.equal(y, torch.full((2,), 2.0))


def test_dead_code_in_child_graph_modules(fx):
    child = fx.symbolic_trace(lambda x: (x + 1, x.relu())[1])
    graph = fx.Graph()
    x = graph.placeholder("x")
    branch = graph.get_attr("child")
    graph.output(graph.call_function(torch.ops.higher_order.cond, (x, branch, branch, (x,))))
    root = torch.nn.Module()
    root.child = child
    gm = fx.GraphModule(root, graph)
    assert gm.graph.eliminate_dead_code()
    assert [n.op for n in gm.child.graph.nodes] == ["placeholder", "call_method", "output"]


def test_has_side_effect_keeps_calls(program, fx):
    module = program(fx, "def mark(x):\n    return x\n\nfx.wrap(mark)\n")
    fx.node.has_side_effect(module.mark)
    try:
        gm = fx.symbolic_trace(lambda x: (module.mark(x), x + 1)[1])
        graph = fx.Graph()
        x = graph.placeholder("x")
        graph.call_function(module.mark, (x,))
        graph.output(x)
        assert not graph.eliminate_dead_code() and gm is not None
    finally:
        torch.fx.node._side_effectful_functions.discard(module.mark)


# ---- constant folding ----


class Foldable(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Parameter(torch.randn(3))
        self.b = torch.nn.Parameter(torch.randn(3), requires_grad=False)
        self.lin = torch.nn.Linear(3, 3)

    def forward(self, x):
        y = self.a + self.b
        z = self.lin(y).relu()
        return x * y + z - self.a


class NothingToFold(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Parameter(torch.randn(3))

    def forward(self, x):
        return x + self.a


class OneConstant(NothingToFold):
    def forward(self, x):
        return x + self.a * 2


class AllConstant(NothingToFold):
    def forward(self):
        return self.a * 2


class RandomConstant(NothingToFold):
    def forward(self, x):
        return x + torch.ops.aten.rand_like.default(self.a) + self.a.exp()


@pytest.mark.parametrize("cls", [Foldable, NothingToFold, OneConstant, AllConstant, RandomConstant])
def test_const_fold(cls):
    m = cls()
    args = () if cls is AllConstant else (torch.randn(3),)
    folded = [part(fx, "experimental.const_fold").split_const_subgraphs(fx.symbolic_trace(m)) for fx in (torch.fx, fxjit.fx)]
    theirs, ours = folded
    assert sorted(map(str, (n.target for n in calls(ours.graph)))) == sorted(map(str, (n.target for n in calls(theirs.graph))))
    assert (ours.const_subgraph_module is None) == (theirs.const_subgraph_module is None)
    if ours.const_subgraph_module is not None:
        assert [n.op for n in calls(ours.const_subgraph_module.graph)] == [
            n.op for n in calls(theirs.const_subgraph_module.graph)
        ]
    for gm in folded:
        for _ in range(2):
            torch.manual_seed(1)
            got = gm(*args)
            torch.manual_seed(1)
            torch.testing.assert_close(got, m(*args))
        gm.graph.lint()
    copied = copy.deepcopy(ours)
    torch.manual_seed(1)
    got = copied(*args)
    torch.manual_seed(1)
    torch.testing.assert_close(got, m(*args))
    if ours.const_subgraph_module is not None:
        with pytest.raises(AssertionError, match="already been run"):
            ours.run_folding()


def test_const_fold_skip_and_names(fx):
    fold = part(fx, "experimental.const_fold")
    gm = fx.symbolic_trace(Foldable())
    skipped = fold.split_const_subgraphs(gm, skip_folding_node_fn=lambda n: n.target is operator.add)
    assert skipped.const_subgraph_module is None
    m = torch.nn.Module()
    m._x = m._x_1 = 1
    assert fold.get_unique_attr_name_in_module(m, "_x") == "_x_2"
    assert fold.get_unique_attr_name_in_module(m, "9 lives") == "_9_lives"


def test_const_fold_keeps_training_dropout(ours):
    class Noisy(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Parameter(torch.ones(100))
            self.d = torch.nn.Dropout()

        def forward(self, x):
            return x + self.d(self.a)

    fold = part(ours, "experimental.const_fold").split_const_subgraphs
    assert fold(Noisy()).const_subgraph_module is None
    assert fold(Noisy().eval()).const_subgraph_module is not None
