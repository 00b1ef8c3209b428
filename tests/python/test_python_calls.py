"""Programs with callees that stay Python calls: compiled between them, in eager's order."""

import traceback

import pytest
import torch

import fxjit

CALLS = []


def noted(x):
    CALLS.append(float(x.sum()))
    return x * 2


def leaf(x, factor=3.0):
    return (x + 1) * factor


def failing(x):
    if float(x.sum()) > 100:
        raise LookupError("too large")
    return x


def reading(x):
    return x.sum().item()


fxjit.fx.wrap(noted)
fxjit.fx.wrap(leaf, leaf=True)
fxjit.fx.wrap(failing)
fxjit.fx.wrap(reading)


@pytest.fixture(autouse=True)
def no_grad():
    CALLS.clear()
    with torch.no_grad():
        yield


def same(ours, want):
    torch.testing.assert_close(ours, want)
    assert ours.stride() == want.stride()


def compare(g, *calls):
    compiled = fxjit.compile(g)
    for args in calls:
        given = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
        CALLS.clear()
        want = g(*given)
        expected, eagers = list(CALLS), given
        given = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
        CALLS.clear()
        same(compiled(*given), want)
        assert CALLS == pytest.approx(expected)
        for a, b in zip(given, eagers):
            if isinstance(a, torch.Tensor):
                same(a, b)
    return compiled


def inputs(*sizes):
    return [(torch.randn(n, 3),) for n in sizes]


def test_calls_keep_their_order_and_the_rest_is_compiled():
    def g(x):
        y = noted((x * 2).relu() + 1)
        z = noted((y - x).sigmoid() * y)
        return (z + y).tanh() * x
    compiled = compare(g, *inputs(4, 4, 5, 6))
    report = compiled.explain()
    assert len(report.kernels) == 3 and report.generic_calls == 0
    assert [f["target"] for f in report.fallbacks] == ["Python call", "Python call"]
    assert "noted" in report.fallbacks[0]["reason"]
    assert all(s["hits"] == 3 for s in report.specialisations)


def test_leaves_of_wrap():
    compiled = compare(lambda x: leaf(x.exp() * 2, factor=0.5).relu() + x, *inputs(4, 4, 5))
    assert len(compiled.explain().kernels) == 2


def test_host_values_between_parts():
    compare(lambda x: (x * 2).relu() * reading(x + 1) + x.size(0), *inputs(4, 4, 5, 6))
    compare(lambda x: noted(x.chunk(2)[0] + 1) + x.chunk(2)[1], *inputs(4, 4, 6))


def test_writes_before_and_behind_a_call_are_seen():
    def g(x):
        x.mul_(2)
        y = noted(x)
        x.add_(1)
        z = noted(x)
        y.add_(x)
        return (y * z).relu()
    compare(g, *inputs(4, 4, 5))


def test_a_result_of_a_call_may_be_its_argument():
    def g(x):
        y = failing(x + 1)
        y.mul_(3)
        return y - x
    compare(g, *inputs(4, 4, 5))


def test_errors_keep_class_text_and_traceback():
    compiled = fxjit.compile(lambda x: failing(x * 2).relu() + 1)
    for _ in range(3):
        compiled(torch.ones(4))
    with pytest.raises(LookupError, match="too large") as caught:
        compiled(torch.full((4,), 100.0))
    assert "failing" in [f.name for f in traceback.extract_tb(caught.tb)]
    same(compiled(torch.ones(4)), torch.full((4,), 3.0))


def test_modules_with_hooks_are_called():
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
            self.scale = torch.nn.Parameter(torch.ones(3))

        def forward(self, x):
            return self.second(self.first(x * self.scale).relu() * 2).sigmoid() * self.scale
    m, seen = M(), []
    m.first.register_forward_hook(lambda module, args, out: seen.append(out.shape) or out + 1)
    compiled = fxjit.compile(m)
    for n in (4, 4, 5):
        x = torch.randn(n, 3)
        same(compiled(x), m(x))
    assert len(seen) == 6
    m.scale = torch.nn.Parameter(torch.full((3,), 5.0))  # attributes are read at each call
    m.second.weight.mul_(2)
    same(compiled(x), m(x))
    assert any("kernel" in str(k) or k for k in compiled.explain().kernels)


def test_numbers_pass_through_parts():
    compiled = compare(lambda x, s: noted(x * s).relu() * s + 1,
                       *[(torch.randn(4, 3), s) for s in (1.5, 2.5, 3.5, 4.5, 5.5)])
    assert compiled.explain().generic_calls == 0


def test_strict_refuses():
    compiled = fxjit.compile(lambda x: noted(x * 2) + 1, strict=True)
    with pytest.raises(RuntimeError, match="Python function noted"):
        compiled(torch.ones(3))


def test_grad_mode_takes_the_generic_form():
    compiled = fxjit.compile(lambda x: noted(x * 2).relu() + 1)
    with torch.enable_grad(), pytest.warns(UserWarning, match="training is not compiled"):
        x = torch.ones(3, requires_grad=True)
        compiled(x).sum().backward()
    assert x.grad.eq(4).all()
