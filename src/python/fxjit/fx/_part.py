"""Parts of a graph as modules of their own."""

from .graph import Graph
from .graph_module import GraphModule

CALLS = ("call_function", "call_method", "call_module")


def convex_hull(graph, nodes):
    """`nodes` with the calls on paths between them: what has to be in one part with them."""
    behind, before = set(nodes), set(nodes)
    for node in graph.nodes:
        if any(used in behind for used in node.all_input_nodes):
            behind.add(node)
    for node in reversed(graph.nodes):
        if any(user in before for user in node.users):
            before.add(node)
    return {node for node in behind & before if node.op in CALLS}


def extract_part(gm, nodes, outputs=None):
    """(GraphModule, input nodes, output nodes) of some of the calls of `gm`, in any order. Attributes are shared.

    outputs: nodes whose values are returned; by default those that others read, or that nobody reads. One output is
    returned as it is, several as a tuple. ValueError where a path between two nodes leads through a third.
    """
    inside = set(nodes)
    if convex_hull(gm.graph, inside) != inside:
        raise ValueError("the part is not closed: a path between two of its nodes leads through a node outside")
    ordered = [node for node in gm.graph.nodes if node in inside]
    read = dict.fromkeys(used for node in ordered for used in node.all_input_nodes if used not in inside)
    inputs = sorted(node for node in read if node.op != "get_attr")
    graph, env = Graph(), {}
    for node in inputs:
        env[node] = graph.placeholder(node.name, type_expr=node.type)
        env[node].meta = node.meta.copy()
    for node in (*sorted(node for node in read if node.op == "get_attr"), *ordered):
        env[node] = graph.node_copy(node, env.__getitem__)
    if outputs is None:
        outputs = [n for n in ordered if not n.users or any(user not in inside for user in n.users)]
    results = tuple(env[node] for node in outputs)
    graph.output(results[0] if len(results) == 1 else results)
    return GraphModule(gm, graph, "Part"), inputs, outputs
