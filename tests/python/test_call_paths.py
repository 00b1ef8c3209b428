"""Which calls go through Python: the first of each kind, no more."""

import collections
import contextlib
import cProfile

import pytest
import torch
from torch import nn

import fxjit
from fxjit.companion import Companion


@pytest.fixture
def slow_calls(monkeypatch):
    """A list that grows with each call that the hot path passes on."""
    made, call = [], Companion.call

    def counted(self, args, kwargs):
        made.append(self.target)
        return call(self, args, kwargs)
    monkeypatch.setattr(Companion, "call", counted)
    return made


def settle(slow_calls, compiled, *args, **kwargs):
    """The result of a call whose like was made before, and that Python had no part in."""
    for _ in range(3):
        compiled(*args, **kwargs)
    slow_calls.clear()
    result = compiled(*args, **kwargs)
    assert not slow_calls
    return result


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)
        self.register_buffer("shift", torch.randn(4))

    def forward(self, x, scale=2.0, flag=True):
        return self.norm(self.a(x) * scale).relu() + self.shift if flag else x


def test_keywords(slow_calls):
    m, x = Block().eval(), torch.randn(3, 4)
    c = fxjit.compile(m)
    with torch.no_grad():
        for kwargs in ({"x": x}, {"x": x, "scale": 3.0}, {"scale": 3.0, "x": x}, {"x": x, "flag": False}):
            torch.testing.assert_close(settle(slow_calls, c, **kwargs), m(**kwargs))
        torch.testing.assert_close(settle(slow_calls, c, x, scale=0.5), m(x, scale=0.5))


def test_names_of_keywords_are_told_apart():
    c = fxjit.compile(lambda *, a, b: a - b)
    x, y = torch.randn(3), torch.randn(3)
    with torch.no_grad():
        for _ in range(3):
            assert torch.equal(c(a=x, b=y), x - y) and torch.equal(c(b=x, a=y), y - x)
            with pytest.raises(TypeError):
                c(a=x, c=y)


def test_what_cannot_be_captured_goes_to_the_target(slow_calls):
    def f(x, n=1):
        return x * n if x.sum() > 0 else x

    c, x = fxjit.compile(f), torch.ones(3)
    with torch.no_grad():
        for args, kwargs in (((x,), {}), ((x,), {"n": 2}), ((), {"x": x})):
            assert torch.equal(settle(slow_calls, c, *args, **kwargs), f(*args, **kwargs))
        assert torch.equal(c(x, 3), x * 3) and torch.equal(c(-x, 3), -x)
    with pytest.raises(RuntimeError, match="strict"):
        fxjit.compile(f, strict=True)(x)
    with pytest.raises(RuntimeError, match="strict"):
        c = fxjit.compile(f, strict=True)
        with contextlib.suppress(RuntimeError):
            c(x)
        c(x)


@pytest.mark.filterwarnings("ignore:fxjit")
@pytest.mark.parametrize("make", [
    fxjit.compile, lambda m: fxjit.fx.symbolic_trace(m, concrete_args={"flag": True, "scale": 2.0})], ids=["compile", "graph"])
def test_training(slow_calls, make):
    m, x = Block(), torch.randn(3, 4)
    c = make(m)
    for _ in range(2):
        got, wanted = settle(slow_calls, c, x), m(x)
        torch.testing.assert_close(got, wanted)
        for a, b in zip(*(torch.autograd.grad(y.sum(), m.parameters()) for y in (got, wanted))):
            torch.testing.assert_close(a, b)
        m.a = nn.Linear(4, 4)  # another module in its place is seen
        if isinstance(c, fxjit.fx.GraphModule):
            c.a = m.a
    assert c(x, 2.0).requires_grad
    with torch.no_grad():
        assert not c(x).requires_grad


@pytest.mark.filterwarnings("ignore:fxjit")
def test_decisions_hold_in_the_generic_form_as_well(slow_calls):
    def f(x):
        y = x * 2 if x.dtype == torch.float32 else x * 3
        return y.sum(0) if x.dim() == 2 else y + x.size(0)

    c = fxjit.compile(f)
    for _ in range(2):
        for x in (torch.randn(3), torch.randn(3).double(), torch.randn(2, 3), torch.randn(4), torch.randn(4, 2).double()):
            x.requires_grad_()
            assert torch.equal(settle(slow_calls, c, x), f(x))


