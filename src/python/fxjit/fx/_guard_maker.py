"""From a decision on a traced value to guards on the graph's inputs."""

import builtins
import operator

import torch

from ._guards import NEGATED, Guard, equals, rank_of, size_of
from ._size_rules import parts_of, source_of_size

# What of a tensor a method or property tells.
_RANK, _DTYPE, _DEVICE, _SIZES, _ALL = "rank", "dtype", "device", "sizes", "all"
_KINDS = {
    **dict.fromkeys(("ndim", "dim", "ndimension"), _RANK),
    **dict.fromkeys(("dtype", "is_floating_point", "is_complex", "element_size", "itemsize", "is_signed"), _DTYPE),
    **dict.fromkeys(("device", "is_cuda", "is_cpu", "is_meta", "get_device"), _DEVICE),
    **dict.fromkeys(("shape", "size", "numel", "nelement", "__len__"), _SIZES),
}  # fmt: skip


class GuardMaker:
    """Turns decisions on nodes into guards on the graph's inputs. values: the Values of the trace."""

    def __init__(self, values):
        self.values = values
        self._positions = None
        self._expressions = {}
        self._implied = []  # guards that an expression rests on and that were not handed out yet

    def _with_implied(self, guards):
        implied, self._implied = self._implied, []
        return implied + guards

    def truth(self, node, value):
        """The node was asked for its bool."""
        e = self.expression(node)
        if e is None:
            return self._pins(node)
        if e[0] == "call" and e[1] in NEGATED and len(e[2]) == 2:
            return self._with_implied([Guard(e if value else (e[0], NEGATED[e[1]], *e[2:]))])
        return self._with_implied([Guard(e if value else ("call", operator.not_, (e,), {}))])

    def identity(self, node, value):
        """What the node stands for is the constant `value` itself."""
        return [Guard(("call", operator.is_, (self.expression(node), ("constant", value)), {}))]

    def keys(self, node, keys):
        """The keys of a dict were asked for."""
        e = self.expression(node)
        return [] if e is None else [Guard(equals(("call", tuple, (e,), {}), keys))]

    def value(self, node, value):
        """The node was asked for its value, which is a constant of the graph now."""
        e = self.expression(node)
        return self._pins(node) if e is None else self._with_implied([Guard(equals(e, value))])

    def rank(self, node):
        """The rank of the tensor `node` was asked for."""
        e = None if self.values.reshaped else self.expression(node)
        if e is None:
            return self._pins(node, _RANK)
        return [Guard(equals(rank_of(e), self.values.rank(node)))]

    def size(self, node, d):
        """Size d of the tensor `node` was asked for."""
        e = self.size_expression(node, d)
        if e is None:
            return self._pins(node, _SIZES)
        return self._with_implied([Guard(equals(e, self.values.size(node, d)))])

    def length(self, node, value):
        """The length of a tuple, list or dict was asked for."""
        base = _ranked_by(node)
        if base is not None:
            return self.rank(base)
        if parts := parts_of(node):
            return self.size(*parts)
        if not self.values.is_host_operation(node) and self._has_fixed_length(node):
            return []
        e = self.expression(node)
        if e is None:
            return self._pins(node)
        return self._with_implied([Guard(equals(("call", builtins.len, (e,), {}), value))])

    def _has_fixed_length(self, node):
        """Whether the node gives as many tensors for any sizes of its arguments: torch.max(x, 1), an LSTM."""
        while node.op == "call_function" and node.target is operator.getitem and not self.values.is_tensor(node.args[0]):
            node = node.args[0]  # a tuple inside of a tuple
        if node.op == "call_method":
            return node.target not in _PARTED
        if node.op == "call_module":
            return self.values.module(node).__module__.startswith("torch.nn.")
        module = getattr(node.target, "__module__", None) or "torch"
        return node.op == "call_function" and module.split(".")[0] == "torch" and node.target.__name__ not in _PARTED

    # ---- sizes ----

    def size_expression(self, node, d):
        """Size d of a tensor in terms of the inputs; None where no rule says what it comes from."""
        if self.values.reshaped:
            return None
        if self.expression(node) is not None:
            return size_of(self.expression(node), d)
        rank = self.values.rank(node)
        if not -rank <= d < rank:
            return None
        implied, d = self._pins(node, _RANK), d % rank
        while self.expression(node) is None:
            source = source_of_size(self.values, node, d)
            if source is None:
                return None
            if source.not_one is not None:
                e = self.size_expression(*source.not_one)
                if e is None:
                    return None
                if e[0] != "constant":
                    implied.append(Guard(("call", operator.ne, (e, ("constant", 1)), {})))
            if source.node is None:
                self._implied += implied
                return ("constant", source.constant)
            if source.dim is None:
                e = self.expression(source.node)
                self._implied += implied if e is not None else []
                return e
            node, d = source.node, source.dim
        self._implied += implied
        return size_of(self.expression(node), d)

    # ---- expressions ----

    def expression(self, node):
        """What the node is in terms of the inputs; None if it depends on a tensor that the graph computes."""
        if node not in self._expressions:
            stack = [node]
            while stack:
                n = stack[-1]
                missing = [i for i in n.all_input_nodes if i not in self._expressions]
                if missing:
                    stack.extend(missing)
                    continue
                self._expressions[stack.pop()] = self._expression(n)
        return self._expressions[node]

    def _position(self, node):
        if self._positions is None or node not in self._positions:
            inputs = self.values.tracer.graph.find_nodes(op="placeholder")
            self._positions = {n: i for i, n in enumerate(inputs)}
        return self._positions[node]

    def _expression(self, node):
        if node.op == "placeholder":
            return ("input", self._position(node), node.target.lstrip("*"))
        if node.op == "get_attr":
            return ("attribute", node.target)
        if node.op not in ("call_function", "call_method"):
            return None
        if not self.values.is_host_operation(node):
            return None
        if self.values.reshaped:
            return None  # what a tensor is here need not be what it is at the start
        if (size := _read_size(node)) is not None:
            return self.size_expression(*size)
        args = self._argument(node.args)
        kwargs = node.kwargs
        if args is None or _nodes_in(kwargs):
            return None
        args = args[1]
        if node.op == "call_method":
            return _method(node.target, args, dict(kwargs))
        return _call(node.target, args, dict(kwargs))

    def _argument(self, a):
        if isinstance(a, _node_class()):
            return self._expressions[a]
        if isinstance(a, (tuple, list)):
            parts = tuple(self._argument(item) for item in a)
            return None if any(p is None for p in parts) else ("tuple", parts)
        if _nodes_in(a):
            return None
        return ("constant", a)

    # ---- what a computed tensor rests on ----

    def _pins(self, node, kind=None):
        kind = _ALL if self.values.reshaped else kind or self._kind_of(node)
        guards, seen, stack = [], set(), [node]
        while stack:
            n = stack.pop()
            if n in seen:
                continue
            seen.add(n)
            if n.op in ("placeholder", "get_attr"):
                guards += self._pins_of_input(n, kind)
            elif kind in (_RANK, _DTYPE) and not _keeps_kind(n):
                return self._pins(node, _SIZES)
            elif kind == _SIZES and n.target == "view" and any(isinstance(a, torch.dtype) for a in n.args):
                return self._pins(node, _ALL)
            stack.extend(n.all_input_nodes)
        return guards

    def _pins_of_input(self, node, kind):
        e, value = self._expression(node), self.values.original(node)
        if not isinstance(value, torch.Tensor):
            return [Guard(equals(e, value))] if isinstance(value, (bool, int, float, str, type(None))) else []
        parts = []
        if kind == _RANK or kind == _DTYPE:
            parts.append(equals(rank_of(e), value.dim()))
        if kind in (_SIZES, _ALL):
            parts += [equals(rank_of(e), value.dim())]
            parts += [equals(size_of(e, d), s) for d, s in enumerate(value.shape)]
        if kind in (_DTYPE, _ALL):
            parts.append(equals(("read", e, "dtype"), value.dtype))
        if kind in (_DEVICE, _ALL):
            parts.append(equals(("read", e, "device"), value.device))
        if kind == _ALL:
            parts.append(equals(("method", e, "stride", (), {}), tuple(value.stride())))
            parts.append(equals(("read", e, "requires_grad"), value.requires_grad))
        return [Guard(p) for p in parts]

    def _kind_of(self, node):
        """What of the computed tensors the value `node` rests on: everything, where it is more than one thing."""
        if not self.values.is_host_operation(node):
            return _SIZES  # a tuple of tensors: its length was asked for
        found, seen, stack = set(), set(), [node]
        while stack:
            n = stack.pop()
            if n in seen:
                continue
            seen.add(n)
            for i in n.all_input_nodes:
                if (self.values.reshaped or self.expression(i) is None) and self.values.is_tensor(i):
                    name = n.target if n.op == "call_method" else n.args[1] if n.target is getattr else None
                    found.add(_KINDS.get(name, _ALL))
                else:
                    stack.append(i)
        return found.pop() if len(found) == 1 else _ALL


