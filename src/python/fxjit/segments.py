"""Programs with Python callees that stay calls: compiled parts between them, run in the order of the graph."""

from __future__ import annotations

from . import fx
from .callees import has_hooks, is_torch_function
from .fx._run import SnapshotInterpreter


def why_opaque(root, n):
    """Why the node's callee is to be called by Python at each call; None if the recorder can follow it."""
    if n.op == "call_module":
        sub = root.get_submodule(n.target)
        if getattr(type(sub), "reads_sizes_only", False):
            return None
        if has_hooks(sub) or "forward" in sub.__dict__ or not type(sub).__module__.startswith("torch.nn"):
            return f"{n.name} calls the Python module {type(sub).__name__}"
    if n.op == "call_function" and not is_torch_function(n.target):
        return f"{n.name} calls the Python function {getattr(n.target, '__name__', n.target)}"
    return None


class _Step:
    """A node that the interpreter runs, or a part: a compiled callable from the values of `inputs` to a tuple of those of
    `outputs`. dead: nodes whose values nobody reads afterwards."""

    def __init__(self, node=None, nodes=()):
        self.node, self.nodes = node, list(nodes)
        self.part, self.inputs, self.outputs, self.dead = None, [], [], []

    def reads(self):
        own = set(self.nodes)
        every = [self.node] if self.node is not None else self.nodes
        return list(dict.fromkeys(i for n in every for i in n.all_input_nodes if i not in own))


def _steps(root, graph):
    """Attributes are read before the part that they stand in: nothing in it can set them."""
    steps, run = [], []
    for n in graph.nodes:
        if n.op == "get_attr":
            steps.append(_Step(n))
        elif n.op == "output" or (n.op != "placeholder" and why_opaque(root, n)):
            if run:
                steps.append(_Step(nodes=run))
            run = []
            steps.append(_Step(n))
        elif n.op != "placeholder":
            run.append(n)
    return steps


def _graph_of(step):
    graph, copies = fx.Graph(), {}
    for i in step.inputs:
        copies[i] = graph.placeholder(i.name)
    for n in step.nodes:
        copies[n] = graph.node_copy(n, lambda i: copies[i])
    graph.output(tuple(copies[n] for n in step.outputs))
    return graph


class Segments:
    """A graph as such steps. make_part(root, graph): the compiled callable of a part."""

    def __init__(self, root, graph, make_part):
        self.root, self.graph = root, graph
        self.placeholders = [n for n in graph.nodes if n.op == "placeholder"]
        self.reasons = [why for n in graph.nodes if (why := why_opaque(root, n))]
        self.steps = _steps(root, graph)
        self.parts = []
        seen = set()
        for step in reversed(self.steps):
            step.inputs = step.reads()
            made = [step.node] if step.node is not None else step.nodes
            step.outputs = [n for n in made if n in seen]
            step.dead = [n for n in step.inputs if n not in seen]
            seen.update(step.inputs)
        for step in self.steps:
            if step.nodes:
                step.part = make_part(root, _graph_of(step))
                self.parts.append(step.part)

    def run(self, values):
        interpreter = SnapshotInterpreter(self.root, self.graph)
        env = interpreter.env = dict(zip(self.placeholders, values))
        del values
        # No name but the environment's holds a value: it is gone after its last use.
        for step in self.steps:
            if step.part is None:
                env[step.node] = interpreter.run_node(step.node)
                if not step.outputs and step.node.op != "output":
                    del env[step.node]
            else:
                env.update(zip(step.outputs, step.part(*[env[i] for i in step.inputs])))
            for n in step.dead:
                del env[n]
        return env[self.steps[-1].node]  # the output


def split_at_python_calls(root, graph, make_part):
    """The Segments of a graph, or None where all of it can be recorded, or nothing of it is worth compiling."""
    if not any(why_opaque(root, n) for n in graph.nodes):
        return None
    segments = Segments(root, graph, make_part)
    return segments if segments.parts else None
