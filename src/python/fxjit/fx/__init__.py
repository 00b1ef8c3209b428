"""The fx of fxjit: names, signatures and errors of torch.fx over a core in C++."""

import torch.fx.graph as _torch_graph

from . import _helpers
from .._C import configure as _configure_core
from . import immutable_collections
from .graph import CodeGen, Graph
from .node import Node, has_side_effect, map_aggregate, map_arg
from .proxy import Attribute, GraphAppendingTracer, Proxy, TraceError, TracerBase
from ._symbolic_trace import PH, ProxyableClassMeta, Tracer, is_always_leaf, is_fx_tracing, symbolic_trace, wrap
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from ._guard_check import GuardError
from .serialization import FormatError, add_safe_globals, load, parse_text, print_text, save
from .subgraph_rewriter import replace_pattern
from . import _pickle, _symbolic_trace, graph, graph_module, interpreter, node, operator_schemas, passes, proxy
from . import serialization, subgraph_rewriter, traceback

# torch.fx's modules have these too, because they import them, and programs take them from there.
graph.Node, graph.map_arg = Node, map_arg
interpreter.GraphModule, interpreter.Node, interpreter.Tracer = GraphModule, Node, Tracer
proxy.Graph, proxy.Node = Graph, Node
for _name in ("dtype_abbrs", "inplace_methods", "magic_methods", "reflectable_magic_methods"):  # tables of names
    setattr(graph, _name, getattr(_torch_graph, _name))
proxy.magic_methods, proxy.reflectable_magic_methods = graph.magic_methods, graph.reflectable_magic_methods


def from_exported(program):
    """A torch.export.ExportedProgram as a GraphModule; the same as GraphModule.from_torch(program)."""
    from ..interop import from_exported as imported

    return imported(program)


def _configure(internal_error):
    import torch

    _configure_core(
        helpers=_helpers,
        graph_class=Graph,
        immutable_list=immutable_collections.immutable_list,
        immutable_dict=immutable_collections.immutable_dict,
        trace_error=TraceError,
        internal_error=internal_error,
        tensor_methods=torch.overrides._get_tensor_methods(),
        traceback_dict=vars(torch.fx.traceback),
        immortal=_helpers.immortal_functions(),
    )


__all__ = [
    "Attribute",
    "CodeGen",
    "FormatError",
    "Graph",
    "GraphAppendingTracer",
    "GraphModule",
    "GuardError",
    "Interpreter",
    "Node",
    "PH",
    "Proxy",
    "ProxyableClassMeta",
    "TraceError",
    "Tracer",
    "TracerBase",
    "Transformer",
    "add_safe_globals",
    "from_exported",
    "has_side_effect",
    "is_always_leaf",
    "is_fx_tracing",
    "load",
    "map_aggregate",
    "map_arg",
    "parse_text",
    "print_text",
    "replace_pattern",
    "save",
    "symbolic_trace",
    "wrap",
]
