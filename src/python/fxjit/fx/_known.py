"""Proxies that know what they stand for: a trace with example inputs decides on shapes, dtypes and devices."""

import builtins
import contextlib
import math
import operator
import sys
import warnings

import torch
from torch.fx.proxy import TraceError
from torch.overrides import TorchFunctionMode

from .._C import Attribute, Proxy, find_proxy
from . import _helpers
from ._frames import user_frame
from ._guard_maker import GuardMaker, shape_base
from ._values import METADATA, Unknown, Values

_DATA = (
    ": the answer is in the tensor's data, which a graph does not know. Compute both ways and choose with torch.where, "
    "or keep the function that decides as one call with wrap()"
)
ITEM_FUNCTIONS = {torch.Tensor.__getitem__: operator.getitem, torch.Tensor.__setitem__: operator.setitem}
SHAPE_TEXT = "<shape of "  # begins what a shape of a traced tensor is as text
_HOST_MODULES = ("_operator", "builtins", "math")


# Modules whose result is a pair, whatever their arguments.
_PAIRS = {torch.nn.MultiheadAttention, torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN, torch.nn.LSTMCell}


def _modes():
    """What torch's operators also depend on, and a program may switch."""
    return {
        "grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "autocast on the CPU": torch.is_autocast_enabled("cpu"),
        "autocast on CUDA": torch.is_autocast_enabled("cuda"),
    }


class Knowledge:
    """Decides for the proxies of one trace, and notes each decision as a guard."""

    def __init__(self, tracer):
        self.tracer = tracer
        self.values = Values(tracer)
        self.guards = {}  # in the order in which they were noted, each once
        self._maker = GuardMaker(self.values)
        self.vague_texts = False  # a shape was made into a text that does not say it
        self._host = set()
        self._tentative = None, ()  # what asked for an integer last, and the guards that this brought
        self._modes = _modes()

    # ---- proxies ----

    def proxy(self, node):
        return HostProxy(node, self.tracer) if self._is_host(node) else KnownProxy(node, self.tracer)

    def proxy_of_a_mode(self, node):
        """proxy, with a warning at the first node of a `with torch.no_grad():` or the like, which graphs cannot say."""
        proxy = self.proxy(node)
        if self._modes is not None and node.op != "placeholder" and (modes := _modes()) != self._modes:
            changed = [f"{name} {'on' if on else 'off'}" for name, on in modes.items() if on != self._modes[name]]
            self._modes = None
            text = f"is recorded with {' and '.join(changed)}, which the graph does not say{_helpers.where(proxy)}"
            warnings.warn(f"fxjit.fx: a value {text}; it runs in the mode of its caller", stacklevel=2)
        return proxy

    def _is_host(self, node):
        """Whether the node's value is no tensor, as far as its target and arguments tell."""
        if node.op == "placeholder":
            host = node in self.values.examples and isinstance(self.values.examples[node], (bool, int, float, str))
        elif node.op == "call_method":
            host = node.target in METADATA or self._all_host(node)
        elif node.op == "call_function":
            host = node.target is getattr and node.args[1] in METADATA
            host = host or (getattr(node.target, "__module__", None) in _HOST_MODULES and self._all_host(node))
            host = host or node.target is builtins.len
        else:
            host = False
        if host:
            self._host.add(node)
        return host

    def is_host(self, node):
        """Whether the node is known to be no tensor by how it was made: a size, a dtype, a comparison of them."""
        return node in self._host

    def _all_host(self, node):
        inputs = node.all_input_nodes
        return bool(inputs) and all(i in self._host for i in inputs)

    # ---- decisions ----

    def known(self, proxy):
        """The value, or an Unknown."""
        return self.values.of(proxy.node)

    def value(self, proxy, what):
        """The value of a proxy; TraceError where `what` asks for one that is not known while tracing."""
        value = self.values.of(proxy.node)
        if isinstance(value, Unknown):
            raise TraceError(f"{what} of a traced value is not known while tracing" + _helpers.where(proxy)
                             + f": {value.reason}")
        return value

    def _note(self, guards):
        guards = [g for g in guards if g.reads_inputs()]
        if guards and (frame := user_frame()) is not None:
            for guard in guards:
                guard.place = (frame.f_code.co_filename, frame.f_lineno)
        self.guards.update((guard, None) for guard in guards)

    def note_identity(self, node, value):
        """Of an input, whose value the program is given as it is."""
        self.guards.update((guard, None) for guard in self._maker.identity(node, value))

    def described_guards(self):
        """The guards, each with what it was decided upon."""
        if self.guards:
            examples = [self.values.examples.get(n) for n in self.tracer.graph.find_nodes(op="placeholder")]
            for guard in self.guards:
                guard.traced = guard.subjects(examples, self.tracer.root)
        return list(self.guards)

    def to_bool(self, proxy):
        value = self.values.of(proxy.node)
        if isinstance(value, (Unknown, torch.Tensor)):
            reason = f": {value.reason}" if isinstance(value, Unknown) else _DATA
            raise TraceError("symbolically traced variables cannot be used as inputs to control flow"
                             + _helpers.where(proxy) + reason)
        answer = bool(value)
        self._note(self._maker.truth(proxy.node, answer))
        return answer

    def constant(self, proxy, what):
        """The value of a proxy that is no tensor, from now on a constant of the graph."""
        value = self.value(proxy, what)
        if isinstance(value, torch.Tensor):
            raise TraceError(f"{what} of a traced tensor" + _helpers.where(proxy) + _DATA)
        self._note(self._maker.value(proxy.node, value))
        return value

    def index(self, proxy, frame):
        """The value for who wants an integer. torch's argument parsers do so too, before they record the call with the
        proxy: forget_index takes such guards back."""
        before = len(self.guards)
        value = self.constant(proxy, "the integer value")
        place = (id(frame), frame.f_lasti)
        added = tuple(self.guards)[before:]
        self._tentative = place, (self._tentative[1] if self._tentative[0] == place else ()) + added
        return operator.index(value)

    def forget_index(self, frame):
        if self._tentative[0] == (id(frame), frame.f_lasti):
            for guard in self._tentative[1]:
                self.guards.pop(guard, None)
        self._tentative = None, ()

    def length(self, proxy):
        value = self.value(proxy, "len()")
        if not isinstance(value, torch.Tensor):
            n = len(value)
            self._note(self._maker.length(proxy.node, n))
            return n
        if value.dim() == 0:
            raise TypeError("len() of a 0-d tensor" + _helpers.where(proxy))
        self._note(self._maker.rank(proxy.node))
        self._note(self._maker.size(proxy.node, 0))
        return value.size(0)

    def items(self, proxy):
        """What iteration over a proxy gives; None if its value is not known."""
        value = self.values.of(proxy.node)
        if isinstance(value, Unknown):
            return None
        if isinstance(value, torch.Tensor) and value.dim() == 0:
            raise TypeError("iteration over a 0-d tensor" + _helpers.where(proxy))
        if isinstance(value, dict):
            return self.keys(proxy)
        return [proxy[i] for i in range(self.length(proxy))]

    def is_tuple_of(self, proxy, count):
        """Whether it is known by its module alone that the value is a tuple of `count`: nothing has to be found then."""
        node = proxy.node
        return node.op == "call_module" and count == 2 and type(self.values.module(node)) in _PAIRS

    def keys(self, proxy):
        """The keys of a dict, as constants; None if the value is no dict that is known."""
        value = self.values.of(proxy.node)
        if not isinstance(value, dict):
            return None
        self._note(self._maker.keys(proxy.node, tuple(value)))
        return list(value)


