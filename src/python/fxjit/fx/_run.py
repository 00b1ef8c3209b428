"""How a GraphModule runs its snapshot as long as nothing faster does."""

from .._C import find_proxy, load_values
from ._wrap import call_leaf, is_wrapped
from .interpreter import Interpreter, last_uses

REQUIRED = object()  # default of a parameter without one that stands behind one with a default


def placeholder_values(graph, args):
    """One value per placeholder, of one per parameter of forward."""
    for (name, _, _), value in zip(graph._codegen.parameters(graph), args):
        if value is REQUIRED:
            raise TypeError(f"forward() missing 1 required positional argument: '{name}'")
    return graph.process_inputs(*args)


class SnapshotInterpreter(Interpreter):
    """Runs a snapshot on one value per parameter of forward. Errors keep class and text; the node is a note on them."""

    def __init__(self, module, snapshot):
        self.module, self.graph, self.env = module, snapshot, {}
        self.garbage_collect_values, self.extra_traceback = True, False
        if "_last_uses" not in snapshot.__dict__:
            snapshot._last_uses = last_uses(snapshot)
            for node in snapshot.nodes:
                if not node.users and node.op != "output":
                    snapshot._last_uses.setdefault(node, []).append(node)  # nobody uses it: gone at once
        self.user_to_last_uses = snapshot._last_uses

    def run_parameters(self, args):
        values = placeholder_values(self.graph, args)
        env = dict(zip(self.graph.find_nodes(op="placeholder"), values))
        del args, values  # the environment alone keeps them alive, up to their last use
        return self.graph.process_outputs(self.run(initial_env=env, enable_io_processing=False))

    def map_nodes_to_values(self, args, n):
        return load_values(args, self.env)

    def run_node(self, n):
        try:
            return super().run_node(n)
        except Exception as e:
            if hasattr(e, "add_note"):
                origin = f"\nOriginal traceback:\n{n.stack_trace}" if n.stack_trace else ""
                e.add_note(f"While executing {n.format_node()}{origin}")
            raise


class Retracer(SnapshotInterpreter):
    """The graph met proxies: what it does is recorded again, node by node. What was a leaf remains one."""

    def run_node(self, n):
        self.was_leaf = n.op == "call_function" and n.meta.get("is_wrapped", False)
        return super().run_node(n)

    def call_function(self, target, args, kwargs):
        proxy = find_proxy((args, kwargs))
        if proxy is not None:
            automatic = getattr(proxy.tracer, "_autowrap_function_ids", ())
            if self.was_leaf or is_wrapped(target) or id(target) in automatic:
                return call_leaf(proxy.tracer, target, args, kwargs)
        return target(*args, **kwargs)
