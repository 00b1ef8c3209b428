"""Attributes of a tree of modules by their paths, read past the __getattr__ that a trace replaces."""

import collections

import torch
import torch.fx._symbolic_trace as torch_tracing
import torch.utils._pytree as pytree

# What becomes an attribute of the root where it is met as a value.
CONSTANT_TYPES = (torch.Tensor, torch.ScriptObject, pytree.TreeSpec, torch_tracing.FakeScriptObject)


def lookup(root, path):
    """Past the __getattr__ that a trace replaces."""
    owner = root
    for part in path.split(".") if path else ():
        table = next((t for t in (owner._parameters, owner._buffers, owner._modules) if part in t), owner.__dict__)
        owner = table.get(part)
        if not isinstance(owner, torch.nn.Module):
            break
    return owner


def paths_of(root):
    """kind → id → path of each parameter, buffer and module of a tree: the first one, in one walk."""
    paths = {"parameter": {}, "buffer": {}, "module": {}}
    for path, module in root.named_modules():
        paths["module"].setdefault(id(module), path)
        prefix = f"{path}." if path else ""
        for kind, table in (("parameter", module._parameters), ("buffer", module._buffers)):
            for name, value in table.items():
                if value is not None:
                    paths[kind].setdefault(id(value), prefix + name)
    return paths


def constant_prefix(a):
    if isinstance(a, torch.Tensor):
        return "_tensor_constant"
    if isinstance(a, (torch.ScriptObject, torch_tracing.FakeScriptObject)):
        return "_torchbind_obj"
    if isinstance(a, pytree.TreeSpec):
        return "_tree_spec_constant"
    return "_opaque_obj"


# What the attributes of modules mostly are, and no constant is: most of the time of a trace could go into asking.
_PLAIN_TYPES = frozenset({bool, int, float, str, tuple, list, dict, set, collections.OrderedDict, type(None)})


def collect_tensor_attributes(module, prefix, out):
    if not _PLAIN_TYPES.issuperset(map(type, module.__dict__.values())):
        for name, value in module.__dict__.items():
            if type(value) not in _PLAIN_TYPES and isinstance(value, CONSTANT_TYPES):
                out[value] = prefix + name
    if module._modules:
        for name, child in module.named_children():
            collect_tensor_attributes(child, f"{prefix}{name}.", out)


def module_paths(root):
    """module → path: what root.named_modules() says, without a generator for each level."""
    paths = {}

    def visit(module, path):
        bound = module.named_modules
        if getattr(bound, "__func__", None) is not _named_modules:  # it has its own answer
            found = module.named_modules(set(paths), path) if paths else module.named_modules()
            paths.update((m, name) for name, m in found)
            return
        module = bound.__self__  # a compiled module answers with the one inside
        paths[module] = path
        prefix = f"{path}." if path else ""
        for name, child in module._modules.items():
            if child is not None and child not in paths:
                visit(child, prefix + name)

    visit(root, "")
    return paths


_named_modules = torch.nn.Module.named_modules
