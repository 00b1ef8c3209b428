"""Runs one of these programs; with FXJIT_DUMP=graph its typed graph goes to stderr after each pass."""

import sys

import torch

import fxjit
from fxjit import fx

F = torch.nn.functional


def softmax(x, y):
    return F.softmax(x * 0.125 + y, -1)


def mutation(x, y):
    x.add_(y)
    x.mul_(2)
    return x, x.amax(-1)


def leaves(x, y):
    h = torch.tanh(x) * y
    return torch.cumsum(h, 0) + x, h.t()


name = sys.argv[1]
compiled = fxjit.compile(fx.symbolic_trace(globals()[name]), dump="graph")
with torch.no_grad():
    compiled(torch.ones(6, 5), torch.ones(6, 5))
