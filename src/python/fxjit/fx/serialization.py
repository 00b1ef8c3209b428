"""Graphs as text, and GraphModules in files. The formats are in docs/text-format.md and docs/file-format.md.

Reading runs nothing that the text or the file names: functions and classes are found in a table (see _safe_names), or
among what the reader passes as `globals`.
"""

import contextlib
import sys
import zipfile

import torch

from .. import _C
from ._codec import Codec, check_graph
from ._guards import Guard
from ._safe_names import FormatError, add_safe_globals, check_method, global_name
from .graph import CodeGen
from .graph_module import GraphModule, _Attributes

__all__ = ["FormatError", "add_safe_globals", "load", "parse_text", "print_text", "save"]

VERSION = 1
VERSION_WITH_GUARDS = 2  # who does not know guards must not run the graph without them
_KIND = "fxjit.GraphModule"
_MODULE_KEYS = frozenset(vars(torch.nn.Module()))
_HOOKS = tuple(key for key in _MODULE_KEYS if key.endswith("_hooks"))
_GRAPH_MODULE_KEYS = frozenset(
    "_graph _snapshot _tracer_cls _tracer_extras _replace_hooks _create_node_hooks _erase_node_hooks "
    "_deepcopy_hooks shape_env meta _is_replica".split()
)
# Lists of the parameters that are saved anyway, and weak references to them.
_DERIVED = ("_flat_weights", "_flat_weight_refs")


@contextlib.contextmanager
def _format_errors(what):
    try:
        yield
    except FormatError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RuntimeError) as e:
        raise FormatError(f"{what}{e}") from None
    except (EOFError, SyntaxError, RecursionError, NotImplementedError, MemoryError, zipfile.BadZipFile) as e:
        raise FormatError(f"{what}{type(e).__name__}: {e}") from None


def print_text(graph, globals=None):  # noqa: A002
    """A Graph, or the graph of a GraphModule, as text that parse_text reads. FormatError for values that have no text,
    tensors among them: they belong into a file."""
    codec = Codec(globals)
    with _format_errors(""):
        text = _C.print_text({}, {"": getattr(graph, "graph", graph)}, codec)
    if codec.tensors:
        raise FormatError("a tensor among the arguments cannot be written as text: use fxjit.fx.save")
    return text


def parse_text(text, globals=None):  # noqa: A002
    """The Graph that a text holds. FormatError with line and column for anything else."""
    codec = Codec(globals)
    with _format_errors(""):
        _, graphs = _C.parse_text(text, codec)
        if len(graphs) != 1:
            raise FormatError(f"expected one graph, found {len(graphs)}")
        (graph,) = graphs.values()
        check_graph(graph, codec)
    return graph


# ---- writing ----


def save(gm, path, globals=None):  # noqa: A002
    """Writes a GraphModule: graph, parameters, buffers, tensor constants, submodules, training flags. `path` may be a
    file object. Functions and classes of the user are written by name; who reads the file passes them."""
    if not isinstance(gm, GraphModule):
        raise TypeError(f"fxjit.fx.save writes GraphModules, not {type(gm).__name__}")
    codec = Codec(globals)
    modules, graphs = [], {}
    with _format_errors(""):
        _describe(gm, "", {}, modules, graphs, codec)
        version = VERSION_WITH_GUARDS if any("guards" in entry for entry in modules) else VERSION
        text = _C.print_text({"format": {"kind": _KIND, "version": version}, "modules": modules}, graphs, codec)
        rows, storages = _describe_tensors(codec.tensors)
        tensors = _C.print_text({"tensors": rows}, {}, codec)
    writer = torch._C.PyTorchFileWriter(path if hasattr(path, "write") else str(path))
    for name, record in (("module.fx", text.encode()), ("tensors.fx", tensors.encode())):
        writer.write_record(name, record, len(record))
    for i, storage in enumerate(storages):
        writer.write_record(f"tensors/{i}", storage, storage.nbytes())
    writer.write_end_of_file()


def _describe(module, path, done, modules, graphs, codec):
    """The number of the module in the file; its children come before it."""
    if id(module) in done:
        if done[id(module)] is None:
            raise FormatError(f"module {path!r} contains itself")
        return done[id(module)]
    done[id(module)] = None
    for name in _HOOKS:
        if module.__dict__.get(name):
            raise FormatError(f"module {path!r} has hooks ({name}), which are not saved")
    children = {
        name: None if child is None else _describe(child, f"{path}.{name}".lstrip("."), done, modules, graphs, codec)
        for name, child in module._modules.items()
    }
    entry = {
        "class": _class_name(module, path),
        "training": bool(module.training),
        "parameters": {n: None if p is None else codec.number_of_tensor(p) for n, p in module._parameters.items()},
        "buffers": {n: None if b is None else codec.number_of_tensor(b) for n, b in module._buffers.items()},
        "not_persistent": sorted(module._non_persistent_buffers_set),
        "modules": children,
        "plain": _plain(module, path, codec),
    }
    if isinstance(module, GraphModule):
        if type(module.graph._codegen) is not CodeGen:
            raise FormatError(f"module {path!r} has a calling convention of its own, which is not saved: pickle it")
        entry["graph"] = str(len(graphs))
        graphs[entry["graph"]] = module.graph
        if module.graph.guards:
            entry["guards"] = [(g.expression, g.place, g.traced) for g in module.graph.guards]
    modules.append(entry)
    done[id(module)] = len(modules) - 1
    return len(modules) - 1


