"""Where a size of a computed tensor comes from, for operators that keep or name their sizes.

What has no rule here is no error: the guard then holds for one shape of the inputs.
"""

import operator

import torch
from torch import nn
from torch.nn import functional

_SAME_MODULES = frozenset(
    getattr(nn, name)
    for name in (
        "Identity ReLU ReLU6 GELU SiLU Sigmoid Tanh Hardswish Hardsigmoid Hardtanh ELU LeakyReLU Softplus Mish LayerNorm "
        "RMSNorm GroupNorm Dropout Dropout1d Dropout2d Dropout3d Softmax LogSoftmax BatchNorm1d BatchNorm2d BatchNorm3d"
    ).split()
)
_CONVOLUTIONS = {nn.Conv1d: 1, nn.Conv2d: 2, nn.Conv3d: 3}
_POOLS = {
    nn.MaxPool1d: 1, nn.MaxPool2d: 2, nn.MaxPool3d: 3, nn.AvgPool1d: 1, nn.AvgPool2d: 2, nn.AvgPool3d: 3,
    nn.AdaptiveAvgPool1d: 1, nn.AdaptiveAvgPool2d: 2, nn.AdaptiveAvgPool3d: 3,
}  # fmt: skip
_SAME = frozenset(
    "relu relu_ gelu silu sigmoid tanh exp log sqrt rsqrt neg abs sin cos erf floor ceil clone contiguous detach float "
    "half double bfloat16 int long bool to type type_as softmax log_softmax dropout layer_norm rms_norm batch_norm "
    "group_norm hardswish leaky_relu elu softplus normalize cumsum positive square reciprocal".split()
)
_BROADCAST = {
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.pow, operator.mod, operator.eq,
    operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.and_, operator.or_,
    operator.iadd, operator.isub, operator.imul, operator.itruediv,
    torch.add, torch.sub, torch.mul, torch.div, torch.pow, torch.maximum, torch.minimum,
}  # fmt: skip
_BROADCAST_METHODS = frozenset("add sub mul div add_ sub_ mul_ div_ pow maximum minimum".split())


class SizeSource:
    """One step back: size `dim` of `node`; or `constant`; or the host value of `node` where dim is None.

    not_one: (node, dim) of a size that must not be 1, or broadcasting would take another operand's.
    """

    def __init__(self, node=None, dim=None, constant=None, not_one=None):
        self.node, self.dim, self.constant, self.not_one = node, dim, constant, not_one


def source_of_size(values, node, d):
    """Where size d (not negative) of the tensor that `node` computes comes from, or None."""
    if node.op == "call_module":
        return _of_module(values.module(node), values.rank(node), node, d)
    if not node.args or node.op not in ("call_method", "call_function"):
        return None
    name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
    if node.op == "call_function" and not _is_torch(node.target):
        return None
    if node.target in _BROADCAST or (node.op == "call_method" and name in _BROADCAST_METHODS):
        return _broadcast(values, [a for a in node.args[:2] if _is_tensor(values, a)], values.rank(node), d)
    if not _is_tensor(values, node.args[0]) and name not in ("getitem", "cat"):
        return None
    if name in _SAME:
        return SizeSource(node.args[0], d)
    rule = _RULES.get(name)
    return rule(values, node, d) if rule is not None else None


def _is_torch(function):
    module = getattr(function, "__module__", None) or "torch"
    return module.split(".")[0] in ("torch", "_operator")


def _is_tensor(values, a):
    return hasattr(a, "all_input_nodes") and values.is_tensor(a)


def _of_module(m, rank, node, d):
    if not node.args or node.kwargs:
        return None
    x, kind = node.args[0], type(m)
    if kind in _SAME_MODULES:
        return SizeSource(x, d)
    if kind is nn.Linear or kind is nn.Embedding:
        last = m.out_features if kind is nn.Linear else m.embedding_dim
        return SizeSource(constant=last) if d == rank - 1 else SizeSource(x, d)
    if rank == _CONVOLUTIONS.get(kind, -9) + 2 and d < 2:
        return SizeSource(x, 0) if d == 0 else SizeSource(constant=m.out_channels)
    if rank == _POOLS.get(kind, -9) + 2 and d < 2:
        return SizeSource(x, d)
    return None


def _broadcast(values, tensors, rank, d):
    """Right-aligned sizes: the first that is not 1."""
    places = [(t, d - rank + values.rank(t)) for t in tensors]
    places = [(t, k) for t, k in places if k >= 0]
    if len(places) == 1:
        return SizeSource(*places[0])
    found = next(((t, k) for t, k in places if values.size(t, k) != 1), None)
    return None if found is None else SizeSource(*found, not_one=found)


