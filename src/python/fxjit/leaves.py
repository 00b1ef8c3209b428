"""What the arguments of a call consist of: plain tensors, and constants of simple immutable types."""

from __future__ import annotations

import torch
from torch.utils import _pytree as pytree

CONSTANT_TYPES = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.layout,
                  torch.memory_format, torch.Size, type(Ellipsis))


def is_plain_tensor(x) -> bool:
    """A Tensor or Parameter that is no subclass and has sizes (a nested one has none)."""
    return (type(x) is torch.Tensor or type(x) is torch.nn.Parameter) and not x.is_nested


def flatten(value):
    """(leaves, structure). A torch.Size is a leaf: pytree would put it together again as a tuple."""
    return pytree.tree_flatten(value, is_leaf=lambda v: type(v) is torch.Size)


def constant_key(value):
    """Equal keys mean interchangeable constants: 1, True and 1.0 differ, so do 0.0 and -0.0; a NaN equals itself."""
    if isinstance(value, float):
        return (float, value.hex())
    if isinstance(value, complex):
        return (complex, value.real.hex(), value.imag.hex())
    return (type(value), value)
