"""Control flow on shapes, dtypes and devices compiles: each outcome is a variant of its own, and calls find theirs."""

import math
import warnings

import pytest
import torch
import torch.nn as nn

import fxjit

W = torch.randn(3, 3)


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


def loop(x):
    total = torch.zeros(x.size(1))
    for i in range(x.size(0)):
        total = total + x[i] * i
    return total


def unpack(x):
    rows, columns = x.shape
    return x.reshape(columns, rows) * rows


def through_an_operator(x):
    y = torch.nn.functional.linear(x, W)
    return y.relu() if y.shape[0] > 4 else y.neg()


def item_assignment(x):
    y = x * 2
    y[0] = 1
    return y


class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.randn(16, 3))

    def forward(self, x):
        return x + self.table[: x.size(0)]


PROGRAMS = {
    "branch": lambda x: x + 1 if x.shape[0] > 4 else x - 1,
    "branch on arithmetic": lambda x: x + 1 if (x.size(0) * 2 + 1) // 3 % 2 == 0 else x - 1,
    "two branches": lambda x: (x * 2 if x.size(0) % 2 else x * 3) + (1 if x.numel() > 12 else 2),
    "loop": loop,
    "len": lambda x: x * len(x),
    "iteration": lambda x: sum(row * 2 for row in x),
    "unpack": unpack,
    "zeros": lambda x: torch.zeros(x.size(0), 3) + x,
    "arange": lambda x: x + torch.arange(x.size(0)).unsqueeze(1),
    "full": lambda x: x * torch.full((x.size(0), 1), 2.5),
    "narrow": lambda x: torch.narrow(x, 0, 0, x.size(0) // 2) + 1,
    "slice": lambda x: x[: x.size(0) - 1] * 2,
    "int": lambda x: x * int(math.sqrt(x.size(0))),
    "min": lambda x: x[: min(x.size(0), 5)] * 2,
    "after an operator": through_an_operator,
    "item assignment": item_assignment,
    "buffer": Positions(),
    "isinstance": lambda x: x * 2 if isinstance(x, torch.Tensor) and isinstance(x.size(0), int) else x,
    "chunks": lambda x: torch.cat([c * i for i, c in enumerate(x.split(2))]),
}


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_each_shape_gets_its_answer(name):
    f = PROGRAMS[name]
    c = fxjit.compile(f)
    for n in (4, 4, 6, 5, 4, 6, 6, 3, 4, 5):
        x = torch.randn(n, 3)
        torch.testing.assert_close(c(x), f(x), rtol=0, atol=0 if name != "after an operator" else 1e-5)
    assert c.explain().capture == "checked FX trace", c.explain()


def test_both_outcomes_are_compiled_once_and_serve_every_size():
    c = fxjit.compile(PROGRAMS["branch"])
    for n in (4, 6, 2, 9, 3, 100, 4):
        x = torch.randn(n, 3)
        assert torch.equal(c(x), PROGRAMS["branch"](x))
    explained = c.explain()
    assert sorted(explained.guards) == [["arg_0.size(0) <= 4"], ["arg_0.size(0) > 4"]]
    assert "captured for: arg_0.size(0) > 4" in str(explained)
    assert explained.recorded_calls == 2 and explained.generic_calls == 0


def test_the_hot_call_tells_shapes_apart():
    """A specialisation has symbolic sizes: it is the guard that keeps the other branch's calls away from it."""
    c = fxjit.compile(lambda x: x * 2 if x.size(0) == x.size(1) else x * 3)
    square, wide, other = torch.ones(5, 5), torch.ones(5, 7), torch.ones(8, 8)
    for _ in range(3):
        assert c(square).eq(2).all() and c(wide).eq(3).all() and c(other).eq(2).all()
    assert c.explain().recorded_calls == 2


def test_dtypes_choose_a_variant():
    c = fxjit.compile(lambda x: x * 2 if x.dtype == torch.float32 else x + 1)
    for _ in range(3):
        assert c(torch.ones(3)).eq(2).all()
        assert c(torch.ones(3, dtype=torch.float64)).dtype == torch.float64
        assert c(torch.zeros(3, dtype=torch.float64)).eq(1).all()


def test_requires_grad_is_looked_at_by_each_call():
    c = fxjit.compile(lambda x: x * 2 if x.requires_grad else x * 3)
    for _ in range(3):
        assert c(torch.ones(3, requires_grad=True)).eq(2).all()
        assert c(torch.ones(3)).eq(3).all()


def test_contiguity():
    c = fxjit.compile(lambda x: x * 2 if x.is_contiguous() else x * 3)
    for _ in range(3):
        assert c(torch.ones(4, 3)).eq(2).all()
        assert c(torch.ones(3, 4).t()).eq(3).all()


def test_many_shapes_end_in_eager_with_the_reason():
    f = PROGRAMS["len"]
    c = fxjit.compile(f)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        for n in range(1, 15):
            x = torch.randn(n, 3)
            assert torch.equal(c(x), f(x)) and torch.equal(c(x), f(x))
    assert ["more than 8 different" in str(w.message) for w in given] == [True] and given[0].filename == __file__
    assert len(c.explain().guards) == 8
    assert "more than 8 different" in str(c.explain())


def test_inputs_that_keep_changing_warn_once():
    c = fxjit.compile(lambda x: x.view(x.size(0), -1) * 2, max_specialisations=1)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        for n in range(2, 14):
            assert c(torch.ones(n, 3)).eq(2).all()
    assert ["max_specialisations" in str(w.message) for w in given] == [True]
    assert c.explain().generic_calls > 1


def test_several_tensors_and_a_structure():
    def f(pair, scale):
        a, b = pair
        return a * scale if a.shape == b.shape else a.sum() + b.sum()
    c = fxjit.compile(f)
    for n in (3, 3, 4, 4, 3):
        for scale in (2.0, 3.0):
            a, b = torch.randn(3), torch.randn(n)
            torch.testing.assert_close(c((a, b), scale), f((a, b), scale))


def test_a_parameter_of_another_size_is_seen():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(3))

        def forward(self, x):
            return x * 2 if self.w.shape[0] > 3 else x * 3
    m = M()
    c, x = fxjit.compile(m), torch.ones(2)
    for _ in range(3):
        assert c(x).eq(3).all()
    m.w = nn.Parameter(torch.ones(5))
    for _ in range(3):
        assert c(x).eq(2).all()