def _class_name(module, path):
    if isinstance(module, GraphModule):
        return type(module).__name__
    name = global_name(type(module))
    if "<" in name:
        raise FormatError(f"module {path!r}: its class {name} cannot be found by name")
    return name


def _plain(module, path, codec):
    skipped = _MODULE_KEYS | (_GRAPH_MODULE_KEYS if isinstance(module, GraphModule) else set())
    plain = {k: v for k, v in vars(module).items() if k not in skipped and k not in _DERIVED}
    for name, value in plain.items():
        with _format_errors(f"attribute {f'{path}.{name}'.lstrip('.')!r}: "):
            _C.print_text({"": value}, {}, codec)
    return plain


def _describe_tensors(tensors):
    """A row per tensor: element type, sizes, strides, offset, storage, whether it is a parameter and requires grad."""
    rows, storages, numbers = [], [], {}
    for t in tensors:
        plain = t.layout is torch.strided and not t.is_quantized and t.device.type != "meta" and not t.is_nested
        if not plain or type(t) not in (torch.Tensor, torch.nn.Parameter):
            raise FormatError(f"a tensor of type {type(t).__name__}, {t.layout}, {t.device} cannot be saved")
        data = t.detach().resolve_conj().resolve_neg()
        storage = data.untyped_storage()
        number = numbers.setdefault((storage.data_ptr(), storage.nbytes()), len(storages))
        if number == len(storages):
            storages.append(storage.cpu())
        is_parameter = isinstance(t, torch.nn.Parameter)
        row = (t.dtype, tuple(data.shape), data.stride(), data.storage_offset(), number, is_parameter, t.requires_grad)
        rows.append(row)
    return rows, storages


# ---- reading ----


def load(path, globals=None, device=None):  # noqa: A002
    """The GraphModule that save wrote. `globals`: what it may name besides functions of torch, operator, math and
    builtins, as a list of functions and classes or a dict of names to them. Tensors are on the CPU, or on `device`.

    FormatError for a file that is damaged, of another version, or names anything else; nothing of it is run then."""
    source = path if hasattr(path, "read") else open(path, "rb")  # noqa: SIM115 - closed below, if it is ours
    try:
        with _format_errors("not a file of fxjit.fx.save, or damaged: "), zipfile.ZipFile(source) as archive:
            gm = _load(archive, globals)
    finally:
        if source is not path:
            source.close()
    return gm if device is None else gm.to(device)


def _load(archive, globals):  # noqa: A002
    records = _records(archive)
    codec = Codec(globals)
    rows = _parse(records, "tensors.fx", codec)[0].get("tensors")
    codec.tensors = _read_tensors(rows, records)
    values, graphs = _parse(records, "module.fx", codec)
    header = values.get("format")
    if not isinstance(header, dict) or header.get("kind") != _KIND:
        raise FormatError("this file holds no GraphModule")
    if header.get("version") not in (VERSION, VERSION_WITH_GUARDS):
        raise FormatError(f"format {header.get('version')!r}: this version of fxjit reads {VERSION} and {VERSION_WITH_GUARDS}")
    for graph in graphs.values():
        check_graph(graph, codec)
    built = []
    for entry in values["modules"]:
        built.append(_build(entry, built, graphs, codec))
    if not isinstance(built[-1], GraphModule):
        raise FormatError("the outermost module is no GraphModule")
    return built[-1]


def _records(archive):
    """Name to content. Nothing is compressed, so a record is never larger than the file says it is."""
    found = {}
    for info in archive.infolist():
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise FormatError(f"record {info.filename!r} is compressed")
        found[info.filename.partition("/")[2]] = info
    return {name: (lambda info=info: archive.read(info)) for name, info in found.items()}


def _record(records, name):
    if name not in records:
        raise FormatError(f"there is no record {name!r}")
    return records[name]()


def _parse(records, name, codec):
    with _format_errors(f"{name}: "):
        return _C.parse_text(_record(records, name).decode(), codec)


def _read_tensors(rows, records):
    storages, tensors = {}, []
    for dtype, sizes, strides, offset, number, is_parameter, requires_grad in rows:
        if number not in storages:
            data = _record(records, f"tensors/{number}")
            storages[number] = torch.empty(len(data), dtype=torch.uint8)
            if data:
                storages[number].copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))
        storage = storages[number].untyped_storage()
        numbers = (*sizes, *strides, offset)
        if not all(type(v) is int and v >= 0 for v in numbers) or len(sizes) != len(strides):
            raise FormatError("sizes, strides and offset of a tensor are non-negative integers")
        last = offset + sum((n - 1) * s for n, s in zip(sizes, strides))
        if 0 not in sizes and (last + 1) * dtype.itemsize > storage.nbytes():
            raise FormatError("a tensor reaches beyond its data")
        t = torch.empty(0, dtype=dtype).set_(storage, offset, sizes, strides)
        tensors.append(torch.nn.Parameter(t, requires_grad is True) if is_parameter else t.requires_grad_(requires_grad is True))
    return tensors


