"""replace_pattern: each program is rewritten by torch.fx and by ours, and the graphs, matches and results compared."""

import copy
import importlib

import pytest
import torch

FX = ("torch.fx", "fxjit.fx")


def rewriter(fx):
    return importlib.import_module(fx.__name__ + ".subgraph_rewriter")


def describe(node):
    return node.name if hasattr(node, "users") else repr(node)


def rewrite(fx, program, pattern, replacement, wrapped=(), **options):
    """What a rewrite leaves behind, in a form that can be compared."""
    for fn in wrapped:
        fx.wrap(fn)
    gm = fx.symbolic_trace(program)
    pattern, replacement = (p(fx) if isinstance(p, Traced) else p for p in (pattern, replacement))
    done = rewriter(fx).replace_pattern_with_filters(gm, pattern, replacement, **options)
    gm.graph.lint()
    matches = [
        (
            m.anchor.name,
            {pn.name: describe(gn) for pn, gn in m.nodes_map.items()},
            [n.name for n in m.replacements],
        )
        for m in done
    ]
    return gm, [n.format_node() for n in gm.graph.nodes], matches


class Traced:
    """A pattern or replacement that is handed over as a GraphModule."""

    def __init__(self, program):
        self.program = program

    def __call__(self, fx):
        return fx.symbolic_trace(self.program)


def check(program, pattern, replacement, *args, found, **options):
    """The oracle's and our rewrite agree, `found` matches were replaced, and both compute the same."""
    (theirs, their_lines, their_matches), (mine, my_lines, my_matches) = (
        rewrite(importlib.import_module(name), program, pattern, replacement, **options) for name in FX
    )
    assert my_lines == their_lines
    assert my_matches == their_matches
    assert len(my_matches) == found
    if args:
        torch.testing.assert_close(mine(*args), theirs(*args), rtol=0, atol=0)
    return mine


X, Y = torch.rand(1, 3), torch.rand(1, 3)


def test_logic_is_preserved():
    def program(x):
        val = torch.neg(x) + torch.relu(x)
        return torch.add(val, val)

    gm = check(
        program,
        lambda x: torch.neg(x) + torch.relu(x),
        lambda x: torch.relu(x) + torch.neg(x),
        X,
        found=1,
    )
    assert torch.equal(gm(X), program(X))


def test_one_match():
    gm = check(
        lambda x: torch.add(torch.neg(x) + torch.relu(x), 1),
        lambda x: torch.neg(x) + torch.relu(x),
        lambda x: torch.relu(x),
        X,
        found=1,
    )
    assert torch.equal(gm(X), X + 1)


def test_several_matches():
    def program(x, w1, w2):
        m1 = torch.cat([w1, w2]).sum()
        m2 = torch.cat([w1, w2]).sum()
        return x + torch.max(m1) + torch.max(m2)

    check(program, lambda a, b: torch.cat([a, b]).sum(), lambda a, b: torch.stack([a, b]), X, X, Y, found=2)


def test_order_of_arguments():
    def program(x, w1, w2):
        m1 = torch.cat([w1, w2]).sum()
        m2 = torch.cat([w2, w1]).sum()
        return x + torch.max(m1) + torch.max(m2)

    check(program, lambda x, y: torch.cat([x, y]), lambda x, y: torch.cat([y, x]), X, X, Y, found=2)


def test_output_is_reconnected():
    def program(x, y):
        val = torch.neg(y) + torch.relu(x)
        return torch.add(val, torch.neg(val))

    check(program, lambda x: torch.relu(x), lambda x: torch.neg(x), X, Y, found=1)