def test_data_dependent_control_flow_runs_eagerly_with_advice():
    f = lambda x: x * 2 if x.sum() > 0 else x  # noqa: E731
    c = fxjit.compile(f)
    for x in (torch.ones(3), -torch.ones(3)):
        assert torch.equal(c(x), f(x))
    assert "control flow" in str(c.explain()) and "torch.where" in str(c.explain())


def test_a_program_that_looks_at_nothing_has_no_guards():
    c = fxjit.compile(lambda x: x.relu() + x.size(0))
    for n in (3, 4, 5):
        c(torch.randn(n))
    assert c.explain().guards == [[]] and "captured for" not in str(c.explain())


def test_a_message_about_a_shape_ties_nothing_to_it():
    def checked(x):
        y = x.relu()
        torch._assert(y.dim() == 2, f"expected a matrix, got {y.shape}")
        return y * 2
    c = fxjit.compile(checked)
    for n in (3, 4, 5):
        x = torch.randn(n, 3)
        assert torch.equal(c(x), checked(x))
    assert c.explain().guards == [[]]
    with pytest.raises(AssertionError, match="expected a matrix"):
        c(torch.randn(3))


def test_a_shape_as_text_in_the_result_is_eager_s():
    f = lambda x: (x + 1, f"{x.shape}")  # noqa: E731
    c = fxjit.compile(f)
    for n in (3, 4):
        assert c(torch.ones(n))[1] == f"torch.Size([{n}])"
    assert "text of a shape" in str(c.explain())