def _keeps_kind(node):
    """Whether ranks and dtypes of the node's result follow from those of its arguments."""
    if node.target in ("squeeze", "squeeze_", torch.squeeze):
        return False
    if node.op == "call_module":
        return True
    module = getattr(node.target, "__module__", None) or ""
    return node.op == "call_method" or module.split(".")[0] in ("torch", "_operator", "builtins", "math", "")


_PARTED = frozenset(
    "chunk split unbind tensor_split hsplit vsplit dsplit unsafe_chunk unsafe_split split_with_sizes nonzero where".split()
)


def shape_base(node):
    """The tensor whose whole shape the node is, or None."""
    if node.op == "call_function" and node.target is getattr and node.args[1] == "shape":
        return node.args[0]
    if node.op == "call_method" and node.target == "size" and len(node.args) == 1 and not node.kwargs:
        return node.args[0]
    return None


def _read_size(node):
    """(tensor, d) where the node is x.size(d) or x.shape[d] with a constant d."""
    if node.op == "call_method" and node.target == "size":
        d = node.args[1] if len(node.args) == 2 else node.kwargs.get("dim")
        return (node.args[0], d) if type(d) is int else None
    if node.op == "call_function" and node.target is operator.getitem and type(node.args[1]) is int:
        base = shape_base(node.args[0]) if isinstance(node.args[0], _node_class()) else None
        return None if base is None else (base, node.args[1])
    return None


