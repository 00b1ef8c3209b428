"""replace_pattern: each program is rewritten by torch.fx and by ours, and the graphs, matches and results compared."""

import importlib

import pytest
import torch
from rewriting import FX, Traced, X, Y, check


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
