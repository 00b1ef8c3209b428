"""Fake tensors for all values of a graph: shapes, strides, dtypes and aliases without data."""

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import py_sym_types, snapshot_fake

from ..._C import map_aggregate
from ..interpreter import Interpreter

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """FakeTensorProp(gm, mode=None).propagate(*args): runs on fake tensors and notes each node's value, in its
    structure, in node.meta["val"].

    mode: the FakeTensorMode; a fresh one by default. Arguments are converted to fakes of it; where attributes are real
    tensors it has to be one with allow_non_fake_inputs.
    """

    def __init__(self, module, mode=None):
        super().__init__(module)
        self._mode = FakeTensorMode() if mode is None else mode
        self._mode.epoch += 1
        self._mode.reset_nt_tensor_id_counter()

    def run_node(self, n):
        from torch.fx.experimental.symbolic_shapes import compute_unbacked_bindings, rebind_unbacked

        result = super().run_node(n)
        shape_env = self._mode.shape_env
        rebind_unbacked(shape_env, n, result)
        meta = map_aggregate(result, self._describe)
        if meta is not None:
            n.meta["val"] = meta
            if shape_env is not None and (bindings := compute_unbacked_bindings(shape_env, result)):
                n.meta["unbacked_bindings"] = bindings
        return result

    def _describe(self, value):
        if isinstance(value, FakeTensor):
            return snapshot_fake(value)
        if isinstance(value, torch.Tensor):
            return snapshot_fake(self._mode.from_tensor(value, static_shapes=True))
        return value if isinstance(value, py_sym_types) else None

    def propagate(self, *args):
        """Runs on these arguments, converted to fakes; returns the fake result."""
        return self.propagate_dont_convert_inputs(
            *(self._mode.from_tensor(a) if isinstance(a, torch.Tensor) else a for a in args)
        )

    def propagate_dont_convert_inputs(self, *args):
        """The same with arguments that are fakes of the mode."""
        with self._mode:
            return super().run(*args)
