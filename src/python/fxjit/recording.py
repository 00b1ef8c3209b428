"""The recorded call: an ordinary eager run, node by node, of which the recorder sees each operator."""

from __future__ import annotations

import operator
import types

import torch
from torch.utils import _pytree as pytree

from . import _C, fx
from .callees import is_torch_function
from .fx._run import SnapshotInterpreter
from .leaves import flatten, is_plain_tensor
from .segments import why_opaque

# torch.nn modules whose forward hands its input to operators without looking at sizes.
_SIZE_BLIND_MODULES = {getattr(torch.nn, n) for n in (
    "Linear Identity ReLU ReLU6 GELU SiLU Sigmoid Tanh Hardswish Hardsigmoid Hardtanh ELU LeakyReLU Softplus Mish "
    "LayerNorm RMSNorm Dropout Conv1d Conv2d Conv3d BatchNorm1d BatchNorm2d BatchNorm3d Embedding MaxPool1d MaxPool2d "
    "AvgPool1d AvgPool2d AdaptiveAvgPool1d AdaptiveAvgPool2d Flatten Softmax LogSoftmax GroupNorm").split()}
_SIZE_BLIND_FUNCTIONS = {getattr(torch.nn.functional, n) for n in (
    "relu relu6 gelu silu sigmoid tanh hardswish hardsigmoid hardtanh elu leaky_relu softplus mish layer_norm rms_norm "
    "dropout softmax log_softmax linear conv1d conv2d conv3d embedding").split()}


# Of these, those that hand their numbers on without a look at them.
_NUMBER_BLIND_FUNCTIONS = {torch.nn.functional.leaky_relu, torch.nn.functional.elu}

_FLOAT_ARITHMETIC = {operator.add, operator.sub, operator.mul, operator.truediv, operator.neg}


def is_tensors(value) -> bool:
    """A tensor, or a tuple or list of nothing else: chunk, unbind, max."""
    if isinstance(value, (tuple, list)):
        return len(value) > 0 and all(isinstance(x, torch.Tensor) for x in value)
    return isinstance(value, torch.Tensor)


def _plain(args):
    """Arguments with slices as tuples."""
    return fx.node.map_aggregate(args, lambda a: (a.start, a.stop, a.step) if isinstance(a, slice) else a)


class _Recorder(SnapshotInterpreter):
    """Runs a captured program with one scope of the recorder per node."""

    def __init__(self, captured, recording):
        super().__init__(captured.root, captured.graph)
        self.recording = recording
        self.host_values: set = set()  # nodes whose value is neither tensors nor a number below
        self.numbers = {n: i for i, n in enumerate(captured.numbers)}  # nodes that vary, with the recording's index
        self.kinds: dict = {}  # of those: float or int

    def run_node(self, n):
        self.attempt(lambda: self.recording.begin_scope(n.name, self.looks_at_sizes(n)))
        try:
            result = super().run_node(n)
        finally:
            self.recording.end_scope()
        self.attempt(lambda: self.note_result(n, result))
        return result

    def attempt(self, take_note):
        """The program runs on, whatever becomes of our notes on it."""
        try:
            take_note()
        except Exception as e:  # noqa: BLE001
            self.recording.refuse(f"internal error: {type(e).__name__}: {e}")

    def note_result(self, n, result):
        if n.op == "placeholder" and n in self.numbers:
            self.kinds[n] = type(result)
        used = [i for i in n.all_input_nodes if i in self.numbers] if self.numbers else []
        if used and not self.derive(n, result):
            self.recording.use_numbers([self.numbers[i] for i in used], *self.literals_of(n))
        if n.op not in ("output", "placeholder") and n not in self.numbers and not is_tensors(result):
            self.host_values.add(n)

    def derive(self, n, result) -> bool:
        """Float arithmetic on numbers is computed anew at each call."""
        if n.op != "call_function" or n.target not in _FLOAT_ARITHMETIC or n.kwargs or type(result) is not float:
            return False
        kinds = [self.kinds.get(a) if isinstance(a, fx.Node) else type(a) for a in n.args]
        if float not in kinds or not all(kind in (int, float) for kind in kinds):
            return False
        self.kinds[n] = float
        operands = [self.numbers[a] if isinstance(a, fx.Node) else float(a) for a in n.args]
        self.numbers[n] = self.recording.derive_number(n.target.__name__, operands, result)
        return True

    def literals_of(self, n):
        """(ints and floats among the arguments, whether the callee hands what it is given to an operator unseen)"""
        if n.op == "call_method":
            binds = not isinstance(getattr(torch.Tensor, n.target, None), types.FunctionType)
        else:
            python = isinstance(n.target, types.FunctionType)
            binds = (n.op == "call_function" and is_torch_function(n.target)
                     and (not python or n.target in _NUMBER_BLIND_FUNCTIONS))
        literals = [x for x in pytree.tree_leaves((_plain(n.args), _plain(n.kwargs))) if type(x) in (int, float)]
        exact = all(type(x) is float or abs(x) < 2**53 for x in literals)
        binds = binds and exact and not any(i in self.host_values for i in n.all_input_nodes)
        return ([float(x) for x in literals] if binds else []), binds

    def looks_at_sizes(self, n):
        if n.op in ("placeholder", "get_attr"):
            return False
        if any(i in self.host_values for i in n.all_input_nodes):
            return True  # a result of the program among them: it is a constant of the record
        if n.op == "output":
            return False
        if why := why_opaque(self.module, n):
            self.recording.refuse(why)
        if n.op == "call_module":
            return type(self.module.get_submodule(n.target)) not in _SIZE_BLIND_MODULES
        if n.op == "call_method":
            return isinstance(getattr(torch.Tensor, n.target, None), types.FunctionType)
        return isinstance(n.target, types.FunctionType) and n.target not in _SIZE_BLIND_FUNCTIONS


def record(variant, inputs, numbers, values):
    """The recorded call: an ordinary eager run, whose record is compiled. values: one per placeholder."""
    recording = _C.Recording(variant.function, inputs, numbers)
    try:
        result = _Recorder(variant.captured, recording).run(*values, enable_io_processing=False)
    except BaseException:
        recording.refuse("the call raised an exception")
        recording.finish([], _C.STRUCTURE_TUPLE, None)
        raise
    try:
        result = variant.captured.result(result)
        outputs, kind, builder = structure_of(result)
    except Exception as e:  # noqa: BLE001 - what pytree makes of a container of the user's
        recording.refuse(f"the result cannot be taken apart: {type(e).__name__}: {e}")
        outputs, kind, builder = [], _C.STRUCTURE_TUPLE, None
    recording.finish(outputs, kind, builder)
    return result


def structure_of(result):
    """(tensors, kind, builder): how the result is made of its tensors; other leaves are constants of the builder."""
    if is_plain_tensor(result):
        return [result], _C.STRUCTURE_SINGLE, None
    if type(result) in (tuple, list) and all(is_plain_tensor(x) for x in result):
        return list(result), _C.STRUCTURE_TUPLE if type(result) is tuple else _C.STRUCTURE_LIST, None
    leaves, spec = flatten(result)
    tensors = [x for x in leaves if isinstance(x, torch.Tensor)]
    constants = [None if isinstance(x, torch.Tensor) else x for x in leaves]
    places = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]

    def build(values):
        filled = list(constants)
        for i, v in zip(places, values):
            filled[i] = v
        return pytree.tree_unflatten(filled, spec)
    return tensors, _C.STRUCTURE_BUILT, build
