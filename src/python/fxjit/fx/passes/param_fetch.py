"""What a backend wants to know of leaf modules, put on the nodes that call them."""

import torch

from ..graph_module import GraphModule

__all__ = ["default_matching", "extract_attrs_for_lowering", "lift_lowering_attrs_to_nodes"]


def default_matching(name, target_version):
    """The attribute's name in a version of the module's class: the same in all."""
    return name


_CONV2D = "weight bias kernel_size stride padding dilation groups padding_mode".split()
_MAX_POOL2D = "kernel_size stride padding dilation return_indices ceil_mode".split()

# class -> (newest version that is known, names of attributes, name in a version)
module_fetch_book = {
    torch.nn.Linear: (1, ["weight", "bias"], default_matching),
    torch.nn.Conv2d: (1, _CONV2D, default_matching),
    torch.nn.BatchNorm2d: (2, ["weight", "bias", "running_mean", "running_var", "eps"], default_matching),
    torch.nn.AdaptiveAvgPool2d: (1, [], default_matching),
    torch.nn.MaxPool2d: (1, _MAX_POOL2D, default_matching),
    torch.nn.ReLU: (1, ["inplace"], default_matching),
}


def extract_attrs_for_lowering(mod):
    """{"name": class, attribute: value, …}. RuntimeError for a class, or a version of it, that the book does not have."""
    name = torch.typename(mod)
    if type(mod) not in module_fetch_book:
        known = ", ".join(cls.__name__ for cls in module_fetch_book)
        raise RuntimeError(f"{name} is not in the module_fetch_book yet, please add it to the module_fetch_book; it has {known}")
    version, names, matching = module_fetch_book[type(mod)]
    if version < mod._version:
        raise RuntimeError(
            f"Fetcher version {version} try to fetch {name} version {mod._version}, please upgrade the module_fetch_book"
        )
    return {"name": name, **{n: getattr(mod, matching(n, mod._version)) for n in names}}


def lift_lowering_attrs_to_nodes(fx_module):
    """Sets node.attrs_for_lowering of every node that calls a leaf module, in nested GraphModules as well."""
    modules = dict(fx_module.named_modules())
    for node in fx_module.graph.nodes:
        if node.op != "call_module":
            continue
        if isinstance(modules[node.target], GraphModule):
            lift_lowering_attrs_to_nodes(modules[node.target])
        else:
            node.attrs_for_lowering = extract_attrs_for_lowering(modules[node.target])
