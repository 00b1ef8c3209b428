"""What a graph computes from attributes alone is computed once, before the first call."""

import operator
import re

import torch

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import map_arg
from .._symbolic_trace import symbolic_trace

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """A GraphModule that reads the results of `const_subgraph_module` from an attribute. run_folding, or the first
    call, computes them.

    const_subgraph: the graph of what is computed once, of attributes of `root` only; None where there is nothing
    fx_const_folded_attrs_name: the attribute of its result: a Parameter, or a ParameterList for a tuple
    device_for_folded_attrs: of results that are ints, which become tensors
    """

    def __init__(
        self, root, graph, const_subgraph=None, fx_const_folded_attrs_name=None, device_for_folded_attrs="cuda"
    ):
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def _deepcopy_init(self):
        def init(new, attributes, graph):
            GraphModule.__init__(new, attributes, graph)
            for name in ("has_folding_been_run", "fx_const_folded_attrs_name", "device_for_folded_attrs"):
                setattr(new, name, getattr(self, name))
            if self.const_subgraph_module is None:
                new.const_subgraph_module = None

        return init

    def __call__(self, *args, **kwargs):
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self):
        """Computes the attribute. AssertionError the second time."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("Folding has already been run")
        self.has_folding_been_run = True
        folded = self.const_subgraph_module()
        if isinstance(folded, tuple):
            value = torch.nn.ParameterList([self._parameter(v) for v in folded])
        else:
            value = self._parameter(folded)
        setattr(self, self.fx_const_folded_attrs_name, value)

    def _parameter(self, value):
        if isinstance(value, torch.Tensor):
            return torch.nn.Parameter(value.detach().clone(), requires_grad=value.requires_grad)
        tensor = torch.tensor([value], dtype=torch.float32, device=self.device_for_folded_attrs)
        return torch.nn.Parameter(tensor, requires_grad=False)


def get_unique_attr_name_in_module(mod_traced, name):
    """An attribute's name like `name` that the module does not have: legal, with _1, _2, … where it is taken."""
    name = re.sub("[^0-9a-zA-Z_]+", "_", name)
    if name[0].isdigit():
        name = "_" + name
    while hasattr(mod_traced, name):
        match = re.match(r"(.*)_(\d+)$", name)
        name = f"{match[1]}_{int(match[2]) + 1}" if match else f"{name}_1"
    return name


def split_const_subgraphs(module, skip_folding_node_fn=None, device_for_folded_attrs="cpu"):
    """The module as a FoldedGraphModule: what depends on attributes alone is in its const_subgraph_module.

    skip_folding_node_fn: nodes for which it is true are not folded, nor is what reads them

    Nodes with effects and random ones are not folded, nor modules whose training mode draws numbers or updates buffers.
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant = _constant_nodes(traced, skip_folding_node_fn)
    if all(node.op == "get_attr" for node in constant):
        return FoldedGraphModule(traced, traced.graph)

    const_graph, copies, read = Graph(), {}, []
    for node in traced.graph.nodes:
        if node in constant and (node.op != "get_attr" or any(user in constant for user in node.users)):
            copies[node] = const_graph.node_copy(node, copies.__getitem__)
            if node.op != "get_attr" and any(user not in constant for user in node.users):
                read.append(node)
    results = tuple(copies[node] for node in read)
    const_graph.output(results[0] if len(results) == 1 else results)

    name = get_unique_attr_name_in_module(traced, "_FX_CONST_FOLDED_ATTRS")
    graph = _without_constants(traced.graph, constant, read, name)
    root = _extended(traced, name, torch.nn.ParameterList() if len(read) != 1 else torch.nn.Parameter())
    return FoldedGraphModule(root, graph, const_graph, name, device_for_folded_attrs)


def _constant_nodes(gm, skip):
    constant = set()
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "output") or (skip and skip(node)):
            continue
        if node.op != "get_attr" and not all(used in constant for used in node.all_input_nodes):
            continue
        if node.is_impure() or (node.op == "call_module" and _changes_with_calls(gm.get_submodule(node.target))):
            continue
        if isinstance(node.kwargs.get("fill_value"), (torch.SymInt, torch.SymFloat)):
            continue
        constant.add(node)
    return constant


def _changes_with_calls(module):
    """Whether calling it draws random numbers, updates buffers, or has effects."""
    for child in module.modules():
        if child.training and isinstance(
            child, (torch.nn.modules.dropout._DropoutNd, torch.nn.modules.batchnorm._NormBase, torch.nn.RReLU)
        ):
            return True
        if isinstance(child, GraphModule) and any(
            node.op == "call_function" and node.is_impure() for node in child.graph.nodes
        ):
            return True
    return False


def _without_constants(old, constant, read, name):
    """The graph with an attribute (its items, where it has several) in place of the nodes in `read`."""
    graph, env = Graph(), {}
    graph._codegen, graph.guards = old._codegen, old.guards
    folded = None
    for node in old.nodes:
        if node in read:
            if folded is None:
                folded = graph.get_attr(name)
                folded.meta = node.meta.copy() if len(read) == 1 else {}
            env[node] = folded
            if len(read) > 1:
                env[node] = graph.call_function(operator.getitem, (folded, read.index(node)))
                env[node].meta = node.meta.copy()
        elif node.op == "output":
            graph.output(map_arg(node.args[0], env.__getitem__), node.type).meta = node.meta.copy()
        elif node not in constant or (
            node.op == "get_attr" and (not node.users or any(user not in constant for user in node.users))
        ):
            env[node] = graph.node_copy(node, env.__getitem__)
    return graph


def _extended(module, name, value):
    """A module that has all attributes of `module`, and one more."""
    root = torch.nn.Module()
    root.__dict__.update({k: v for k, v in module.__dict__.items() if k not in ("_snapshot", "_graph")})
    for table in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
        root.__dict__[table] = module.__dict__[table].copy()
    setattr(root, name, value)
    return root