def _ranked_by(node):
    """The tensor of whose shape the node is a slice: its length depends on the rank alone."""
    while node.op == "call_function" and node.target is operator.getitem and isinstance(node.args[1], slice):
        if _nodes_in(node.args[1]):
            return None
        node = node.args[0]
    return shape_base(node)


def _method(name, args, kwargs):
    receiver, rest = args[0], args[1:]
    if name == "size" and len(rest) == 1 and not kwargs and rest[0][0] == "constant" and isinstance(rest[0][1], int):
        return size_of(receiver, rest[0][1])
    if name == "size" and not rest and set(kwargs) == {"dim"} and isinstance(kwargs["dim"], int):
        return size_of(receiver, kwargs["dim"])
    if name == "size" and not rest and not kwargs:
        return ("read", receiver, "shape")
    if name in ("dim", "ndimension") and not rest:
        return rank_of(receiver)
    return ("method", receiver, name, rest, kwargs)


def _call(function, args, kwargs):
    if function is getattr and len(args) == 2 and args[1][0] == "constant":
        return rank_of(args[0]) if args[1][1] == "ndim" else ("read", args[0], args[1][1])
    if function is operator.getitem and args[0][0] == "read" and args[0][2] == "shape":
        if args[1][0] == "constant" and type(args[1][1]) is int:
            return size_of(args[0][1], args[1][1])
    if function is builtins.len and args[0][0] == "read" and args[0][2] == "shape":
        return rank_of(args[0][1])
    return ("call", function, args, kwargs)


def _nodes_in(a):
    from .node import map_arg

    found = []
    map_arg(a, lambda n: found.append(n) or n)
    return found


def _node_class():
    from .node import Node

    return Node
