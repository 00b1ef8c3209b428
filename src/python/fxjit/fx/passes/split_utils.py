"""Splitting by tags that the nodes carry."""

import copy
import logging
from dataclasses import dataclass, field
from typing import Any

import torch

from .._guard_check import guards_on
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from ..proxy import Proxy
from .tools_common import CALLABLE_NODE_OPS, is_node_output_tensor
from .utils.common import HolderModule, lift_subgraph_as_module

__all__ = [
    "Component",
    "getattr_recursive",
    "move_non_tensor_nodes_on_boundary",
    "setattr_recursive",
    "split_by_tags",
]

logger = logging.getLogger(__name__)


def getattr_recursive(obj, name):
    """The attribute at a dotted path; None where there is none."""
    for layer in name.split("."):
        if isinstance(obj, torch.nn.ModuleList):
            obj = obj._modules.get(layer)
        else:
            obj = getattr(obj, layer, None)
        if obj is None:
            return None
    return obj


def setattr_recursive(obj, attr, value):
    """Sets the attribute at a dotted path, whose owner must be there."""
    *path, name = attr.split(".")
    for layer in path:
        obj = getattr(obj, layer)
    setattr(obj, name, value)


@dataclass
class Component:
    """A submodule in the making.

    input_placeholders: of `graph`; orig_inputs, orig_outputs: what they and the returned values were in the old graph;
    getattr_maps: get_attr nodes of the old graph → those of `graph`
    """

    graph: Graph
    order: int
    name: str
    input_placeholders: list = field(default_factory=list)
    orig_inputs: list = field(default_factory=list)
    orig_outputs: list = field(default_factory=list)
    getattr_maps: dict[Node, Node] = field(default_factory=dict)
    constructor_args: list[str] = field(default_factory=list)
    gm: Any = None


class _TagSplitter:
    def __init__(self, gm, tags):
        self.gm = gm
        self.components = {tag: Component(Graph(), i, str(tag)) for i, tag in enumerate(tags)}
        self.component_of = {}
        self.copies = {}  # node → its copy in its component
        self.inputs = {}  # (component's order, node) → placeholder
        self.main = Graph()
        self.in_main = {}  # node → what stands for it in the main graph
        self.used_in_main = {}  # as an ordered set

    def read(self):
        output = None
        for node in self.gm.graph.nodes:
            if node.op == "output":
                if output is not None:
                    raise RuntimeError("Multiple output nodes in graph!")
                output = node
            elif node.op == "placeholder":
                self.in_main[node] = self.main.placeholder(node.name, type_expr=node.type)
                self.in_main[node].meta = copy.copy(node.meta)
            elif node.op != "get_attr":
                self.assign(node)
        if output is None:
            raise RuntimeError("Graph had no output node!")
        self.main.guards = guards_on(self.gm.graph, {n: self.in_main[n] for n in self.in_main if n.op == "placeholder"})
        return output

    def assign(self, node):
        if not hasattr(node, "tag"):
            raise AssertionError(f"Node does not have tag: {node.format_node()}")
        component = self.component_of[node] = self.components[node.tag]
        highest = max((self.component_of[x].order for x in node.all_input_nodes if x in self.component_of), default=0)
        if component.order < highest:
            raise AssertionError(
                f"Component {component.name} order must be >= max of its upstream components, "
                f"order={component.order} and max={highest}: {node.format_node()}"
            )
        copied = self.copies[node] = component.graph.node_copy(node, lambda x: self.in_component(component, x))
        copied.tag = node.tag

    def in_component(self, component, x):
        if x.op == "get_attr":
            if x not in component.getattr_maps:
                component.getattr_maps[x] = component.graph.get_attr(x.target, type_expr=x.type)
                component.getattr_maps[x].meta = copy.copy(x.meta)
            return component.getattr_maps[x]
        if self.component_of.get(x) is component:
            return self.copies[x]
        key = component.order, x
        if key not in self.inputs:
            placeholder = self.inputs[key] = component.graph.placeholder(x.name, type_expr=x.type)
            placeholder.meta = copy.copy(x.meta)
            component.orig_inputs.append(x)
            component.input_placeholders.append(placeholder)
            self.used_in_main[x] = None
        return self.inputs[key]

    def call(self, component, return_tuple):
        """Ends a component and calls it in the main graph; returns its map of qualified names."""
        outs = tuple(self.copies[x] for x in component.orig_outputs)
        single = len(outs) == 1 and not return_tuple
        component.graph.output(outs[0] if single else outs)
        component.gm, names = lift_subgraph_as_module(self.gm, component.graph, comp_name=component.name)
        node = self.main.call_module(component.name, tuple(self.in_main[x] for x in component.orig_inputs))
        for i, x in enumerate(component.orig_outputs):
            self.in_main[x] = node if single else Proxy(node)[i].node
        return names