@pytest.mark.filterwarnings("ignore:fxjit")
def test_numbers_before_tensors_in_the_generic_form(slow_calls):
    graph = fxjit.fx.Graph()
    n, x = graph.placeholder("n"), graph.placeholder("x")
    graph.output(graph.call_function(torch.mul, (x, n)))
    c = fxjit.compile(fxjit.fx.GraphModule(nn.Module(), graph))
    x = torch.randn(3, requires_grad=True)
    assert torch.equal(settle(slow_calls, c, 3.0, x), x * 3.0)


@pytest.mark.filterwarnings("ignore:fxjit")
def test_the_generic_form_sees_hooks_modes_and_the_default_dtype():
    m, x = Block(), torch.randn(3, 4)
    c = fxjit.compile(m)
    for _ in range(3):
        c(x)
    seen = []
    handle = m.norm.register_forward_hook(lambda *_: seen.append(1))
    c(x)
    handle.remove()
    c(x)
    assert len(seen) == 1
    from torch.utils.flop_counter import FlopCounterMode
    with FlopCounterMode(display=False) as flops:
        c(x)
    assert flops.get_total_flops() == 2 * 3 * 4 * 4

    made = fxjit.compile(lambda x: x * torch.tensor(2.0).new_ones(1) + torch.ones(1))
    w = torch.ones(2, requires_grad=True, dtype=torch.float16)
    try:
        for dtype in (torch.float32, torch.float64, torch.float32):
            torch.set_default_dtype(dtype)
            for _ in range(3):
                assert made(w).dtype == dtype
    finally:
        torch.set_default_dtype(torch.float32)


def test_modules_whose_attributes_python_finds():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)

        def __getattr__(self, name):
            return nn.Tanh() if name == "act" else super().__getattr__(name)

    class Shadow(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(4))

    graph = fxjit.fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_module("act", (graph.call_module("a", (x,)),)))
    m, x = Odd(), torch.randn(3, 4, requires_grad=True)
    g = fxjit.fx.GraphModule(m, graph)
    assert torch.equal(g(x), torch.tanh(g.a(x)))

    graph = fxjit.fx.Graph()
    graph.output(graph.call_function(torch.mul, (graph.placeholder("x"), graph.get_attr("w"))))
    g = fxjit.fx.GraphModule(Shadow(), graph)
    assert torch.equal(g(x), x)
    g.__dict__["w"] = torch.full((4,), 3.0)  # what the instance itself has comes first
    assert torch.equal(g(x), x * 3)


def test_sets_are_watched(slow_calls):
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.names = {"a", "b"}

        def forward(self, x):
            return x * 2 if "a" in self.names else x + ("c" in self.names)

    m, x = Named(), torch.randn(3)
    c = fxjit.compile(m)
    for change in (lambda: None, lambda: m.names.remove("a"), lambda: m.names.add("c"), lambda: m.names.add("a"),
                   lambda: m.names.update(map(str, range(50)))):
        change()
        assert torch.equal(c(x), m(x))
        assert torch.equal(settle(slow_calls, c, x), m(x))


@pytest.mark.parametrize("kind", [collections.OrderedDict, lambda **k: collections.defaultdict(list, k)])
def test_containers_that_a_graph_does_not_have(kind):
    def f(x):
        return kind(a=x + 1, b=[x, None, kind(c=x * 2)])

    c, x = fxjit.compile(f), torch.randn(3)
    for grad in (False, True):
        with torch.set_grad_enabled(grad):
            for _ in range(3):
                got, wanted = c(x.requires_grad_(grad)), f(x)
                assert type(got) is type(wanted) is type(got["b"][2]) and list(got) == ["a", "b"]
                assert torch.equal(got["a"], wanted["a"]) and got["b"][0] is x
                assert torch.equal(got["b"][2]["c"], x * 2)


def test_compiled_again():
    m, x = Block().eval(), torch.randn(3, 4)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(fxjit.compile(fxjit.compile(m))(x), m(x))
    with pytest.raises(RuntimeError, match="strict"):
        fxjit.compile(fxjit.compile(lambda x: x.item()), strict=True)(x[0, 0])


def test_a_profiler_of_the_first_call_goes_on():
    def after():
        return 1

    c, profile = fxjit.compile(lambda x: x * 2 + 1), cProfile.Profile()
    profile.enable()
    try:
        c(torch.ones(2))
        after()
    finally:
        profile.disable()
    assert any(getattr(entry.code, "co_name", "") == "after" for entry in profile.getstats())
    assert c.explain().specialisations
