"""The names that a saved graph may use: tables of functions, classes and methods. Nothing else is looked up, nothing is
imported, and no attribute is followed, so a hostile file can name only what is here or what its reader passes."""

import builtins
import functools
import math
import operator
import types
import typing

import torch

__all__ = ["FormatError", "add_safe_globals", "check_method", "global_name", "safe_table", "with_globals"]


class FormatError(ValueError):
    """A text or a file that is damaged, of another version, or names what its reader does not allow."""


# Functions over tensors: of these modules, what torch lets subclasses override, and what is implemented in C++.
_MODULES = ("torch", "torch.nn.functional", "torch.functional", "torch.linalg", "torch.fft", "torch.special")
_NATIVE = ("torch._C._nn", "torch._C._linalg", "torch._C._fft", "torch._C._special")
# Reads files, or changes the process.
_REFUSED = {"from_file", "set_num_threads", "import_ir_module", "init_num_threads", "vmap", "compile", "as_tensor"}
_PRIVATE = ("_assert", "_assert_async", "_shape_as_tensor", "_softmax", "_log_softmax")
_BUILTINS = (
    "abs all any bool complex dict divmod enumerate float frozenset getattr int isinstance len list max min pow range "
    "reversed round set slice sorted str sum tuple zip object bytes ellipsis"
).split()
_CLASSES = {
    "torch": "Tensor Size dtype device layout memory_format Generator FloatTensor LongTensor IntTensor DoubleTensor "
    "HalfTensor BoolTensor SymInt SymFloat SymBool",
    "torch.nn": "Parameter Module",
    "typing": "Any Optional Union List Tuple Dict Sequence Callable Set Iterable Mapping NamedTuple",
}
# Operators that a graph may spell as methods.
_MAGIC = {
    f"__{name}__"
    for name in "add radd iadd sub rsub isub mul rmul imul truediv rtruediv floordiv mod pow rpow matmul rmatmul neg abs "
    "invert and or xor eq ne lt le gt ge getitem setitem len contains rand ror rxor lshift rshift".split()
}
_CONTAINER_METHODS = (
    "keys values items get pop append extend insert index count copy update split join strip lower upper startswith "
    "endswith setdefault union difference intersection"
).split()
# They lead from tensors to memory, files or Python callbacks.
_REFUSED_METHODS = {"numpy", "data_ptr", "storage", "untyped_storage", "register_hook", "map_", "map2_", "apply_",
                    "share_memory_", "register_post_accumulate_grad_hook", "set_", "resolve_name"}  # fmt: skip

_registered = {}


def global_name(value):
    """"module:qualname" as the value itself says, or None."""
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", getattr(value, "__name__", None))
    return f"{module}:{name}" if isinstance(module, str) and isinstance(name, str) else None


def _entries(values):
    if isinstance(values, dict):
        return {name.replace(".", ":", 1) if ":" not in name and "." in name else name: v for name, v in values.items()}
    entries = {}
    for value in values:
        name = global_name(value)
        if name is None:
            raise TypeError(f"{value!r} has no qualified name: pass a dict of names to values")
        entries[name] = value
    return entries


def add_safe_globals(values):
    """Lets saved graphs name these functions and classes: a list of them, or a dict of names ("module:qualname")."""
    _registered.update(_entries(values))


def with_globals(values):
    """All that may be named besides the fixed table."""
    return {**_registered, **(_entries(values) if values else {})}


@functools.lru_cache(maxsize=1)
def safe_table():
    """"module:name" to object, and the reverse by id."""
    table = {}
    _add_tensor_functions(table)
    table["builtins:NoneType"] = type(None)
    for name in _BUILTINS:
        table[f"builtins:{name}"] = getattr(builtins, name, type(Ellipsis))
    for name in operator.__all__:
        if name not in ("attrgetter", "itemgetter", "methodcaller", "call"):
            table[f"_operator:{name}"] = getattr(operator, name)
    table.update((f"math:{name}", f) for name, f in vars(math).items() if isinstance(f, types.BuiltinFunctionType))
    for module, names in _CLASSES.items():
        owner = {"torch": torch, "torch.nn": torch.nn, "typing": typing}.get(module)
        if owner is not None:
            table.update((f"{module}:{name}", getattr(owner, name)) for name in names.split())
    return table, {id(value): name for name, value in reversed(table.items())}


def _add_tensor_functions(table):
    overridable = {id(f) for fs in torch.overrides.get_overridable_functions().values() for f in fs}
    for module in (*_MODULES, *_NATIVE):
        for name, f in vars(functools.reduce(getattr, module.split(".")[1:], torch)).items():
            if not callable(f) or isinstance(f, type) or name in _REFUSED or (name[0] == "_" and name not in _PRIVATE):
                continue
            native = isinstance(f, types.BuiltinFunctionType)
            if id(f) in overridable or (native and (module in _NATIVE or hasattr(torch._C._VariableFunctions, name))):
                table[f"{module}:{name}"] = f
            elif module == "torch.nn.functional" and getattr(f, "__module__", None) == module:
                table[f"{module}:{name}"] = f
    for name, f in vars(torch._C.TensorBase).items():
        if name[0] != "_" and isinstance(f, types.MethodDescriptorType) and name not in _REFUSED_METHODS:
            table[f"torch.Tensor:{name}"] = f
    table["torch:_assert"] = torch._assert


@functools.lru_cache(maxsize=1)
def _methods():
    public = {name for name in dir(torch.Tensor) if name[0] != "_"} - _REFUSED_METHODS
    return public | set(_CONTAINER_METHODS) | _MAGIC


def check_method(name, extra):
    """FormatError for a method that a saved graph may not call; `extra` may hold ".name"."""
    if name not in _methods() and f".{name}" not in extra:
        raise FormatError(f"the method {name!r} is not among those that a saved graph may call: pass globals={{'.{name}': True}}")
