"""The generic form of a program with two composites, three call sites."""

import torch

from fxjit import _C, fx


@fx.wrap
def sigmoid_lowp(x):
    return x.float().sigmoid().half()


@fx.wrap
def add_lowp(x, y):
    return (x.float() + y.float()).half()


class Foo(torch.nn.Module):
    def forward(self, x, y):
        x = sigmoid_lowp(x)
        y = sigmoid_lowp(y)
        return add_lowp(x, y)


print(_C.generic_code(fx.symbolic_trace(Foo()).graph))
