"""Pictures of graphs and of compiled programs."""

import xml.etree.ElementTree as xml

import fxjit
import pytest
import torch
import torchvision
from fxjit.fx.passes.graph_drawer import FxGraphDrawer
from fxjit.fx.passes.shape_prop import ShapeProp


def texts(svg):
    return [e.text for e in xml.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def fills(svg):
    """headline -> colour of its box"""
    found = {}
    for g in xml.fromstring(svg).iter("{http://www.w3.org/2000/svg}g"):
        rect = g.find("{http://www.w3.org/2000/svg}rect")
        if rect is not None:
            found[g.find("{http://www.w3.org/2000/svg}text").text] = rect.get("fill")
    return found


KERNEL, LIBRARY, ATEN, PYTHON, NO_CODE = "#cdeccd", "#cfe0f7", "#fbe6b8", "#f6cccc", "#eeeeee"


def test_resnet_drawing(tmp_path):
    gm = fxjit.fx.symbolic_trace(torchvision.models.resnet18(weights=None).eval())
    ShapeProp(gm).propagate(torch.randn(1, 3, 64, 64))
    picture = FxGraphDrawer(gm, "resnet18").get_dot_graph()
    svg = picture.create_svg()
    shown = texts(svg)
    assert "resnet18" in shown and "layer1.0.conv1" in shown and "f32[1, 64, 16, 16]" in shown
    dot = picture.to_string()
    edges = sum(len(n.all_input_nodes) for n in gm.graph.nodes)
    assert dot.count(" -> ") == edges and dot.startswith("digraph")
    for name in ("a.svg", "a.dot"):
        picture.write(tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == svg and (tmp_path / "a.dot").read_text() == dot
    with pytest.raises(ValueError, match="rsvg-convert"):
        picture.write(tmp_path / "a.png")


def test_options_of_the_drawer():
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(2, 2))
            self.lin = torch.nn.Linear(2, 2)

        def forward(self, x):
            return torch.add(self.lin(x), self.w, alpha=3).add(torch.softmax(x, dim=-1))

    class Traced(fxjit.fx.Tracer):
        record_stack_traces = True

    tracer = Traced()
    gm = fxjit.fx.GraphModule(m := M(), tracer.trace(m))
    plain = texts(FxGraphDrawer(gm, "m").get_dot_graph().create_svg())
    assert "w" in plain and "weight: f32[2, 2]" in plain and "(alpha=3)" in plain
    options = {"ignore_getattr": True, "ignore_parameters_and_buffers": True, "skip_node_names_in_args": False}
    bare = texts(FxGraphDrawer(gm, "m", **options).get_dot_graph().create_svg())
    assert "w" not in bare and "weight: f32[2, 2]" not in bare and "(lin, w, alpha=3)" in bare
    lines = texts(FxGraphDrawer(gm, "m", parse_stack_trace=True).get_dot_graph().create_svg())
    assert any("test_draw.py" in (line or "") for line in lines)
    assert any("dim=-1" in line for line in texts(FxGraphDrawer(gm, "m", normalize_args=True, skip_node_names_in_args=False).get_dot_graph().create_svg()))


def test_nested_graph_modules_have_pictures_of_their_own():
    child = fxjit.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))
    graph = fxjit.fx.Graph()
    graph.output(graph.call_module("child", (graph.placeholder("x"),)))
    drawer = FxGraphDrawer(fxjit.fx.GraphModule({"child": child}, graph), "top")
    assert list(drawer.get_all_dot_graphs()) == ["top", "top_child"]
    assert "ReLU" in drawer.get_dot_graph("child").to_string()


def test_compiled_program_shows_what_became_of_its_nodes(tmp_path):
    w, b = torch.randn(64, 64), torch.randn(64)

    @fxjit.compile
    def f(x, g):
        y = torch.softmax(torch.nn.functional.linear(x, w, b), -1) * g.sigmoid()
        return (y.view(-1) - 0.5).relu(), torch.sort(y)[0]

    with pytest.raises(RuntimeError, match="nothing was called yet"):
        f.draw(tmp_path / "early.svg")
    with torch.no_grad():
        for _ in range(2):
            f(torch.randn(8, 64), torch.randn(64))
    f.draw(tmp_path / "f.svg")
    colours = fills((tmp_path / "f.svg").read_bytes())
    assert colours["sigmoid = .sigmoid()"] == colours["softmax"] == colours["relu = .relu()"] == KERNEL
    assert colours["sort"] == ATEN and colours["view = .view()"] in (NO_CODE, KERNEL)
    assert colours["linear"] in (LIBRARY, ATEN)
    f.explain().draw(tmp_path / "f.dot")
    assert "kernel 0" in (tmp_path / "f.dot").read_text()


def test_generic_programs_are_drawn_as_calls():
    gm = fxjit.fx.symbolic_trace(lambda x: torch.relu(x).sin())
    f = fxjit.compile(gm)
    x = torch.ones(3, requires_grad=True)
    with pytest.warns(UserWarning, match="requires grad"):
        f(x)
    colours = fills(f.picture().create_svg())
    assert colours["relu"] == colours["sin = .sin()"] == ATEN
