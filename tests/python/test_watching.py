"""How often a compiled call goes through Python to compare what its trace rests on."""

import sys

import pytest
import torch

import fxjit
from fxjit.companion import Companion

G = {"s": 1.0}
L = [1.0]


class Affine(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.factor, self.options = torch.nn.Linear(4, 4), 2.0, {"bias": 1.0}

    def forward(self, x):
        return self.linear(x) * self.factor + self.options["bias"]


def scaled_by_globals(x):
    return x * G["s"] + len(L)


WATCHED = [
    (scaled_by_globals, lambda f: G.update(s=G["s"] + 1)),
    (scaled_by_globals, lambda f: L.append(1.0)),
    (Affine(), lambda m: m.options.update(bias=5.0)),
    (Affine(), lambda m: setattr(m, "factor", 3.0)),
    (Affine(), lambda m: m.linear.weight.mul_(2.0)),
]


@pytest.mark.parametrize(("program", "change"), WATCHED)
def test_state_is_compared_in_python_only_after_a_change(monkeypatch, program, change):
    checks, recheck = [], Companion.recheck
    monkeypatch.setattr(Companion, "recheck", lambda self: checks.append(1) or recheck(self))
    monkeypatch.setitem(G, "s", 1.0)
    compiled, x = fxjit.compile(program), torch.randn(3, 4)
    # From CPython 3.13 on a class gets a thousand versions, and traces before this test change torch.nn.Module.
    may_lack_versions = sys.version_info >= (3, 13) and isinstance(program, torch.nn.Module)
    with torch.no_grad():
        for step in (lambda _: None, change):
            step(program)
            for _ in range(3):
                torch.testing.assert_close(compiled(x), program(x))
            checks.clear()
            for _ in range(10):
                torch.testing.assert_close(compiled(x), program(x))
            assert not checks or may_lack_versions
    del L[1:]


@torch.no_grad()
def test_watching_leaves_an_objects_attributes_in_order():
    module = Affine()
    before = list(vars(module).items())
    for _ in vars(module):  # no change that iteration could trip over
        fxjit.compile(module)(torch.ones(3, 4))
    assert [(k, id(v)) for k, v in vars(module).items()] == [(k, id(v)) for k, v in before]
