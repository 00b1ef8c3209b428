"""A trace replaces methods of torch's classes for its time; other threads must not notice."""

import threading

import pytest
import torch
from torch import nn

import fxjit


class Waits(nn.Module):
    """Its trace stops in the middle, until the other thread has done its part."""

    def __init__(self):
        super().__init__()
        self.a, self.w = nn.Linear(4, 4), nn.Parameter(torch.ones(4))
        self.inside, self.go_on = threading.Event(), threading.Event()

    def forward(self, x):
        y = self.a(x) * self.w
        self.inside.set()
        assert self.go_on.wait(60)
        return self.a(y) + self.w


@pytest.fixture
def tracing():
    """(a module that another thread is tracing, a function that lets it finish and gives the graph)"""
    m, made = Waits(), []
    thread = threading.Thread(target=lambda: made.append(fxjit.fx.symbolic_trace(m)))
    thread.start()
    assert m.inside.wait(60)

    def finish():
        m.go_on.set()
        thread.join(60)
        return made[0]
    yield m, finish
    finish()


def test_modules_are_called_meanwhile(tracing):
    m, finish = tracing
    other, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), torch.randn(2, 4)
    assert type(other(x)) is torch.Tensor and type(m.w) is nn.Parameter and type(m.a(x)) is torch.Tensor
    graph = finish()
    assert [n.op for n in graph.graph.nodes].count("call_module") == 2
    torch.testing.assert_close(graph(x), m(x))


def test_traces_take_turns(tracing):
    _, finish = tracing
    made, getattr_, call = [], nn.Module.__getattr__, nn.Module.__call__
    other = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    thread = threading.Thread(target=lambda: made.append(fxjit.fx.symbolic_trace(other)))
    thread.start()
    finish()
    thread.join(60)
    assert len(made[0].graph.nodes) == 4
    assert nn.Module.__getattr__ is not getattr_ and nn.Module.__call__ is not call
    assert nn.Module.__call__.__qualname__ == nn.Module._wrapped_call_impl.__qualname__
    assert type(other(torch.randn(2, 4))) is torch.Tensor
