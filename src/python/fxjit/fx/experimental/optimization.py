"""Passes that make a model faster at inference: fused batch norms, no dropout; and pieces to write such passes from."""

import collections
import copy

import torch
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from .._symbolic_trace import Tracer, symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..node import Node

__all__ = [
    "extract_subgraph",
    "fuse",
    "matches_module_pattern",
    "optimize_for_inference",
    "remove_dropout",
    "replace_node_module",
]

_FUSIONS = {
    (torch.nn.Conv1d, torch.nn.BatchNorm1d): fuse_conv_bn_eval,
    (torch.nn.Conv2d, torch.nn.BatchNorm2d): fuse_conv_bn_eval,
    (torch.nn.Conv3d, torch.nn.BatchNorm3d): fuse_conv_bn_eval,
    (torch.nn.Linear, torch.nn.BatchNorm1d): fuse_linear_bn_eval,
}


def matches_module_pattern(pattern, node, modules):
    """Whether `node` calls a module of class pattern[1] on what a module of class pattern[0] gives."""
    if not node.args:
        return False
    for wanted, n in zip(pattern, (node.args[0], node)):
        if not isinstance(n, Node) or n.op != "call_module" or type(modules.get(n.target)) is not wanted:
            return False
    return True


def replace_node_module(node, modules, new_module):
    """Puts another module in the place that `node` calls. modules: dict(root.named_modules())"""
    parent, _, name = node.target.rpartition(".")
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model, inplace=False, no_trace=False):
    """The model as a GraphModule without the batch norms that directly follow a convolution or linear layer: they are
    folded into its weights. For eval mode: AssertionError from the fusion otherwise.

    inplace: changes the model's own layers, instead of those of a deep copy
    no_trace: takes the graph of a GraphModule as it is

    A layer that is called in more than one place keeps its batch norm: folding would change the other places.
    """
    if not inplace:
        model = copy.deepcopy(model)
    gm = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(gm.named_modules())
    graph = copy.deepcopy(gm.graph)
    calls = collections.Counter(id(gm.get_submodule(n.target)) for n in graph.nodes if n.op == "call_module")
    for pattern, fused_layer in _FUSIONS.items():
        for node in graph.nodes:
            if not matches_module_pattern(pattern, node, modules):
                continue
            producer = node.args[0]
            layer, norm = modules[producer.target], modules[node.target]
            if len(producer.users) > 1 or calls[id(layer)] > 1 or not norm.track_running_stats:
                continue
            replace_node_module(producer, modules, fused_layer(layer, norm))
            node.replace_all_uses_with(producer)
            graph.erase_node(node)
    return GraphModule(gm, graph)


class _DropoutRemover(Transformer):
    def call_module(self, target, args, kwargs):
        if isinstance(self.submodules[target], torch.nn.modules.dropout._DropoutNd):
            if len(args) + len(kwargs) != 1:
                raise AssertionError(f"Expected 1 arg for Dropout, got {len(args) + len(kwargs)}")
            return (*args, *kwargs.values())[0]
        return super().call_module(target, args, kwargs)


def remove_dropout(model):
    """The model as a GraphModule that calls no dropout module."""
    gm = model if isinstance(model, GraphModule) else symbolic_trace(model)
    return _DropoutRemover(gm).transform()


def extract_subgraph(orig_module, nodes, inputs, outputs):
    """A GraphModule of `nodes`, in this order, that takes the values of `inputs` and returns those of `outputs` as a
    list."""
    graph, env = Graph(), {}
    for node in inputs:
        env[node] = graph.placeholder(node.name)
    for node in nodes:
        env[node] = graph.node_copy(node, env.__getitem__)
    graph.output([env[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)


def optimize_for_inference(model, pass_config=None, tracer=Tracer):
    """fuse and remove_dropout on a trace by `tracer`; `pass_config` turns them off: {"conv_bn_fuse": False, "remove_dropout": False}.

    "mkldnn_layout_optimize" is accepted and does nothing: fxjit.compile keeps weights in oneDNN's layout itself.
    """
    config = {"conv_bn_fuse": True, "remove_dropout": True, "mkldnn_layout_optimize": False, **(pass_config or {})}
    unknown = set(config) - {"conv_bn_fuse", "remove_dropout", "mkldnn_layout_optimize"}
    if unknown:
        raise RuntimeError(f"optimize_for_inference has no pass named {', '.join(sorted(unknown))}")
    if not isinstance(model, GraphModule):
        tracer = tracer()
        model = GraphModule(model, tracer.trace(model))
    if config["conv_bn_fuse"]:
        model = fuse(model, no_trace=True)
    return remove_dropout(model) if config["remove_dropout"] else model
