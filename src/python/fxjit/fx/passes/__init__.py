"""Passes over fxjit.fx graphs, with the names that they have in torch.fx.passes."""

from . import (
    annotate_getitem_nodes,
    fake_tensor_prop,
    graph_drawer,
    graph_manipulation,
    graph_transform_observer,
    net_min_base,
    param_fetch,
    shape_prop,
)

__all__ = [
    "annotate_getitem_nodes",
    "fake_tensor_prop",
    "graph_drawer",
    "graph_manipulation",
    "graph_transform_observer",
    "net_min_base",
    "param_fetch",
    "shape_prop",
]