@pytest.mark.parametrize("as_module", [False, True])
def test_pattern_as_module_and_as_graph_module(as_module):
    class Pattern(torch.nn.Module):
        def forward(self, x):
            return torch.neg(x) + torch.relu(x)

    class Replacement(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.unused = torch.nn.Linear(2, 2)

        def forward(self, x):
            return torch.sigmoid(x)

    pattern, replacement = Pattern(), Replacement()
    if not as_module:
        pattern, replacement = Traced(pattern), Traced(replacement)
    check(lambda x: torch.neg(x) + torch.relu(x) + 1, pattern, replacement, X, found=1)


def test_pattern_is_the_whole_graph():
    check(
        lambda x: torch.add(torch.neg(x), x),
        lambda x: torch.add(torch.neg(x), x),
        lambda x: torch.add(x, torch.neg(x)),
        X,
        found=1,
    )


def test_inner_values_with_outside_users_do_not_match():
    def program(x, w1, w2, b1, b2):
        m0 = torch.cat([w1, w2])
        m1 = torch.cat([w1, w2])
        m2 = torch.cat([m1, b2])
        return torch.stack([torch.max(m0), torch.max(m1), torch.max(m2)]) + x

    def pattern(a, b, c):
        return torch.max(torch.cat([torch.cat([a, b]), c]))

    check(program, pattern, lambda a, b, c: torch.max(a), found=0)


def test_matches_in_place_of_matches():
    """The input of the second match is the result of the first."""

    def program(x):
        return torch.relu(torch.neg(torch.relu(torch.neg(x))))

    check(program, lambda x: torch.relu(torch.neg(x)), lambda x: torch.sigmoid(x), X, found=2)


def test_identity_as_replacement():
    def program(x):
        return torch.sigmoid(torch.relu(torch.relu(x)))

    check(program, lambda x: torch.relu(x), lambda x: x, X, found=2)


def test_overlapping_matches():
    def program(x):
        x = torch.sigmoid(x)
        x = torch.sigmoid(x)
        return torch.sigmoid(x)

    check(program, lambda x: torch.sigmoid(torch.sigmoid(x)), lambda x: torch.neg(x), X, found=1)


def test_two_outputs_swapped():
    def program(x):
        y = torch.relu(x)
        return (torch.sigmoid(x), y, torch.sigmoid(y))

    def pattern(x):
        return torch.sigmoid(x), torch.sigmoid(torch.relu(x))

    def replacement(x):
        return torch.exp(x), torch.abs(x)

    check(program, pattern, replacement, X, found=0)

    def contained(x):
        return torch.sigmoid(x), torch.sigmoid(torch.relu(x))

    check(contained, pattern, replacement, X, found=1)


def test_many_matches_with_two_outputs():
    def program(x, y):
        for _ in range(4):
            x, y = torch.neg(x + y), torch.relu(x + y)
            z = x * y
            x, y = torch.sin(z), torch.cos(z)
        return x, y

    check(program, lambda z: (torch.sin(z), torch.cos(z)), lambda z: (torch.cos(z), torch.sin(z)), X, Y, found=4)


def test_outputs_without_users():
    def program(x):
        y = torch.relu(x)
        torch.sigmoid(y)
        return torch.neg(x)

    check(program, lambda x: torch.sigmoid(torch.relu(x)), lambda x: torch.tanh(x), X, found=1)


def test_call_method():
    def program(x):
        x = x.dequantize()
        x = x.sigmoid()
        return x.to(torch.float16)

    def pattern(x):
        x = x.dequantize()
        x = x.sigmoid()
        return x.to(torch.float16)

    check(program, pattern, lambda x: x, X, found=1)


def test_keyword_arguments():
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w0, self.b0 = torch.empty([128, 128]), torch.empty([128])

        def forward(self, in0):
            lin = torch.nn.functional.linear(in0, self.w0, bias=self.b0)
            drop = torch.nn.functional.dropout(lin, p=0.1, training=True)
            return torch.nn.functional.relu(drop)

    def pattern(a, w, b):
        lin = torch.nn.functional.linear(a, w, bias=b)
        drop = torch.nn.functional.dropout(lin, p=0.1, training=True)
        return torch.nn.functional.relu(drop)

    def replacement(a, w, b):
        return torch.nn.functional.relu(torch.nn.functional.linear(a, w, bias=b))

    check(M(), pattern, replacement, found=1)


def test_constants_must_be_equal():
    def program(x):
        return torch.add(x, 1) * torch.add(x, 2) * torch.add(x, 1.0) * torch.add(x, True)

    check(program, lambda x: torch.add(x, 1), lambda x: torch.neg(x), found=1)
    check(program, lambda x: torch.add(x, 1), lambda x: torch.neg(x), X, found=4, ignore_literals=True)


def test_parameters_capture_constants():
    def program(x):
        return torch.add(torch.add(x, 3), 0.5).reshape([3, 1])

    check(program, lambda x, c: torch.add(x, c), lambda x, c: torch.sub(x, c), X, found=2)
    check(program, lambda x, s: x.reshape(s), lambda x, s: x.view(s), X, found=1)


def test_a_constant_captured_twice_must_be_the_same():
    def program(x):
        return (x + 1) * 1, (x + 1) * 2

    check(program, lambda x, c: (x + c) * c, lambda x, c: x - c, X, found=1)


def test_no_node_is_matched_twice():
    check(lambda x: x + x, lambda x, y: x + y, lambda x, y: x - y, X, found=0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.submod = torch.nn.Sequential(torch.nn.ReLU())

    def forward(self, x):
        x = x + 1
        return self.submod(self.linear(x))


def test_attributes_of_the_replacement_are_copied():
    class Pattern(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.submod = torch.nn.Sequential(torch.nn.ReLU())
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x):
            return self.submod(self.linear(x))

    class Replacement(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tanh = torch.nn.Tanh()
            self.scale = torch.nn.Parameter(torch.full((3,), 2.0))
            self.shift = torch.nn.Module()
            self.shift.inner = torch.nn.Module()
            self.shift.inner.act = torch.nn.Sigmoid()

        def forward(self, x):
            return self.shift.inner.act(self.tanh(x)) * self.scale

    def leaves(fx):
        class LeafSequential(fx.Tracer):
            def is_leaf_module(self, m, qualname):
                return type(m).__module__.startswith("torch.nn")

        return lambda m: fx.GraphModule(m, LeafSequential().trace(m))

    results = []
    for name in FX:
        fx = importlib.import_module(name)
        trace = leaves(fx)
        torch.manual_seed(0)
        gm, replacement = trace(Net()), trace(Replacement())
        matches = fx.replace_pattern(gm, trace(Pattern()), replacement)
        assert len(matches) == 1 and type(matches[0]).__name__ == "Match"
        assert gm.tanh is not replacement.tanh and gm.scale is not replacement.scale
        assert not hasattr(gm, "linear") and not hasattr(gm, "submod")
        results.append((gm(X), sorted(n for n, _ in gm.named_modules()), [n.format_node() for n in gm.graph.nodes]))
    torch.testing.assert_close(results[0][0], results[1][0], rtol=0, atol=0)
    assert results[0][1:] == results[1][1:]


def test_existing_attributes_win(fx):
    class Replacement(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x):
            return self.linear(x).neg()

    net = Net()
    gm = fx.symbolic_trace(net)
    fx.replace_pattern(gm, lambda x: x + 1, fx.symbolic_trace(Replacement()))
    assert gm.linear is net.linear


def test_missing_attribute_is_an_error(fx):
    gm = fx.symbolic_trace(lambda x: torch.relu(x))
    replacement = fx.symbolic_trace(Net())
    del replacement.linear
    with pytest.raises((RuntimeError, AttributeError)):
        fx.replace_pattern(gm, lambda x: torch.relu(x), replacement)


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
