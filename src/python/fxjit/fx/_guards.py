"""Decisions that a trace took on shapes, dtypes and devices: what has to hold for its graph to be right.

A guard is an expression over the graph's inputs. One on a tensor that the graph computes is replaced by guards on what
it is computed from: the same ranks, dtypes or sizes there give the same here.
"""

import operator

import torch

from ._names import pretty_name
from ._paths import lookup

# How an expression is evaluated and printed. A node of it is a tuple: ("input", index, name), ("attribute", path),
# ("constant", value), ("size", e, d), ("read", e, name), ("method", e, name, args, kwargs), ("call", f, args, kwargs).
_BINARY = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/", operator.floordiv: "//",
    operator.mod: "%", operator.pow: "**", operator.eq: "==", operator.ne: "!=", operator.lt: "<", operator.le: "<=",
    operator.gt: ">", operator.ge: ">=", operator.and_: "&", operator.or_: "|",
    operator.is_: "is",
}  # fmt: skip
NEGATED = {
    operator.eq: operator.ne, operator.ne: operator.eq, operator.lt: operator.ge, operator.ge: operator.lt,
    operator.gt: operator.le, operator.le: operator.gt,
}  # fmt: skip
_INTEGER_OPERATIONS = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "/", operator.mod: "%",
    operator.eq: "=", operator.ne: "!", operator.lt: "<", operator.le: "l", operator.gt: ">", operator.ge: "g",
}  # fmt: skip


class Guard:
    """str(guard) is the condition; holds(values, root) evaluates it for values of the graph's placeholders.

    place: (file, line) of the decision, or None; traced: what was decided upon, as {name: text}
    """

    def __init__(self, expression, place=None, traced=None):
        self.expression, self.place, self.traced = expression, place, traced or {}

    def __str__(self):
        return render(self.expression)

    __repr__ = __str__

    def __eq__(self, other):
        return isinstance(other, Guard) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))

    def holds(self, values, root=None):
        """values: one per placeholder, in order; root: the module whose attributes the graph reads."""
        try:
            return bool(evaluate(self.expression, values, root))
        except Exception:  # noqa: BLE001 - inputs of another structure: it does not hold
            return False

    def reads_inputs(self):
        """False for what holds in any case."""
        return any(True for _ in _leaves(self.expression))

    def attributes(self):
        """Paths of the attributes that the guard reads."""
        return [leaf[1] for leaf in _leaves(self.expression) if leaf[0] == "attribute"]

    def bound_to(self, inputs, attributes=None):
        """The guard on other inputs, {name: (position, name)}; None where one is missing. attributes: the same for paths of
        attributes that are inputs there."""
        new = {}
        for leaf in _leaves(self.expression):
            if leaf[0] == "attribute":
                new[leaf] = leaf if attributes is None else ("input", *attributes[leaf[1]])
            elif leaf[2] in inputs:
                new[leaf] = ("input", *inputs[leaf[2]])
            else:
                return None
        return Guard(_moved(self.expression, new), self.place, self.traced)

    def subjects(self, values, root):
        """What the guard reads, as {name: text}; other arguments as above."""
        return {leaf[-1]: describe(evaluate(leaf, values, root)) for leaf in _leaves(self.expression)}

    def size_programs(self, inputs, position):
        """The guard for calls that pass no Python code: a list of conditions on sizes, in the postfix form of
        src/python/size_guard.h. Empty where dtypes, devices and ranks tell, which compiled code compares anyway; None
        where sizes do not tell. Where they do but not by integer arithmetic, the sizes are those of `inputs`.

        inputs: the tensors of the call, arguments and then attributes; position: ("input", …) or ("attribute", …) → the
        index of this tensor, or None
        """
        reads = set(_reads(self.expression))
        if not reads <= _COMPARED | _OF_SIZES:
            return None
        if reads <= _COMPARED:
            return []
        tensors = {position(leaf) for leaf in _leaves(self.expression)}
        if any(i is None or not isinstance(inputs[i], torch.Tensor) for i in tensors):
            return None
        code = []
        if _integer_code(self.expression, position, code):
            return [code]
        return [
            [(operation, i, d), ("c", 0, value), ("=", 0, 0)]
            for i in sorted(tensors)
            for operation, d, value in [("d", 0, inputs[i].dim()), *(("s", d, n) for d, n in enumerate(inputs[i].shape))]
        ]


