"""Attributes of a tree of modules by their paths, read past the __getattr__ that a trace replaces."""

import torch
import torch.fx._symbolic_trace as torch_tracing
import torch.utils._pytree as pytree

from .._C import add_module_paths

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


def module_paths(root):
    """module → path: what root.named_modules() says."""
    found = {}
    add_module_paths(root, "", found)
    return found