def split_by_tags(gm, tags, return_fqn_mapping=False, return_tuple=False, GraphModuleCls=GraphModule):
    """A GraphModule that calls a submodule for each tag: the nodes whose attribute `tag` it is, in the order of `tags`.

    Placeholders, get_attr nodes and the output need none. return_fqn_mapping: also returns a dict from qualified names
    in gm to those in the new module. return_tuple: single values of submodules are tuples, too. AssertionError for a
    node without tag, or that reads a value of a later tag.
    """
    splitter = _TagSplitter(gm, tags)
    output = splitter.read()
    read = {}
    for x in output.all_input_nodes:
        if x.op == "get_attr":
            splitter.in_main[x] = splitter.main.get_attr(x.name, type_expr=x.type)
            read[x.name] = x.target
        else:
            splitter.used_in_main[x] = None
    for x in splitter.used_in_main:
        if x.op != "placeholder":
            splitter.component_of[x].orig_outputs.append(x)
    names = {}
    for component in splitter.components.values():
        names.update(splitter.call(component, return_tuple))
    splitter.main.output(map_arg(output.args[0], splitter.in_main.__getitem__))
    splitter.main._codegen = gm.graph._codegen
    root = HolderModule({component.name: component.gm for component in splitter.components.values()})
    for name, target in read.items():
        setattr(root, name, getattr_recursive(gm, target))
    result = GraphModuleCls(root, splitter.main)
    return (result, names) if return_fqn_mapping else result


def move_non_tensor_nodes_on_boundary(subgraphs):
    """Moves nodes that are no tensors out of accelerated subgraphs (is_acc) into the one subgraph that reads them,
    together with what depends on them, so that only tensors are exchanged where that is possible.

    subgraphs: objects with `nodes`, a list, and `is_acc`. ShapeProp must have run.
    """
    where = {node: i for i, subgraph in enumerate(subgraphs) for node in subgraph.nodes}

    def users(node):
        return [user for user in node.users if user.op in CALLABLE_NODE_OPS and user in where]

    def with_dependents(node, source, target):
        """The nodes of `source` that must move with `node`; None if one is read in a third subgraph."""
        moving, pending = {}, [node]
        while pending:
            current = pending.pop()
            if current in moving or where[current] == target:
                continue
            if where[current] != source:
                return None
            moving[current] = None
            pending.extend(users(current))
        return moving

    for i, subgraph in enumerate(subgraphs):
        if not subgraph.is_acc:
            continue
        pending = [
            node
            for node in subgraph.nodes
            if not is_node_output_tensor(node) and any(where[user] != i for user in users(node))
        ]
        seen = set()
        for node in pending:  # grows
            if node in seen or where[node] != i:
                continue
            seen.add(node)
            targets = {where[user] for user in users(node)} - {i}
            moving = with_dependents(node, i, next(iter(targets))) if len(targets) == 1 else None
            if moving is None:
                logger.info("cannot move non-tensor node %s: it is read in several subgraphs", node.name)
                continue
            (target,) = targets
            subgraph.nodes[:] = [n for n in subgraph.nodes if n not in moving]
            subgraphs[target].nodes.extend(moving)
            where.update(dict.fromkeys(moving, target))
            pending.extend(
                arg for arg in node.all_input_nodes if where.get(arg) == i and not is_node_output_tensor(arg)
            )
