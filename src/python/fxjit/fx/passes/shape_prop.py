"""Shapes, dtypes and layouts of all values of a graph, found by running it."""

import traceback

import torch
from torch.fx.passes.shape_prop import TensorMetadata, _extract_tensor_metadata

from ..interpreter import Interpreter
from ..node import map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class ShapeProp(Interpreter):
    """Runs a module and notes in node.meta what each node's value is: "tensor_meta" (TensorMetadata, in the structure
    of the value) where there are tensors, and "type".

    fake_mode: runs without data, on fake tensors of this mode
    """

    def __init__(self, gm, fake_mode=None):
        super().__init__(gm)
        self.fake_mode = fake_mode
        self.fake_module = None
        self.real_module = self.module
        if fake_mode is not None:
            from torch._dynamo.utils import deepcopy_to_fake_tensor

            self.fake_module = deepcopy_to_fake_tensor(self.module, fake_mode)

    def run_node(self, n):
        try:
            if self.fake_module is None:
                result = super().run_node(n)
            else:
                self.module = self.fake_module
                try:
                    with self.fake_mode:
                        result = super().run_node(n)
                finally:
                    self.module = self.real_module
        except Exception as e:
            traceback.print_exc()
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from e
        found = False

        def extract(value):
            nonlocal found
            if isinstance(value, torch.Tensor):
                found = True
                return _extract_tensor_metadata(value)
            return value

        meta = map_aggregate(result, extract)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args):
        """Runs the module on these arguments; returns its result."""
        if self.fake_mode is not None:
            args = [self.fake_mode.from_tensor(a) if isinstance(a, torch.Tensor) else a for a in args]
        return super().run(*args)