# ---- proxies ----

class _Known:
    def __getattr__(self, name):
        """An attribute that the traced value has; AttributeError where it has none, as the value itself would say."""
        if name.startswith("__") or not hasattr(torch.Tensor, name):
            value = self.tracer.knowledge.known(self)
            if name.startswith("__") or not (isinstance(value, Unknown) or hasattr(value, name)):
                kind = "Tensor" if isinstance(value, torch.Tensor) else type(value).__name__
                raise AttributeError(f"'{kind}' object has no attribute '{name}'")
        host = name in METADATA and not callable(getattr(torch.Tensor, name, None))
        return HostAttribute(self, name) if host else KnownAttribute(self, name)

    def __len__(self):
        return self.tracer.knowledge.length(self)

    def __int__(self):
        return int(self.tracer.knowledge.constant(self, "int()"))

    def __float__(self):
        return float(self.tracer.knowledge.constant(self, "float()"))

    def __complex__(self):
        return complex(self.tracer.knowledge.constant(self, "complex()"))

    def __setitem__(self, index, value):
        self.tracer.create_proxy("call_function", operator.setitem, (self, index, value), {})

    def __delitem__(self, index):
        value = self.tracer.knowledge.known(self)
        kind = "Tensor" if isinstance(value, (Unknown, torch.Tensor)) else type(value).__name__
        raise TypeError(f"'{kind}' object does not support item deletion" + _helpers.where(self))

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        proxy = find_proxy((args, kwargs))
        if proxy is not None:
            proxy.tracer.knowledge.forget_index(sys._getframe(1))
        return Proxy.__torch_function__(function, types, args, kwargs)