# What a guard may read: compared by compiled code itself, or a matter of sizes.
_COMPARED = frozenset("dtype device is_floating_point is_complex is_cuda is_cpu layout element_size itemsize dim".split())
_OF_SIZES = frozenset("size shape numel nelement stride is_contiguous".split())


def _reads(e):
    if isinstance(e, tuple) and e and e[0] in ("size", "read", "method") and _is_leaf(e[1]):
        yield "size" if e[0] == "size" else e[2]
        yield from _reads(e[2:])
    elif _is_leaf(e):
        yield "value"
    elif isinstance(e, (tuple, list)):
        for part in e:
            yield from _reads(part)


def _is_leaf(e):
    return isinstance(e, tuple) and len(e) > 1 and e[0] in ("input", "attribute")


def _leaves(e):
    if _is_leaf(e):
        yield e
    elif isinstance(e, (tuple, list)):
        for part in e:
            yield from _leaves(part)


def _moved(e, leaves):
    if _is_leaf(e):
        return leaves[e]
    return tuple(_moved(part, leaves) for part in e) if type(e) is tuple else e


def _call(function, args, kwargs):
    return function(*args, **kwargs)


def evaluate(e, values, root, call=_call):
    """The value of an expression. call(function, args, kwargs): how functions are called."""
    def arguments(part):
        return tuple(evaluate(a, values, root, call) for a in part)

    kind = e[0]
    if kind == "constant":
        return e[1]
    if kind == "input":
        return values[e[1]]
    if kind == "attribute":
        return lookup(root, e[1])
    if kind == "tuple":
        return arguments(e[1])
    if kind == "size":
        return evaluate(e[1], values, root, call).size(e[2])
    if kind == "read":
        return getattr(evaluate(e[1], values, root, call), e[2])
    if kind == "method":
        return getattr(evaluate(e[1], values, root, call), e[2])(*arguments(e[3]), **e[4])
    return call(e[1], arguments(e[2]), e[3])


def describe(value):
    """A tensor by element type and sizes, anything else as it prints."""
    if isinstance(value, torch.Tensor):
        where = "" if value.device.type == "cpu" else f" on {value.device}"
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}{where}"
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"


def render(e, inner=False):
    kind = e[0]
    if kind == "constant":
        return repr(tuple(e[1])) if isinstance(e[1], torch.Size) else repr(e[1])
    if kind == "input":
        return e[2]
    if kind == "attribute":
        return e[1]
    if kind == "tuple":
        return "(" + ", ".join(map(render, e[1])) + ("," if len(e[1]) == 1 else "") + ")"
    if kind == "size":
        return f"{render(e[1], True)}.size({e[2]})"
    if kind == "read":
        return f"{render(e[1], True)}.{e[2]}"
    if kind == "method":
        words = [*map(render, e[3]), *(f"{k}={v!r}" for k, v in e[4].items())]
        return f"{render(e[1], True)}.{e[2]}({', '.join(words)})"
    if e[1] in _BINARY and len(e[2]) == 2:
        text = f"{render(e[2][0], True)} {_BINARY[e[1]]} {render(e[2][1], True)}"
        return f"({text})" if inner else text
    if e[1] is operator.getitem:
        return f"{render(e[2][0], True)}[{render(e[2][1])}]"
    if e[1] is operator.not_:
        return f"not {render(e[2][0], True)}"
    words = [*map(render, e[2]), *(f"{k}={v!r}" for k, v in e[3].items())]
    return f"{pretty_name(e[1]).removeprefix('builtins.')}({', '.join(words)})"


def _integer_code(e, position, code):
    """Appends the postfix form of `e`; whether it has one."""
    kind = e[0]
    if kind == "constant" and type(e[1]) in (int, bool) and abs(e[1]) < 2**62:
        code.append(("c", 0, int(e[1])))
        return True
    if kind in ("size", "method") and _is_leaf(e[1]) and (kind == "size" or e[2] == "dim"):
        index = position(e[1])
        code.append(("s", index, e[2]) if kind == "size" else ("d", index, 0))
        return True
    if kind == "call" and e[1] in _INTEGER_OPERATIONS and len(e[2]) == 2 and not e[3]:
        if all(_integer_code(part, position, code) for part in e[2]):
            code.append((_INTEGER_OPERATIONS[e[1]], 0, 0))
            return True
    return False


def equals(e, value):
    return ("call", operator.eq, (e, ("constant", value)), {})


def size_of(tensor, d):
    return ("size", tensor, d)


def rank_of(tensor):
    return ("method", tensor, "dim", (), {})
