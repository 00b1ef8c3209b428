"""Python values in the text format: what each kind of object is written as, and how it is made again."""

import dataclasses
import enum
import functools
import keyword
import operator
import types
import typing

import torch

from ._safe_names import FormatError, check_method, global_name, safe_table, with_globals

__all__ = ["Codec", "check_graph"]

# Meta that is saved: plain data that does not depend on the process.
META_KEYS = ("stack_trace", "tensor_meta", "seq_nr", "partitioner_tag", "custom", "is_wrapped")
_PARTS_OF_TORCH = ("nn.functional", "_C._nn", "_C._linalg", "_C._fft", "_C._special")
_OPERATOR_NAMESPACES = ("aten", "prims", "quantized_decomposed", "torchvision")
_REFUSED_OPERATORS = ("aten::from_file", "aten::save", "aten::set_")


class Codec:
    """`tensors` collects what @tensor(i) stands for when writing, and holds it when reading."""

    def __init__(self, globals=None, tensors=None):  # noqa: A002 - the name that save and load have it under
        self.extra = with_globals(globals)
        self.extra_names = {id(value): name for name, value in self.extra.items()}
        self.tensors = [] if tensors is None else tensors
        self.tensor_index = {}

    # ---- functions and classes ----

    def name_of(self, fn):
        name = self._known_name(fn) or global_name(fn)
        if isinstance(fn, torch._ops.OpOverload):
            return fn.name()
        if isinstance(fn, torch._ops.OpOverloadPacket):
            return f"torch.ops:{fn._qualified_op_name.replace('::', '.')}"
        if name is None or "<" in name:
            raise FormatError(f"{fn!r} has no name under which it could be found again: pass globals={{'name': it}}")
        return name

    def _known_name(self, value):
        return self.extra_names.get(id(value)) or safe_table()[1].get(id(value))

    def find(self, name):
        if name in self.extra:
            return self.extra[name]
        if "::" in name:
            return self._find_operator(name)
        if ":" not in name and "." in name:
            name = ":".join(name.rsplit(".", 1))
        if name.startswith("operator:"):
            name = "_" + name
        if name in self.extra:
            return self.extra[name]
        if name.startswith("torch.ops:"):
            return self._find_operator(name[len("torch.ops:") :].replace(".", "::", 1)).overloadpacket
        table = safe_table()[0]
        found = table.get(name)
        if found is None and name.startswith("torch:"):  # so C++ calls what Python has in several modules
            found = next((table[key] for m in _PARTS_OF_TORCH if (key := f"torch.{m}:{name[6:]}") in table), None)
        if found is None:
            raise FormatError(
                f"{name!r} is not among the functions that a saved graph may name: pass it in globals, or to "
                "fxjit.fx.add_safe_globals"
            )
        return found

    def find_function(self, name):
        found = self.find(name)
        if not callable(found):
            raise FormatError(f"{name!r} is not callable")
        return found

    def _find_operator(self, name):
        schema, _, overload = name.partition(".")
        namespace, _, base = schema.partition("::")
        known = namespace in _OPERATOR_NAMESPACES and schema not in _REFUSED_OPERATORS
        if not known and schema not in self.extra:
            raise FormatError(f"the operator {name!r} is not among those that a saved graph may name: pass it in globals")
        packet = getattr(getattr(torch.ops, namespace), base, None)
        overload = overload or "default"
        if not isinstance(packet, torch._ops.OpOverloadPacket) or overload not in packet.overloads():
            raise FormatError(f"there is no operator {name!r} in this process")
        return getattr(packet, overload)

    # ---- objects ----

    def encode(self, value):
        """(kind, args, kwargs), or None for what has no text."""
        if callable(value) and (name := self._known_name(value)):
            return "name", (name,), {}
        for types_, write in _WRITERS:
            if isinstance(value, types_):
                return write(self, value)
        if dataclasses.is_dataclass(value):
            fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
            return "dataclass", (self.name_of(type(value)),), fields
        if typing.get_origin(value) is not None:
            return _write_generic(self, value)
        if callable(value):
            return "name", (self.name_of(value),), {}
        return None

    def decode(self, kind, args, kwargs):
        read = _READERS.get(kind)
        if read is None:
            raise FormatError(f"unknown kind of object @{kind}")
        try:
            return read(self, *args, **kwargs)
        except FormatError:
            raise
        except Exception as e:  # noqa: BLE001 - whatever a constructor has against damaged arguments
            raise FormatError(f"@{kind} with wrong arguments: {e}") from None

    def class_named(self, name, base):
        found = self.find(name)
        if not (isinstance(found, type) and base(found)):
            raise FormatError(f"{name!r} is no class of that kind")
        return found

    def meta_of(self, meta):
        kept = {}
        for key in META_KEYS:
            if key in meta and _is_plain(meta[key]):
                kept[key] = meta[key]
        return kept

    def number_of_tensor(self, tensor):
        index = self.tensor_index.get(id(tensor))
        if index is None:
            index = self.tensor_index[id(tensor)] = len(self.tensors)
            self.tensors.append(tensor)
        return index


