"""Composites that tracing left as calls: pure ones are replaced by what their bodies record."""

from __future__ import annotations

from . import fx
from .callees import is_pure_body, is_torch_function
from .proxies import CaptureError, CheckedProxy, NumberAware


class _InliningTracer(NumberAware, fx.proxy.GraphAppendingTracer):
    def __init__(self, graph, numbers):
        super().__init__(graph)
        self.numbers = numbers

    def tensor_proxy(self, node):
        return CheckedProxy(node, self)


def inline_composites(graph: fx.Graph, numbers=None):
    """Replaces calls of pure wrapped functions by what their bodies record; others stay calls. numbers: nodes that are
    ints or floats, with their types."""
    changed = False
    again = True
    while again:
        again = False
        for node in graph.nodes:
            if node.op != "call_function" or is_torch_function(node.target) or not is_pure_body(node.target):
                continue
            if fx.is_always_leaf(node.target):
                continue
            tracer = _InliningTracer(graph, {} if numbers is None else numbers)
            with graph.inserting_before(node):
                try:
                    result = node.target(*fx.node.map_arg(node.args, tracer.proxy),
                                         **fx.node.map_arg(node.kwargs, tracer.proxy))
                except Exception as e:  # noqa: BLE001 - then it stays a call
                    if numbers:
                        raise CaptureError(f"{node.name} is a composite of a number that varies: {e}") from e
                    continue
                if type(result) is not CheckedProxy:
                    continue
            node.replace_all_uses_with(result.node)
            graph.erase_node(node)
            changed = again = True
    if changed:
        graph.lint()
