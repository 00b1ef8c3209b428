"""Pickling of Graphs, Nodes and GraphModules: the graph itself, not source that would be traced again. As all pickles,
these may run code when they are read; files from elsewhere are what fxjit.fx.load is for."""

import torch

from .._C import Node, map_aggregate
from ._codec import Codec
from ._guards import Guard
from ._safe_names import safe_table
from .graph import Graph
from .graph_module import GraphModule, _Attributes

_UNPICKLED = ("_graph", "_snapshot")


class _Reference:
    """A node, by its number in the graph."""

    def __init__(self, number):
        self.number = number


class _Named:
    """A function that pickle cannot name, though fxjit can."""

    def __init__(self, name):
        self.name = name


def _pack(value, numbers):
    if isinstance(value, Node):
        if value not in numbers:
            raise TypeError(f"cannot pickle a graph that uses node {value}, which is not in it")
        return _Reference(numbers[value])
    if isinstance(value, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return _Named(Codec().name_of(value))
    if callable(value) and not isinstance(value, type) and id(value) in safe_table()[1]:
        return _Named(safe_table()[1][id(value)])
    return value


def _find_named(name):
    if "::" in name or name.startswith("torch.ops:"):
        schema, _, overload = name.removeprefix("torch.ops:").replace("::", ".").partition(".")[2].partition(".")
        namespace = name.removeprefix("torch.ops:").replace("::", ".").partition(".")[0]
        packet = getattr(getattr(torch.ops, namespace), schema)
        return packet if "::" not in name else getattr(packet, overload or "default")
    return Codec().find(name)


def _unpack(value, nodes):
    if isinstance(value, _Reference):
        return nodes[value.number]
    return _find_named(value.name) if isinstance(value, _Named) else value


def _reduce_graph(self):
    numbers = {node: i for i, node in enumerate(self.nodes)}
    pack = lambda a: map_aggregate(a, lambda leaf: _pack(leaf, numbers))  # noqa: E731
    codec = Codec()
    rows = [
        (n.op, n.name, _pack(n.target, numbers), pack(n.args), pack(n.kwargs), n.type, codec.meta_of(n.meta))
        for n in self.nodes
    ]
    cls = self._tracer_cls
    state = {
        "rows": rows,
        "codegen": self._codegen,
        "tracer_cls": cls if cls and "<locals>" not in cls.__qualname__ else None,
        "extras": self._tracer_extras,
        "fields": self._co_fields,
        "guards": [(pack(g.expression), g.place, g.traced) for g in self.guards],
    }
    return type(self), (), state


def _set_graph_state(self, state):
    nodes = []
    for op, name, target, args, kwargs, type_expr, meta in state["rows"]:
        args, kwargs = (map_aggregate(a, lambda leaf: _unpack(leaf, nodes)) for a in (args, kwargs))
        node = self.create_node(op, _unpack(target, nodes), args, kwargs, name, type_expr)
        if node.name != name:
            node.name = name
        if meta:
            node.meta.update(meta)
        nodes.append(node)
    self._codegen, self._tracer_cls = state["codegen"], state["tracer_cls"]
    self._tracer_extras, self._co_fields = state["extras"], state["fields"]
    unpack = lambda a: map_aggregate(a, lambda leaf: _unpack(leaf, ()))  # noqa: E731
    self.guards = [Guard(unpack(e), place, traced) for e, place, traced in state.get("guards", ())]


def _reduce_node(self):
    """With its graph: a node alone is nothing."""
    for i, node in enumerate(self.graph.nodes):
        if node is self:
            return _node_at, (self.graph, i)
    raise TypeError(f"cannot pickle node {self}: it was erased from its graph")


def _node_at(graph, number):
    return next(node for i, node in enumerate(graph.nodes) if i == number)


def _reduce_module(self):
    state = {k: v for k, v in self.__dict__.items() if k not in _UNPICKLED}
    base = next(t for t in type(self).__mro__ if t.__qualname__.split(".")[-1] != "GraphModuleImpl")
    return _rebuild_module, (base, type(self).__name__, state, self.graph)


def _rebuild_module(cls, class_name, state, graph):
    gm = cls.__new__(cls)
    GraphModule.__init__(gm, _Attributes(dict(state)), graph, class_name)
    # Unused attributes, hooks and meta travel too.
    for name, value in state.items():
        gm.__dict__[name] = value
    return gm


Graph.__reduce__ = _reduce_graph
Graph.__setstate__ = _set_graph_state
Node.__reduce__ = _reduce_node
GraphModule.__reduce__ = _reduce_module