def _transpose(values, node, d):
    dims = node.args[1:3]
    if len(dims) != 2 or not all(isinstance(i, int) for i in dims):
        return None
    a, b = (i % values.rank(node) for i in dims)
    return SizeSource(node.args[0], b if d == a else a if d == b else d)


def _permute(values, node, d):
    dims = _words(node)
    if not all(isinstance(i, int) for i in dims):
        return None
    return SizeSource(node.args[0], dims[d] % values.rank(node))


def _words(node):
    """The numbers of x.view(2, 3) and of x.view((2, 3))."""
    rest = node.args[1:]
    return tuple(rest[0]) if len(rest) == 1 and isinstance(rest[0], (tuple, list)) else rest


def _view(values, node, d):
    words = _words(node)
    if len(words) != values.rank(node) or any(isinstance(w, torch.dtype) for w in words):
        return None
    if isinstance(words[d], int):
        return SizeSource(constant=words[d]) if words[d] >= 0 else None
    return SizeSource(words[d]) if type(values.of(words[d])) is int else None


def _flatten(values, node, d):
    start = node.args[1] if len(node.args) > 1 else node.kwargs.get("start_dim", 0)
    if not isinstance(start, int):
        return None
    return SizeSource(node.args[0], d) if d < start % values.rank(node.args[0]) else None


def _unsqueeze(values, node, d):
    k = node.args[1] if len(node.args) > 1 else None
    if not isinstance(k, int):
        return None
    k %= values.rank(node)
    return SizeSource(constant=1) if d == k else SizeSource(node.args[0], d - (d > k))


def _matmul(values, node, d):
    a, b = node.args[:2]
    ranks, rank = (values.rank(a), values.rank(b)), values.rank(node)
    if min(ranks) < 2:
        return None
    if d == rank - 1:
        return SizeSource(b, ranks[1] - 1)
    if d == rank - 2:
        return SizeSource(a, ranks[0] - 2)
    return _broadcast(values, [t for t, r in zip((a, b), ranks) if d - rank + r >= 0], rank, d)


def _linear(values, node, d):
    return SizeSource(node.args[1], 0) if d == values.rank(node) - 1 else SizeSource(node.args[0], d)


def _attention(values, node, d):
    q, _, v = node.args[:3] if len(node.args) > 2 else (None, None, None)
    if v is None or len({values.rank(t) for t in node.args[:3]}) != 1:
        return None
    rank = values.rank(node)
    return SizeSource(v, d) if d == rank - 1 else SizeSource(q, d, not_one=None if d == rank - 2 else (q, d))


def parts_of(node):
    """(tensor, dim) where the node is x.chunk(n, dim) or x.split(n, dim) with constants, else None."""
    name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
    if name not in ("chunk", "split", "unbind", "tensor_split") or node.op not in ("call_method", "call_function"):
        return None
    first = 1 if name == "unbind" else 2
    dim = node.args[first] if len(node.args) > first else node.kwargs.get("dim", 0)
    sizes = node.args[1:2] if first == 2 else (0,)
    constant = isinstance(dim, int) and sizes and (isinstance(sizes[0], int) or _all_ints(sizes[0]))
    return (node.args[0], dim) if constant else None


def _all_ints(a):
    return isinstance(a, (tuple, list)) and all(isinstance(i, int) for i in a)


def _getitem(values, node, d):
    source, index = node.args
    if not _is_tensor(values, source):
        parts = parts_of(source) if hasattr(source, "all_input_nodes") and isinstance(index, int) else None
        if parts is None or source.target == "unbind" or source.target is torch.unbind:
            return None
        return None if d == parts[1] % values.rank(node) else SizeSource(parts[0], d)
    at, made = 0, 0
    for entry in index if isinstance(index, tuple) else (index,):
        if isinstance(entry, int) and not isinstance(entry, bool):
            at += 1
            continue
        if entry is not None and not isinstance(entry, slice):
            return None
        if made == d:
            if entry is None:
                return SizeSource(constant=1)
            return SizeSource(source, at) if entry == slice(None) else None
        made += 1
        at += entry is not None
    return SizeSource(source, at + d - made)


def _cat(values, node, d):
    dim = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
    parts = node.args[0]
    if not isinstance(dim, int) or not isinstance(parts, (tuple, list)) or d == dim % values.rank(node):
        return None
    return SizeSource(parts[0], d)


_RULES = {
    "transpose": _transpose, "swapaxes": _transpose, "permute": _permute, "view": _view, "reshape": _view,
    "flatten": _flatten, "unsqueeze": _unsqueeze, "matmul": _matmul, "linear": _linear, "getitem": _getitem, "cat": _cat,
    functional.scaled_dot_product_attention.__name__: _attention,
}  # fmt: skip
