"""Proxies of the checked trace, and its error: what cannot be recorded raises, instead of passing silently."""

from __future__ import annotations

import operator

import torch

from . import fx
from .fx._known import InPlaceOperators


class CaptureError(Exception):
    """The program cannot be captured as a graph; the text says why. basis: what that rests on, where it is known."""

    def __init__(self, text, basis=None):
        super().__init__(text)
        self.basis = basis


class CheckedProxy(InPlaceOperators, fx.Proxy):
    """Stands for a tensor in the body of a composite: in-place operators stay in place, and there is no other attribute
    than a tensor's."""

    def __getattr__(self, name):
        if name.startswith("__") or not hasattr(torch.Tensor, name):
            raise AttributeError(f"'Tensor' object has no attribute '{name}'")
        return super().__getattr__(name)


class _NumberProxy(fx.Proxy):
    """Stands for an int or a float: arithmetic and use as an operand are recorded, anything else raises."""

    def __getattr__(self, name):
        number = type(self).number
        if name.startswith("__") or not hasattr(number, name):
            raise AttributeError(f"'{number.__name__}' object has no attribute '{name}'")
        raise CaptureError(f".{name} of a number that varies was asked for")


def _refuse(name):
    def method(self, *args, **kwargs):
        raise CaptureError(f"{name} of a number that varies was asked for")
    return method


for _name in "hash str repr format bool int float complex index round trunc floor ceil len iter call".split():
    setattr(_NumberProxy, f"__{_name}__", _refuse(f"__{_name}__"))


class FloatProxy(_NumberProxy):
    number = float
    __class__ = float  # for isinstance(); it is a Proxy all the same


class IntProxy(_NumberProxy):
    number = int
    __class__ = int


_PROXIES = {float: FloatProxy, int: IntProxy}
_ARITHMETIC = {operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
               operator.neg, operator.pos}


class NumberAware:
    """A tracer's part: nodes that are numbers get proxies of numbers, all others those of `tensor_proxy`.

    numbers: {node: float or int}
    """

    def proxy(self, node):
        kind = self.numbers.get(node) if self.numbers else None
        if kind is None and self.numbers and node.op != "placeholder":
            inputs = node.all_input_nodes
            if inputs and all(i in self.numbers for i in inputs):
                kind = self.numbers[node] = self._type_of(node)
        return _PROXIES[kind](node, self) if kind else self.tensor_proxy(node)

    def _type_of(self, node):
        if node.op != "call_function" or node.target not in _ARITHMETIC:
            raise CaptureError(f"{getattr(node.target, '__name__', node.target)} of a number that varies")
        types = {self.numbers.get(a, type(a)) if isinstance(a, fx.Node) else type(a) for a in node.args}
        if not types <= {int, float, bool}:
            raise CaptureError("arithmetic of a number that varies with something that is no int or float")
        return float if float in types or node.target is operator.truediv else int
