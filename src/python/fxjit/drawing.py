"""Pictures of compiled programs: each node in the colour of what became of it."""

from __future__ import annotations

from .callees import is_torch_function
from .fx.passes.graph_drawer import Picture, draw

# The later, the more it says about a node that several things became of.
_ORDER = ("none", "kernel", "library", "aten", "python")


def compiled_picture(variant, title) -> Picture:
    """The captured graph of one variant of a compiled callable, drawn after its newest specialisation. Without one, what
    the generic form does: calls of torch are ATen, others Python."""
    graph, root = variant.captured.graph, variant.captured.root
    report = variant.function.report()
    classes, notes = {}, {}

    def add(names, kind, note):
        for name in names:
            if _ORDER.index(kind) >= _ORDER.index(classes.get(name, "none")):
                classes[name] = kind
            notes.setdefault(name, []).append(note)

    if report["specialisations"]:
        newest = report["specialisations"][-1]
        for i, kernel in enumerate(newest["kernels"]):
            add(kernel["nodes"], "kernel", f"kernel {i}")
        for call in newest["library_calls"]:
            add(call["nodes"], "library", call["target"])
        for call in newest["aten_calls"]:
            add(call["nodes"], "aten", call["target"])
    else:
        title += " (generic form)"
    for node in graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            classes.pop(node.name, None)
        elif report["specialisations"]:
            classes.setdefault(node.name, "none")
        else:
            classes[node.name] = "aten" if _calls_torch(node, root) else "python"
    notes = {name: [line for line in dict.fromkeys(lines)] for name, lines in notes.items()}
    return draw(_Drawn(root, graph), title, classes, notes, ignore_attributes=True)


def _calls_torch(node, root):
    if node.op == "call_module":
        return type(root.get_submodule(node.target)).__module__.startswith("torch.nn")
    return node.op == "call_method" or is_torch_function(node.target)


class _Drawn:
    """What draw() asks of a module."""

    def __init__(self, root, graph):
        self.graph, self.get_submodule = graph, getattr(root, "get_submodule", None)