def _build(entry, built, graphs, codec):
    state = vars(torch.nn.Module())
    state["training"] = entry["training"] is True
    tensor = lambda i: None if i is None else codec.tensors[_index(i, codec.tensors)]  # noqa: E731
    state["_parameters"].update((_attribute_name(n), tensor(i)) for n, i in entry["parameters"].items())
    state["_buffers"].update((_attribute_name(n), tensor(i)) for n, i in entry["buffers"].items())
    state["_modules"].update(
        (_attribute_name(n), None if i is None else built[_index(i, built)]) for n, i in entry["modules"].items()
    )
    if not all(p is None or isinstance(p, torch.nn.Parameter) for p in state["_parameters"].values()):
        raise FormatError("a parameter that is a plain tensor")
    state["_non_persistent_buffers_set"].update(n for n in entry["not_persistent"] if n in state["_buffers"])
    if "graph" in entry:
        graphs[entry["graph"]].guards = [_guard(codec, *map(thaw, row)) for row in entry.get("guards", ())]
        return _build_graph_module(entry, state, graphs[entry["graph"]])
    cls = _module_class(entry["class"], codec)
    _add_plain(state, entry["plain"], cls)
    module = cls.__new__(cls)
    module.__dict__.update(state)
    if isinstance(module, torch.nn.RNNBase):
        module._init_flat_weights()
    return module


def _guard(codec, expression, place, traced):
    with _format_errors("a guard: "):
        _check_expression(expression, codec)
    return Guard(expression, place, traced)


def _check_expression(e, codec):
    """A guard may read and call what a graph may."""
    operands = _OPERANDS[e[0]](e)
    if e[0] == "read" and (not isinstance(e[2], str) or e[2].startswith("_")):
        raise FormatError(f"a guard reads {e[2]!r}")
    if e[0] == "method":
        check_method(e[2], codec.extra)
    if e[0] == "call" and not callable(e[1]):
        raise FormatError(f"a guard calls {e[1]!r}")
    for operand in operands:
        _check_expression(operand, codec)


# What an expression of a guard is made of, by its kind (see _guards).
_OPERANDS = {
    "constant": lambda e: (), "input": lambda e: (), "attribute": lambda e: (), "tuple": lambda e: e[1],
    "size": lambda e: e[1:2], "read": lambda e: e[1:2], "method": lambda e: (e[1], *e[3]), "call": lambda e: e[2],
}  # fmt: skip


def _index(i, values):
    if type(i) is not int or not 0 <= i < len(values):
        raise FormatError(f"there is no entry {i!r} before this one")
    return i


def _attribute_name(name):
    if not isinstance(name, str) or not name or "." in name or name.startswith("__"):
        raise FormatError(f"{name!r} is no name of an attribute")
    return name


def _add_plain(state, plain, cls):
    for name, value in plain.items():
        if name in _MODULE_KEYS or name in _GRAPH_MODULE_KEYS or callable(getattr(cls, _attribute_name(name), None)):
            raise FormatError(f"a saved attribute must not replace {name!r}")
        state[name] = thaw(value)


def thaw(value):
    """The plain list or dict that an immutable one of the graph was."""
    if isinstance(value, list):
        return [thaw(v) for v in value]
    if isinstance(value, dict):
        return {k: thaw(v) for k, v in value.items()}
    return tuple(thaw(v) for v in value) if type(value) is tuple else value


def _module_class(name, codec):
    found = codec.extra.get(name)
    if found is None and isinstance(name, str):
        module, _, qualname = name.partition(":")
        if module.startswith("torch.nn.modules."):
            found = vars(sys.modules.get(module, torch.nn.modules)).get(qualname)
    if not isinstance(found, type) or not issubclass(found, torch.nn.Module):
        raise FormatError(f"the module class {name!r} is not one of torch.nn: pass it in globals")
    return found


def _build_graph_module(entry, state, graph):
    root = _Attributes(state)
    _add_plain(state, entry["plain"], GraphModule)
    for node in graph.nodes:
        if node.op in ("get_attr", "call_module"):
            found = _find(root, node.target)
            if found is None or (node.op == "call_module" and not isinstance(found, torch.nn.Module)):
                raise FormatError(f"node {node.name}: there is no {node.target!r} in the file")
    name = entry["class"]
    if not isinstance(name, str):
        raise FormatError(f"{name!r} is no name of a class")
    gm = GraphModule(root, graph, name)
    gm.__dict__.update((k, v) for k, v in state.items() if k not in _MODULE_KEYS or k.startswith("_non_persistent"))
    for table in ("_parameters", "_buffers", "_modules"):
        gm.__dict__[table] = state[table]
    gm.training = state["training"]
    return gm


def _find(module, path):
    for part in path.split("."):
        if not isinstance(module, torch.nn.Module):
            return None
        tables = (module._modules, module._parameters, module._buffers, module.__dict__)
        module = next((table[part] for table in tables if part in table), None)
    return module
