"""replace_pattern: filters, callbacks, names, what counts as the same call, hooks and meta, against torch.fx."""

import copy
import importlib

import pytest
import torch
from rewriting import FX, Traced, X, Y, check, rewrite, rewriter


def test_pattern_constants_match_any_tensor():
    class M(torch.nn.Module):
        def __init__(self, value):
            super().__init__()
            self.register_buffer("c", torch.full((3,), value))

        def forward(self, x):
            return torch.mul(x, self.c)

    check(M(2.0), Traced(M(3.0)), lambda x: torch.neg(x), X, found=1)


def test_match_filters():
    def program(x, y):
        return torch.add(x, 1) + torch.add(y, 2)

    seen = []

    def only_two(match, original, pattern):
        assert match.nodes_map[pattern.output_node().args[0]].graph is original
        seen.append(match.placeholder_nodes[1])
        return match.placeholder_nodes[1] == 2

    check(program, lambda x, c: torch.add(x, c), lambda x, c: x * c, X, Y, found=1, match_filters=[only_two])
    assert seen == [1, 2] * 2


def test_replacement_callback():
    def program(x):
        return torch.add(x, 1) * torch.add(x, 2)

    for name in FX:
        fx = importlib.import_module(name)

        def made(match, original, pattern, fx=fx):
            steps = match.placeholder_nodes[1]
            graph = fx.Graph()
            x, _ = graph.placeholder("x"), graph.placeholder("c")
            for _ in range(steps):
                x = graph.call_function(torch.neg, (x,))
            graph.output(x)
            return graph

        gm, lines, matches = rewrite(fx, program, lambda x, c: torch.add(x, c), None, replacement_callback=made)
        assert [m[2] for m in matches] == [["neg"], ["neg_1", "neg_2"]]
        assert torch.equal(gm(X), X.neg() * X)


def test_node_name_match():
    def program(x):
        return torch.tanh(torch.relu(x))

    check(
        program,
        lambda x: torch.neg(x),
        lambda x: torch.sigmoid(x),
        X,
        found=1,
        node_name_match="relu",
    )


def test_neither_replacement_nor_callback(fx):
    gm = fx.symbolic_trace(lambda x: torch.relu(x))
    with pytest.raises(AssertionError, match="replacement"):
        rewriter(fx).replace_pattern_with_filters(gm, lambda x: torch.relu(x))


def test_wrong_numbers_are_errors(fx):
    gm = fx.symbolic_trace(lambda x: torch.relu(x))
    with pytest.raises(AssertionError, match="Placeholder count mismatch: 1 vs 2"):
        fx.replace_pattern(copy.deepcopy(gm), lambda x: torch.relu(x), lambda x, y: torch.relu(x))
    with pytest.raises(AssertionError, match="Returning nodes count mismatch: 1 vs 2"):
        fx.replace_pattern(gm, lambda x: torch.relu(x), lambda x: (torch.relu(x), x))


def test_constants_of_a_replacement_function(ours):
    """In torch.fx the new graph names an attribute that is not there, or another one."""
    old, new = torch.tensor([1.0]), torch.tensor([5.0])
    gm = ours.symbolic_trace(lambda x: torch.relu(x) + old)
    assert len(ours.replace_pattern(gm, lambda x: torch.relu(x), lambda x: torch.mul(x, new))) == 1
    assert torch.equal(gm(X), X * 5 + 1)
    gm.graph.lint()


def test_replacement_may_read_what_stands_behind_the_first_user(ours):
    """torch.fx leaves a graph in the wrong order here."""

    def program(x, y):
        a = torch.sin(x)
        used = torch.neg(a)
        b = torch.relu(y)
        return used, torch.cos(b)

    gm = ours.symbolic_trace(program)
    done = ours.replace_pattern(
        gm, lambda x, b: (torch.sin(x), torch.cos(b)), lambda x, b: (torch.cos(b), torch.sin(x))
    )
    gm.graph.lint()
    assert len(done) == 1
    torch.testing.assert_close(gm(X, Y), (torch.neg(torch.cos(torch.relu(Y))), torch.sin(X)))


def test_calls_spelled_differently_match(ours):
    """Defaults and keywords are compared by the callee's signature; torch.fx does so for OpOverloads only."""

    def program(x):
        a = torch.nn.functional.gelu(x, approximate="none")
        b = torch.nn.functional.dropout(a, 0.5, False)
        return torch.nn.functional.softmax(b, dim=1)

    def pattern(x):
        a = torch.nn.functional.gelu(x)
        b = torch.nn.functional.dropout(a, training=False)
        return torch.nn.functional.softmax(b, 1)

    gm = ours.symbolic_trace(program)
    assert len(ours.replace_pattern(gm, pattern, lambda x: torch.relu(x))) == 1
    assert [n.name for n in gm.graph.nodes] == ["x", "relu", "output"]
    gm = ours.symbolic_trace(program)
    assert not ours.replace_pattern(gm, lambda x: torch.nn.functional.gelu(x, approximate="tanh"), lambda x: torch.relu(x))


def test_overloads_are_compared_by_schema():
    add, softmax = torch.ops.aten.add.Tensor, torch.ops.aten.softmax.int

    def program(x, y):
        return softmax(add(x, y, alpha=1), 1, None)

    check(program, lambda x, y: softmax(add(x, y), 1), lambda x, y: torch.sub(x, y), X, Y, found=1)


def test_hooks_of_the_module_see_the_edit():
    def program(x):
        return torch.relu(x) + 1

    for name in FX:
        fx = importlib.import_module(name)
        gm = fx.symbolic_trace(program)
        log = []
        gm._register_create_node_hook(lambda n: log.append(("create", n.name))) if name == "torch.fx" else (
            gm._create_node_hooks.append(lambda n: log.append(("create", n.name)))
        )
        gm._erase_node_hooks.append(lambda n: log.append(("erase", n.name)))
        gm._replace_hooks.append(lambda old, new, user: log.append(("replace", old.name, user.name)))
        fx.replace_pattern(gm, lambda x: torch.relu(x), lambda x: torch.neg(x))
        assert log == [("create", "neg"), ("replace", "relu", "add"), ("erase", "relu")], name


def test_meta_of_the_replacement_travels(fx):
    replacement = fx.symbolic_trace(lambda x: torch.neg(x))
    next(n for n in replacement.graph.nodes if n.name == "neg").meta["mark"] = 7
    gm = fx.symbolic_trace(lambda x: torch.relu(x))
    fx.replace_pattern(gm, lambda x: torch.relu(x), replacement)
    assert next(n for n in gm.graph.nodes if n.name == "neg").meta["mark"] == 7
