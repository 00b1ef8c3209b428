"""Other targets for nodes, and the bytes of their values."""

from typing import NamedTuple

import torch

from .shape_prop import ShapeProp

__all__ = ["get_size_of_all_nodes", "get_size_of_node", "get_tensor_meta", "replace_target_nodes_with", "size_bytes"]


def replace_target_nodes_with(fx_module, old_op, old_target, new_op, new_target):
    """Every node with this opcode and target gets the new ones; arguments, name and users stay."""
    for node in list(fx_module.graph.nodes):
        if node.op == old_op and node.target == old_target:
            node.op = new_op
            node.target = new_target
    fx_module.recompile()


class size_bytes(NamedTuple):
    """output_size: of the node's value; total_size: with the parameters of the module it calls."""

    output_size: int
    total_size: int


def get_size_of_all_nodes(fx_module, args=None):
    """Sets node.size_bytes of all nodes but the output. With `args`, shapes are found by running the module on them."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    modules = dict(fx_module.named_modules())
    for node in fx_module.graph.nodes:
        if node.op == "output":
            break
        node.size_bytes = _size(node, modules)


def get_tensor_meta(node):
    """meta["tensor_meta"]; RuntimeError where shapes were not propagated."""
    meta = node.meta.get("tensor_meta")
    if not meta:
        raise RuntimeError(
            f"Node {node} has no tensor metadata associated with it! Check that shape propagation has run."
        )
    return meta


def get_size_of_node(fx_module, node):
    """size_bytes of one node."""
    return _size(node, dict(fx_module.named_modules()))


def _size(node, modules):
    meta = get_tensor_meta(node)
    count = meta.shape.numel()
    parameters = sum(p.numel() for p in modules[node.target].parameters()) if node.op == "call_module" else 0
    if meta.is_quantized:
        item = torch._empty_affine_quantized([], dtype=meta.dtype).element_size()
    else:
        item = meta.dtype.itemsize
    return size_bytes(item * count, item * (count + parameters))
