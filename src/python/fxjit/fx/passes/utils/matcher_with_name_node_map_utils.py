"""A matcher whose matches can be asked for nodes by name."""

from torch.utils import _pytree as pytree

from ...graph import PyTreeCodeGen, PyTreeInfo
from .matcher_utils import SubgraphMatcher

__all__ = ["SubgraphMatcherWithNameNodeMap"]


def _split_to_graph_and_name_node_map(gm):
    """Takes the last output, a dict from names to nodes, off the graph."""
    output = gm.graph.output_node()
    codegen = gm.graph._codegen
    out_spec = codegen.pytree_info.out_spec if isinstance(codegen, PyTreeCodeGen) else None
    result = output.args[0] if out_spec is None else pytree.tree_unflatten(output.args[0], out_spec)
    if not isinstance(result, tuple):
        raise AssertionError("Expecting the pattern graph to return a tuple")
    if len(result) < 2:
        raise AssertionError("Expecting the pattern graph to have at least two outputs")
    *values, names = result
    if not isinstance(names, dict):
        raise AssertionError("Expecting the input graph to have a dict output as the last element")
    flat, spec = pytree.tree_flatten(values)
    output.args = (flat,)
    if out_spec is not None:
        info = codegen.pytree_info
        codegen.pytree_info = PyTreeInfo(info.orig_args, info.in_spec, spec)
    gm.recompile()
    return gm, dict(names)


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """A SubgraphMatcher over a GraphModule that returns a tuple whose last element is a dict from names to nodes.

    match() fills name_node_map of the matches with the nodes of the graph that have these names in the pattern. The
    GraphModule loses the dict.
    """

    def __init__(
        self,
        pattern_gm,
        match_output=False,
        match_placeholder=False,
        remove_overlapping_matches=True,
        ignore_literals=False,
    ):
        pattern_gm, self.name_node_map = _split_to_graph_and_name_node_map(pattern_gm)
        super().__init__(
            pattern_gm.graph, match_output, match_placeholder, remove_overlapping_matches, ignore_literals
        )

    def match(self, graph, node_name_match=""):
        """As SubgraphMatcher.match; name_node_map of each match is filled."""
        matches = super().match(graph, node_name_match)
        for match in matches:
            match.name_node_map.update((name, match.nodes_map[n]) for name, n in self.name_node_map.items())
        return matches
