"""Printed nodes and graphs, on both: str() is compared with torch.fx's letter by letter."""

import operator
import typing

import torch
from helpers import node_named


def build(fx):
    graph = fx.Graph()
    x = graph.placeholder("x", type_expr=torch.Tensor)
    y = graph.placeholder("y", default_value=2.5)
    p = graph.create_node("get_attr", "foo.bar")
    add = graph.call_function(operator.add, (x, p))
    getattr_ = graph.call_function(getattr, (add, "shape"))
    relu = graph.call_function(torch.relu, (add,), type_expr=typing.List[int])
    cat = graph.call_function(torch.cat, ([relu, add, 1],), {"dim": -1, "k": {"a": (x,), "b": slice(0, y, None)}})
    functional = graph.call_function(torch.nn.functional.relu6, (cat,), {"inplace": False})
    method = graph.call_method("to", (functional, torch.float16, torch.device("cpu")), {"memory_format": torch.preserve_format})
    linear = graph.call_module("lin.0", (method, None, True, ..., 1e-5, float("inf"), 1 + 2j, "text", b"bytes"))
    aten = graph.call_function(torch.ops.aten.add.Tensor, (linear, getattr_))
    graph.output(([aten], {"k": x}, None, ()))
    return graph


def test_pretty_print_graph(fx):
    assert str(build(fx)) == str(build(torch.fx))


def test_pretty_print_node(fx):
    for node, expected in zip(build(fx).nodes, build(torch.fx).nodes):
        assert node.format_node() == expected.format_node()
        assert repr(node) == str(node) == expected.name


def test_pretty_print_targets(fx):
    graph = build(fx)
    assert "operator.add" in node_named(graph, "add").format_node()
    assert "builtins.getattr" in node_named(graph, "getattr_1").format_node()
    assert "torch.relu" in node_named(graph, "relu").format_node()
    assert "torch.nn.functional.relu6" in node_named(graph, "relu6").format_node()


def test_pretty_print(fx):
    graph = fx.Tracer().trace(lambda x: operator.getitem(x, 0) + getattr(x, "foo"))
    assert "operator.getitem" in str(graph) and "builtins.getattr" in str(graph)


def printed_type(fx, annotation):
    graph = fx.Graph()
    x = graph.placeholder("x", type_expr=annotation)
    graph.output(graph.call_method("relu", (x,), type_expr=annotation))
    return str(graph)


def test_typename_print(fx):
    for annotation in (list[float], typing.Dict[str, int], int, torch.Tensor, "torch.Tensor", typing.Any):
        assert printed_type(fx, annotation) == printed_type(torch.fx, annotation)


def test_typename_print_pre_pep585(fx):
    assert "typing.List[float]" in printed_type(fx, typing.List[float])


def test_typename_print_union(fx):
    for annotation in (typing.Union[int, str], typing.Optional[int], int | None):
        assert printed_type(fx, annotation) == printed_type(torch.fx, annotation)


def test_values_print_as_in_python(fx):
    values = [
        0.1, 1e-07, 1e22, 123456789.123, -0.0, 1e16, float("nan"), 10**20, True, None, "a'b", "\n", ["s", ("t",)], {"k": "v"},
        {1: [2]}, torch.bfloat16, torch.device("cuda", 1), slice(None), range(3), torch.sparse_coo, object, [None, ...],
        [torch.float32, 1.0], (torch.int8,), {"d": torch.device("meta")}, [slice(0, 1)], 1j, [1j], int, [int], b"x", [b"x"],
    ]  # fmt: skip

    def run(lib):
        graph = lib.Graph()
        return [graph.call_function(max, (v,), {"k": v}).format_node() for v in values]

    for ours, theirs in zip(run(fx), run(torch.fx)):
        assert ours == theirs


def test_tensor_metadata(fx):
    def run(lib):
        graph = lib.Graph()
        node = graph.call_function(torch.relu, (graph.placeholder("x"),))
        node.meta["val"] = torch.empty(2, 3, device="meta")
        return node.format_node(include_tensor_metadata=True)

    assert run(fx) == run(torch.fx)


def test_tables(ours, capsys):
    build(ours).print_tabular()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["opcode", "name", "target", "args", "kwargs"]
    assert any("call_module" in line and "lin.0" in line for line in lines)


def test_print_readable_shows_shapes_lines_and_children(ours, capsys):
    class Traced(ours.Tracer):
        record_stack_traces = True

        def is_leaf_module(self, m, qualname):
            return True

    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.child = ours.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))

        def forward(self, x):
            return self.child(x).t() + 1

    m = M()
    gm = ours.GraphModule(m, Traced().trace(m))
    ours.passes.fake_tensor_prop.FakeTensorProp(gm).propagate(torch.randn(2, 3))
    text = gm.print_readable(include_stride=True, include_device=True, additional_meta=["mine"])
    assert capsys.readouterr().out == text + "\n"
    assert '%t : "f32[3, 2][1, 3]cpu" [num_users=1] = call_method[target=t]' in text
    assert ", code: return self.child(x).t() + 1" in text and "    class child(torch.nn.Module):" in text
    assert not any(line != line.rstrip() for line in text.splitlines())
    assert '"f32[3, 2]" ' in gm.print_readable(print_output=False)
    assert "\033[34m[3, 2]\033[0m" in gm.print_readable(print_output=False, colored=True)
    list(gm.graph.nodes)[2].meta["mine"] = 7
    assert "# mine: 7" in gm.print_readable(print_output=False, additional_meta=["mine"])


def test_the_text_of_a_graph_leaves_its_return_type_out(fx):
    def run(x: torch.Tensor) -> torch.Tensor:
        return x

    graph = fx.symbolic_trace(run).graph
    assert str(graph).split("\n    ") == [
        "graph():",
        "%x : torch.Tensor [num_users=1] = placeholder[target=x]",
        "return x",
    ]
