"""Finds the places where a small graph, the pattern, occurs in a large one."""

import copy
import operator
from dataclasses import dataclass, field

import torch
from torch.fx.operator_schemas import normalize_function

from .... import _C
from ...node import Node

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """One place where a pattern was found.

    anchors: the pattern's nodes where matching began
    nodes_map: from the pattern's nodes to the graph's, or to constants
    placeholder_nodes: what the pattern's placeholders stand for, in order
    returning_nodes: the graph's nodes that the pattern returns
    name_node_map: names that SubgraphMatcherWithNameNodeMap was given for nodes
    """

    anchors: list[Node]
    nodes_map: dict[Node, Node] = field(default_factory=dict)
    placeholder_nodes: list[Node] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self):
        return InternalMatch(
            self.anchors, copy.copy(self.nodes_map), copy.copy(self.placeholder_nodes), copy.copy(self.returning_nodes)
        )


class SubgraphMatcher:
    """SubgraphMatcher(pattern, match_output=False, match_placeholder=False, remove_overlapping_matches=True,
    ignore_literals=False)

    match_output: the pattern's output node has to match as well
    match_placeholder: placeholders match placeholders only; otherwise any node, and any constant as an argument
    remove_overlapping_matches: of matches with common nodes return the first only
    ignore_literals: constants in the pattern match any constant
    """

    def __init__(
        self,
        pattern,
        match_output=False,
        match_placeholder=False,
        remove_overlapping_matches=True,
        ignore_literals=False,
    ):
        self.pattern = pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        self._find(pattern, check_only=True)
        output = pattern.output_node()
        self.pattern_placeholder_nodes = pattern.find_nodes(op="placeholder")
        self.pattern_returning_nodes = output.all_input_nodes
        sinks = [n for n in self.pattern_returning_nodes if len(n.users) == 1]
        self.pattern_anchors = [output] if match_output else sinks

    def match(self, graph, node_name_match=""):
        """All matches as a list of InternalMatch, in the program order of their first anchors."""
        return [
            InternalMatch(self.pattern_anchors, nodes_map, placeholders, returning)
            for nodes_map, placeholders, returning in self._find(graph, node_name_match)
        ]

    def _find(self, graph, node_name_match="", check_only=False):
        flags = (self.match_output, self.match_placeholder, self.remove_overlapping_matches, self.ignore_literals)
        hooks = (_all_arguments, self._match_attributes)
        return _C.match_subgraphs(self.pattern, None if check_only else graph, flags, node_name_match, *hooks)

    def _match_attributes(self, pn, gn):
        """Whether two get_attr nodes read what may stand for each other: tensors, whatever their values."""
        a, b = (operator.attrgetter(node.target)(node.graph.owning_module) for node in (pn, gn))
        if type(a) is not type(b):
            return False
        if isinstance(a, torch.Tensor):
            return True
        raise RuntimeError(f"Unsupported type {a} when matching attributes: {pn.target} of the pattern, node {pn}")


def _all_arguments(node):
    """The arguments of a call by name, in the order of the callee's signature and with its defaults; None where that is
    not known."""
    if node.op != "call_function":
        return None
    if isinstance(node.target, torch._ops.OpOverload):
        arguments = {}
        for i, parameter in enumerate(node.target._schema.arguments):
            if parameter.name in node.kwargs:
                value = node.kwargs[parameter.name]
            elif not parameter.kwarg_only and i < len(node.args):
                value = node.args[i]
            else:
                value = parameter.default_value
            arguments[parameter.name] = value
        return arguments
    try:
        found = normalize_function(node.target, node.args, node.kwargs, normalize_to_only_use_kwargs=True)
    except (RuntimeError, TypeError, ValueError):
        return None  # ambiguous, or no signature at all
    return None if found is None else dict(found.kwargs)