class InPlaceOperators:
    """In-place operators are recorded as such: they change the tensor, as they do in eager mode."""


def _add_in_place_operators():
    for name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split():
        function = getattr(operator, "i" + name)

        def method(self, other, function=function):
            return self.tracer.create_proxy("call_function", function, (self, other), {})

        setattr(InPlaceOperators, f"__i{name}__", method)


_add_in_place_operators()


class _Host:
    """A value that is no tensor: what Python asks of numbers and cannot be recorded makes it a constant."""

    def __index__(self):
        return self.tracer.knowledge.index(self, sys._getframe(1))

    def __format__(self, spec):
        """Numbers become constants. A whole shape is mostly formatted for a message that nobody will read: finding it would
        cost much and tie the graph to it, so the text says of what it is the shape."""
        if not spec and (tensor := self._shape_of()) is not None:
            self.tracer.knowledge.vague_texts = True
            return f"{SHAPE_TEXT}{tensor.name}>"
        return format(self.tracer.knowledge.constant(self, "the text"), spec)

    def __hash__(self):
        value = self.tracer.knowledge.known(self)
        if isinstance(value, Unknown):
            return object.__hash__(self)
        return hash(self.tracer.knowledge.constant(self, "hash()"))

    def __round__(self, *digits):
        return self.tracer.create_proxy("call_function", builtins.round, (self, *digits), {})

    def __trunc__(self):
        return self.tracer.create_proxy("call_function", math.trunc, (self,), {})

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self


class KnownProxy(_Known, InPlaceOperators, Proxy):
    """A Proxy of a trace with example inputs."""


class KnownAttribute(_Known, InPlaceOperators, Attribute):
    """An attribute of a proxy: recorded when it is used as a value, or called."""


class HostProxy(_Host, _Known, Proxy):
    """A size, a number, a dtype, a shape."""

    def _shape_of(self):
        return shape_base(self.node)


class HostAttribute(_Host, _Known, Attribute):
    """x.shape, x.dtype, x.ndim and what else says something about a tensor."""

    def _shape_of(self):
        return self.root.node if self.attr == "shape" else None


# ---- what holds for the duration of a trace ----

def _known_isinstance(isinstance):  # noqa: A002 - it stands for the builtin
    def known_isinstance(obj, kind):
        """A proxy is of the type of what it stands for, unless somebody asks whether it is a proxy."""
        if not isinstance(obj, _Known) or _asks_for_proxies(kind):
            return isinstance(obj, kind) or (isinstance(obj, _Known) and _names_torch_proxy(kind))
        knowledge = obj.tracer.knowledge
        example = knowledge.values.examples.get(obj.node)
        return isinstance(knowledge.value(obj, "the type") if example is None else example, kind)

    return known_isinstance


def _asks_for_proxies(kind):
    kinds = kind if type(kind) is tuple else (kind,)
    return any(issubclass(k, (Proxy, _Known, torch.fx.Proxy)) for k in kinds if type(k) is type)


def _names_torch_proxy(kind):
    """Libraries ask for torch.fx's Proxy to know that they are traced."""
    return torch.fx.Proxy in (kind if type(kind) is tuple else (kind,))


class RecordCalls(TorchFunctionMode):
    """Sees the calls of torch functions: one that has an integer proxy among its arguments is recorded with it, where
    torch itself would have asked for the integer."""

    def __init__(self, tracer):
        super().__init__()
        self.tracer = tracer

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        proxy = find_proxy((args, kwargs))
        if proxy is None:
            return self.tracer._call_without_proxies(function, args, kwargs)
        if not isinstance(proxy, _Known):  # of a class of the user's: it is asked itself
            return function(*args, **kwargs)
        self.tracer.knowledge.forget_index(sys._getframe(1))
        if function in ITEM_FUNCTIONS:  # of a tensor, with proxies in the index
            return proxy.tracer.create_proxy("call_function", ITEM_FUNCTIONS[function], args, kwargs)
        return Proxy.__torch_function__(function, types, args, kwargs)


@contextlib.contextmanager
def known_values(tracer):
    """isinstance() and torch functions know the proxies of `tracer`, if it has example inputs."""
    if tracer.knowledge is None:
        yield
        return
    original = builtins.isinstance
    builtins.isinstance = _known_isinstance(original)
    try:
        with RecordCalls(tracer):
            yield
    finally:
        builtins.isinstance = original
