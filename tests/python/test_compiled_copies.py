"""Copies and pickles of compiled callables, and compiled modules as children of others."""

import copy
import io
import pickle

import pytest
import torch

import fxjit


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.register_buffer("scale", torch.full((4,), 0.5))

    def forward(self, x):
        return torch.relu(self.linear(x)) * self.scale


@fxjit.compile
def decorated(x):
    return x * 2 + 1


def plain(x):
    return x * 3 - 1


X = torch.randn(2, 4)


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


def target_of(compiled):
    return fxjit._C.companion(compiled).target


def options_of(compiled):
    return fxjit._C.companion(compiled).options


def pickled(compiled):
    return pickle.loads(pickle.dumps(compiled))


def saved(compiled):
    file = io.BytesIO()
    torch.save(compiled, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def is_compiled(f):
    f(X)
    f(X)
    return len(f.explain().specialisations) == 1


@pytest.mark.parametrize("way", [copy.deepcopy, pickled, saved], ids=["deepcopy", "pickle", "torch.save"])
def test_a_copy_of_a_module_shares_nothing(way):
    compiled = fxjit.compile(Block(), max_specialisations=3)
    compiled(X)
    new = way(compiled)
    assert type(new) is type(compiled) and options_of(new) == options_of(compiled) and target_of(new) is not target_of(compiled)
    torch.testing.assert_close(new(X), compiled(X))
    assert is_compiled(new)
    before = compiled(X)
    new.linear.weight.zero_()
    new.linear.bias.fill_(1)
    assert torch.equal(compiled(X), before) and torch.equal(new(X), torch.full((2, 4), 0.5))


def test_a_shallow_copy_shares_the_module_and_no_code():
    compiled = fxjit.compile(Block())
    new = copy.copy(compiled)
    assert new is not compiled and target_of(new) is target_of(compiled)
    assert is_compiled(new) and not compiled.explain().specialisations
    compiled.linear.bias.fill_(2)
    torch.testing.assert_close(new(X), compiled(X))


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickled], ids=["copy", "deepcopy", "pickle"])
def test_functions(way):
    assert way(decorated) is decorated
    other = way(fxjit.compile(plain))
    assert target_of(other) is plain and torch.equal(other(X), plain(X)) and is_compiled(other)


def test_a_graph_module_keeps_its_guards():
    gm = fxjit.fx.symbolic_trace(lambda x: x + 1 if x.size(0) == 2 else x, example_inputs=(X,))
    for way in (copy.copy, copy.deepcopy, pickled):
        new = way(fxjit.compile(gm))
        assert torch.equal(new(X), X + 1)
        with pytest.raises(fxjit.fx.GuardError):
            new(torch.ones(3, 4))


def test_what_cannot_be_pickled_says_so():
    compiled = fxjit.compile(lambda x: x + 1)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(compiled)
    assert torch.equal(copy.deepcopy(compiled)(X), X + 1)


class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.block = fxjit.compile(Block())
        self.last = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.last(self.block(x))


def test_a_compiled_module_is_a_child_like_any_other():
    compiled = fxjit.compile(Block())
    assert isinstance(compiled, Block) and isinstance(compiled, torch.nn.Module)
    assert not isinstance(fxjit.compile(plain), torch.nn.Module)
    model = torch.nn.Sequential(compiled, torch.nn.Linear(4, 2))
    assert model[0] is compiled
    expected = model[1](target_of(compiled)(X))
    for _ in range(3):
        torch.testing.assert_close(model(X), expected)
    assert len(compiled.explain().specialisations) == 1
    assert list(model.state_dict()) == ["0.scale", "0.linear.weight", "0.linear.bias", "1.weight", "1.bias"]
    assert len(list(model.parameters())) == 4
    model.eval()
    assert not compiled.training and not compiled.linear.training
    model.double()
    assert model(X.double()).dtype == torch.float64
    assert "fxjit.compile(Block(" in repr(model)


def test_as_an_attribute_of_a_module():
    outer = Outer()
    names = [name for name, _ in outer.named_parameters()]
    assert names == ["block.linear.weight", "block.linear.bias", "last.weight", "last.bias"]
    plain_outer = Outer()
    plain_outer.load_state_dict(outer.state_dict())
    for f in (outer, copy.deepcopy(outer), pickled(outer), fxjit.compile(outer), plain_outer):
        for _ in range(3):
            torch.testing.assert_close(f(X), outer.last(target_of(outer.block)(X)))
    new = copy.deepcopy(outer)
    assert type(new.block) is type(outer.block) and target_of(new.block) is not target_of(outer.block)
    new.block.linear.weight.zero_()
    assert not torch.equal(outer.block.linear.weight, new.block.linear.weight)
    compiled = fxjit.compile(outer)
    assert is_compiled(compiled), compiled.explain()


def test_traced_through():
    outer = Outer()
    for fx in (torch.fx, fxjit.fx):
        gm = fx.symbolic_trace(outer)
        assert [n.target for n in gm.graph.nodes if n.op == "call_module"] == ["block.linear", "last"]
        torch.testing.assert_close(gm(X), outer(X))
