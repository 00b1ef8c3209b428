"""Replaces the places where a pattern occurs in a graph by another graph."""

import copy
import itertools
import typing
from dataclasses import dataclass

import torch

from .. import _C
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _set_attribute
from .node import Node
from .passes.utils.matcher_utils import SubgraphMatcher

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(typing.NamedTuple):
    """anchor: the pattern's node where matching began; nodes_map: from the pattern's nodes to the graph's."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A Match, and the nodes that replaced it."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def replace_pattern(gm, pattern, replacement):
    """Replaces each occurrence of `pattern` in the GraphModule by `replacement`; returns a list of Match.

    pattern, replacement: functions, modules or GraphModules with the same number of parameters. A parameter of the
    pattern stands for any value and, where it is an argument, for any constant. What the pattern computes has to be
    used inside of the match only, except for what it returns. Of overlapping matches the first in program order is
    replaced. Attributes of a replacement that is a module are copied where the module has none of that name.
    """
    return [Match(m.anchor, m.nodes_map) for m in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm,
    pattern,
    replacement=None,
    match_filters=None,
    ignore_literals=False,
    replacement_callback=None,
    node_name_match="",
):
    """replace_pattern with more to say; pattern and replacement may be Graphs. Returns a list of ReplacedPatterns.

    match_filters: functions of (InternalMatch, original graph, pattern graph); a match is replaced if all are true
    ignore_literals: constants in the pattern match any constant
    replacement_callback: a function of the same that returns the Graph which replaces the match
    node_name_match: what the pattern returns also matches nodes whose name contains this
    """
    pattern_graph = _graph_of(pattern)
    matcher = SubgraphMatcher(pattern_graph, ignore_literals=ignore_literals)
    graph = gm.graph
    matches = [
        m
        for m in matcher.match(graph, node_name_match=node_name_match)
        if all(keep(m, graph, pattern_graph) for keep in match_filters or ())
    ]
    common = _graph_of(replacement) if replacement is not None else None
    if common is not None and matches and not isinstance(replacement, (Graph, torch.nn.Module)):
        _move_constants(common, gm)
    if replacement_callback is not None:

        def chosen(match):
            return replacement_callback(match, graph, pattern_graph)

    elif common is None:
        raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
    else:
        chosen = common
    added = _C.replace_matches(graph, pattern_graph, matches, chosen)
    gm.recompile()
    if isinstance(replacement, torch.nn.Module):
        _replace_attributes(gm, replacement)
    return [ReplacedPatterns(m.anchors[0], m.nodes_map, nodes) for m, nodes in zip(matches, added)]


def _graph_of(program):
    if isinstance(program, GraphModule):
        return program.graph
    return program if isinstance(program, Graph) else symbolic_trace(program).graph


def _move_constants(graph, gm):
    """Tensors that a function took from around it become attributes of gm, under names that are free there."""
    names = {}
    for node in graph.find_nodes(op="get_attr"):
        if node.target not in names:
            name = next(n for i in itertools.count() if not hasattr(gm, n := f"_tensor_constant{i}"))
            _set_attribute(gm, name, _attribute(graph.owning_module, node.target))
            names[node.target] = name
        node.target = names[node.target]


def _attribute(module, target):
    path, _, name = target.rpartition(".")
    try:
        return getattr(module.get_submodule(path), name, None)
    except AttributeError:
        return None


def _replace_attributes(gm, replacement):
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr") or _attribute(gm, node.target) is not None:
            continue
        value = _attribute(replacement, node.target)
        if value is None:
            raise RuntimeError(
                f'Attempted to create a "{node.op}" node during subgraph rewriting with target {node.target}, but '
                "the referenced attribute does not exist in the replacement GraphModule"
            )
        value = copy.deepcopy(value)
        path, _, name = node.target.rpartition(".")
        if isinstance(value, torch.nn.Module):
            gm.add_submodule(node.target, value)
            continue
        if path and _attribute(gm, path) is None:
            gm.add_submodule(path, torch.nn.Module())
        setattr(gm.get_submodule(path), name, value)
    gm.graph.lint()