def _is_plain(value):
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value)) and all(map(_is_plain, value.values()))
    return value is None or isinstance(value, (bool, int, float, str, torch.dtype, torch.memory_format, torch.device))


def _write_generic(codec, value):
    origin = typing.get_origin(value)
    if origin is types.UnionType:
        return "union", typing.get_args(value), {}
    alias = getattr(typing, getattr(value, "_name", None) or "", None)
    return "generic", (alias if typing.get_origin(alias) is origin else origin, *typing.get_args(value)), {}


def _read_generic(codec, origin, *args):
    if origin is typing.Optional or origin is typing.Union or origin is typing.Callable:
        return origin[args]
    if typing.get_origin(origin) not in (list, tuple, dict, set) and origin not in (list, tuple, dict, set, frozenset, type):
        raise FormatError(f"{origin!r} takes no parameters")
    return origin[args]


def _read_union(codec, *members):
    if not all(isinstance(t, type) or typing.get_origin(t) is not None for t in members):
        raise FormatError("a union of something else than types")
    return functools.reduce(operator.or_, members)


_WRITERS = (
    (torch.Tensor, lambda codec, t: ("tensor", (codec.number_of_tensor(t),), {})),
    (enum.Enum, lambda codec, v: ("enum", (codec.name_of(type(v)), v.name), {})),
    (torch._ops.OpOverload, lambda codec, v: ("op", (codec.name_of(v),), {})),
    (torch.dtype, lambda codec, v: ("dtype", (str(v)[len("torch.") :],), {})),
    (torch.Size, lambda codec, v: ("size", tuple(v), {})),
    (bool, lambda codec, v: None),
    (int, lambda codec, v: ("int", (str(v),), {})),
    (frozenset, lambda codec, v: ("frozenset", tuple(v), {})),
    (set, lambda codec, v: ("set", tuple(v), {})),
    (bytes, lambda codec, v: ("bytes", (v.hex(),), {})),
    (types.GenericAlias, _write_generic),
)


def _read_tensor(codec, index):
    if not isinstance(index, int) or not 0 <= index < len(codec.tensors):
        raise FormatError(f"there is no tensor {index!r} in this file")
    return codec.tensors[index]


def _read_enum(codec, name, member):
    return codec.class_named(name, lambda c: issubclass(c, enum.Enum))[member]


def _read_int(codec, digits):
    if not isinstance(digits, str) or len(digits) > 4000:
        raise FormatError("@int takes at most 4000 digits")
    return int(digits)


def _read_dtype(codec, name):
    found = getattr(torch, name) if name.isidentifier() and name[0] != "_" else None
    if not isinstance(found, torch.dtype):
        raise FormatError(f"this torch has no dtype {name!r}")
    return found


_READERS = {
    "name": lambda codec, name: codec.find(name),
    "op": lambda codec, name: codec._find_operator(name),
    "tensor": _read_tensor,
    "enum": _read_enum,
    "dataclass": lambda codec, name, /, **fields: codec.class_named(name, dataclasses.is_dataclass)(**fields),
    "dtype": _read_dtype,
    "size": lambda codec, *sizes: torch.Size(sizes),
    "int": _read_int,
    "set": lambda codec, *items: set(items),
    "frozenset": lambda codec, *items: frozenset(items),
    "bytes": lambda codec, digits: bytes.fromhex(digits),
    "generic": _read_generic,
    "union": _read_union,
}


def check_graph(graph, codec):
    """What the parser leaves open: each argument exists in Python, methods and attribute names are harmless."""
    for node in graph.nodes:
        node.args, node.kwargs, node.type  # noqa: B018 - converted here, so that damage shows now
        where = f"node {node.name}: "
        if node.op == "placeholder":
            _check_parameter(where, node.target)
        elif node.op == "call_method":
            _located(where, check_method, node.target, codec.extra)
        elif node.op in ("get_attr", "call_module"):
            if any(part.startswith("__") or not part for part in node.target.split(".")):
                raise FormatError(f"{where}{node.target!r} is no path of an attribute")
        elif node.op == "call_function" and node.target is getattr:
            name = node.args[1] if len(node.args) > 1 else None
            if not isinstance(name, str) or name.startswith("_"):
                raise FormatError(f"{where}getattr of {name!r}: a saved graph may read public attributes by name")


def _check_parameter(where, target):
    """Placeholders become parameters of a Python function."""
    name = target.removeprefix("**") if target.startswith("**") else target.removeprefix("*")
    if not name.isidentifier() or keyword.iskeyword(name):
        raise FormatError(f"{where}{target!r} is no name of a parameter")


def _located(where, check, *args):
    try:
        check(*args)
    except FormatError as e:
        raise FormatError(f"{where}{e}") from None
