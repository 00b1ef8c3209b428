"""Pictures of graphs as DOT and SVG; no other program is needed."""

import os

import torch

from ..._C import draw_graph
from ..graph_module import GraphModule
from ..operator_schemas import normalize_function

__all__ = ["FxGraphDrawer", "Picture"]

# What became of a node in a compiled program: the core's numbers.
CLASSES = {"": 0, "kernel": 1, "library": 2, "aten": 3, "python": 4, "none": 5}


class Picture:
    """A drawn graph; str() is its DOT text.

    rows: name of a node -> (class, further lines, hidden), see CLASSES
    """

    def __init__(self, graph, title, rows):
        self.graph, self.title, self.rows = graph, title, rows

    def to_string(self):
        """The DOT text."""
        return draw_graph(self.graph, "dot", self.title, self.rows)

    __str__ = to_string

    def create_svg(self):
        """The SVG as bytes."""
        return draw_graph(self.graph, "svg", self.title, self.rows).encode()

    def _repr_svg_(self):  # notebooks show it
        return self.create_svg().decode()

    def write(self, path, prog=None, format=None):  # noqa: A002 - pydot's name
        """Writes DOT, or SVG where the path ends in .svg. ValueError for another ending than these."""
        kind = format or os.path.splitext(os.fspath(path))[1].lstrip(".").lower()
        if kind == "svg":
            return self.write_svg(path)
        if kind in ("dot", "raw", "gv"):
            return self.write_dot(path)
        raise ValueError(
            f"{os.fspath(path)!r}: pictures are written as .svg or .dot; `dot -Tpng` and `rsvg-convert` make others of these"
        )

    def write_dot(self, path, **_):
        """Writes the DOT text; True, as pydot returns."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_string())
        return True

    write_raw = write_dot

    def write_svg(self, path, **_):
        """Writes the SVG; True, as pydot returns."""
        with open(path, "wb") as file:
            file.write(self.create_svg())
        return True

    def mark(self, names):
        """Draws these nodes in another colour than all others."""
        for node in self.graph.nodes:
            _, detail, hidden = self.rows.get(node.name, (0, "", False))
            self.rows[node.name] = (CLASSES["python" if node.name in names else "none"], detail, hidden)


class FxGraphDrawer:
    """FxGraphDrawer(gm, name).get_dot_graph().write_svg("a.svg")

    ignore_getattr: leaves get_attr nodes out
    ignore_parameters_and_buffers: leaves the parameters and buffers of called modules out
    skip_node_names_in_args: shows the arguments that are no nodes only
    parse_stack_trace: shows the line of the program that made the node
    normalize_args: shows arguments by name
    dot_graph_shape: accepted for torch.fx's sake; boxes are boxes
    """

    def __init__(
        self,
        graph_module,
        name,
        ignore_getattr=False,
        ignore_parameters_and_buffers=False,
        skip_node_names_in_args=True,
        parse_stack_trace=False,
        dot_graph_shape=None,
        normalize_args=False,
    ):
        self._name = name
        self._options = {
            "ignore_getattr": ignore_getattr,
            "ignore_attributes": ignore_parameters_and_buffers,
            "constants_only": skip_node_names_in_args,
            "with_line": parse_stack_trace,
            "normalize": normalize_args,
        }
        self._pictures = {name: draw(graph_module, name, **self._options)}
        for node in graph_module.graph.nodes:
            if node.op == "call_module":
                child = graph_module.get_submodule(node.target)
                if isinstance(child, GraphModule):
                    title = f"{name}_{node.target}"
                    self._pictures[title] = draw(child, title, **self._options)

    def get_dot_graph(self, submod_name=None):
        """The Picture of the module, or of the GraphModule that it calls by this name."""
        return self.get_main_dot_graph() if submod_name is None else self.get_submod_dot_graph(submod_name)

    def get_main_dot_graph(self):
        return self._pictures[self._name]

    def get_submod_dot_graph(self, submod_name):
        return self._pictures[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self):
        """name -> Picture; those of called GraphModules are <name>_<target>."""
        return self._pictures


def draw(module, title, classes=None, notes=None, ignore_getattr=False, **options):
    """The Picture of a GraphModule.

    classes: name of a node -> key of CLASSES; notes: name -> further lines below the others
    """
    rows = {}
    for node in module.graph.nodes:
        lines = [*_lines(module, node, **options), *((notes or {}).get(node.name, ()))]
        hidden = ignore_getattr and node.op == "get_attr"
        rows[node.name] = (CLASSES[(classes or {}).get(node.name, "")], "\n".join(lines), hidden)
    return Picture(module.graph, title, rows)


def _lines(module, node, ignore_attributes=False, constants_only=True, with_line=False, normalize=False):
    if node.op == "call_module":
        child = module.get_submodule(node.target)
        text = repr(child) if not list(child.children()) else type(child).__name__
        yield text.splitlines()[0]
        if not ignore_attributes:
            named = [*child.named_parameters(recurse=False), *child.named_buffers(recurse=False)]
            yield from (f"{name}: {tensor_text(value)}" for name, value in named if value.dim() > 1)
    elif node.op not in ("output", "get_attr"):
        arguments = _arguments(node, constants_only, normalize)
        if arguments:
            yield f"({arguments})"
    meta = node.meta.get("tensor_meta", node.meta.get("val"))
    if hasattr(meta, "dtype") and hasattr(meta, "shape"):
        yield tensor_text(meta)
    elif isinstance(meta, (tuple, list)) and not hasattr(meta, "shape"):
        yield ", ".join(tensor_text(m) for m in meta if hasattr(m, "shape"))
    if with_line and node.stack_trace:
        yield _source_line(node.stack_trace)


def _arguments(node, constants_only, normalize):
    args, kwargs = node.args, node.kwargs
    if normalize and node.op == "call_function":
        try:
            pair = normalize_function(node.target, args, kwargs, normalize_to_only_use_kwargs=True)
        except RuntimeError:  # overloads that types would have to tell apart
            pair = None
        args, kwargs = pair if pair is not None else (args, kwargs)

    def shown(value):
        return not constants_only or not _has_node(value)

    parts = [str(a) for a in args if shown(a)]
    return ", ".join(parts + [f"{key}={value}" for key, value in kwargs.items() if shown(value)])


def _has_node(value):
    from ..node import Node, map_arg

    found = []
    map_arg(value, lambda n: found.append(n) or n)
    return bool(found) or isinstance(value, Node)


def tensor_text(t):
    """ "f32[2, 8]" """
    name = torch.fx.graph.dtype_abbrs.get(t.dtype, str(t.dtype))
    return f"{name}[{', '.join(map(str, t.shape))}]"


def _source_line(trace):
    """ "model.py:12 y = x + 1" of a formatted stack."""
    lines = [line.strip() for line in trace.strip().splitlines()]
    at = max((i for i, line in enumerate(lines) if line.startswith("File ")), default=None)
    if at is None:
        return lines[-1] if lines else ""
    path, number = lines[at].split(", ")[:2]
    file = "/".join(path[6:-1].split("/")[-2:])
    return f"{file}:{number.removeprefix('line ')} {lines[at + 1] if at + 1 < len(lines) else ''}"
