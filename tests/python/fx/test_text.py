"""The text format from Python: what torch.fx can hold survives, and what a text names is looked up safely."""

import collections
import dataclasses
import enum
import typing

import pytest
import torch
from fxjit import fx


class Color(enum.Enum):
    RED = 1


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass(frozen=True)
class Scale:
    by: float
    names: tuple = ()


def user_function(x):
    return x


GLOBALS = [Color, Point, Scale, user_function]


def roundtrip(graph, **kw):
    text = fx.print_text(graph, **kw)
    read = fx.parse_text(text, **kw)
    read.lint()
    assert str(read) == str(graph)
    assert fx.print_text(read, **kw) == text
    for a, b in zip(graph.nodes, read.nodes):
        assert (a.op, a.name, a.type) == (b.op, b.name, b.type)
        assert a.target is b.target or a.target == b.target
    return read


VALUES = [
    None, True, 0, -7, 2**80, 0.1, -0.0, float("inf"), 1e300, 2 + 3j, "text", "gr\u00fc\u00df \U0001f600\n\x00\"", b"\x00\xff",
    ..., (1,), (), [1, [2.0]], {"a": (1, 2)}, {1: 2}, slice(1, None, -1), range(0, 9, 2), torch.float16,
    torch.float8_e4m3fn, torch.device("cuda:1"), torch.strided, torch.channels_last, torch.Size([2, 3]), frozenset({1}),
    Color.RED, Point(1, "y"), Scale(0.5, ("a",)), torch.relu, torch.ops.aten.add.Tensor, torch.Tensor, int, user_function,
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_every_value(value):
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(torch.add, (x, value), {"out": [value, (x, value)]}))
    read = roundtrip(graph, globals=GLOBALS)
    call, original = list(read.nodes)[1], list(graph.nodes)[1]
    assert call.args[1] == value and type(call.args[1]) is type(original.args[1])
    assert repr(call.kwargs["out"]) == repr(original.kwargs["out"])


ANNOTATIONS = [
    torch.Tensor, int, type(None), typing.Optional[torch.Tensor], typing.List[int], list[int], dict[str, torch.Tensor],
    typing.Tuple[int, ...], typing.Union[int, str, None], int | None, typing.Any, "f32[4, s0] (s0, 1)", "a name", Color,
]  # fmt: skip


@pytest.mark.parametrize("annotation", ANNOTATIONS, ids=str)
def test_annotations(annotation):
    graph = fx.Graph()
    graph.output(graph.placeholder("x", annotation), annotation)
    read = roundtrip(graph, globals=GLOBALS)
    assert list(read.nodes)[0].type == annotation


FUNCTIONS = [
    torch.relu, torch.nn.functional.max_pool2d, torch.nn.functional.linear, torch.conv2d, torch.linalg.norm,
    torch.fft.fft, torch.special.erf, torch.Tensor.add, torch.ops.aten.relu.default, torch.ops.aten.sum.dim_IntList,
    torch.ops.aten.add, torch.zeros, torch.nn.functional.scaled_dot_product_attention, getattr, len, torch._assert,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
def test_functions_of_torch_need_no_globals(function):
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(function, (x, "shape")))
    assert list(roundtrip(graph).nodes)[1].target is function


def test_selected_meta_survives():
    graph = fx.symbolic_trace(lambda x: x + 1).graph
    node = list(graph.nodes)[1]
    node.meta = {"stack_trace": "line 1\nline 2", "custom": {"k": [1]}, "val": torch.zeros(2)}
    assert list(roundtrip(graph).nodes)[1].meta == {"stack_trace": "line 1\nline 2", "custom": {"k": [1]}}


HOSTILE_FUNCTIONS = [
    "os:system", "posix:system", "subprocess:Popen", "builtins:eval", "builtins:exec", "builtins:__import__",
    "builtins:open", "builtins:setattr", "torch:load", "torch.hub:load", "torch:compile", "torch.ops:load_library",
    "torch:os.system", "torch:Tensor.__reduce_ex__", "torch.Tensor:__class__", "torch.serialization:load",
    "aten::from_file", "aten::__class__.mro", "aten::add.nothing", "nowhere::op", "_operator:methodcaller",
    "_operator:attrgetter", "operator.__builtins__", "math:__loader__", "this:s", "torch", "", ":", "::",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_FUNCTIONS)
def test_hostile_functions_are_refused(name):
    import sys

    before = set(sys.modules)
    for line in (f'%y = call_function "{name}"(%x)', f'%y = torch:add(%x, @name("{name}"))'):
        with pytest.raises(fx.FormatError):
            fx.parse_text(f"fx 1\ngraph:\n  %x = placeholder\n  {line}\n  return %y\n")
    assert set(sys.modules) == before  # nothing was imported


HOSTILE_LINES = [
    "%y = call_method __class__(%x)", "%y = call_method __reduce_ex__(%x, 2)", "%y = call_method numpy(%x)",
    "%y = call_method tofile(%x, \"f\")", "%y = builtins:getattr(%x, \"__class__\")", "%y = builtins:getattr(%x, %x)",
    "%y = builtins:getattr(%x)", "%y = get_attr __class__.mro", "%y = get_attr a..b",
    "%y = placeholder \"y): import os #\"", "%y = placeholder y=1", "%y = placeholder \"***y\"", "%y = placeholder class",
    "%y = torch:add(%x, \"\\xff\")", "%y : @union(1, 2) = torch:add(%x)", "%y = torch:add(%x, @enum(\"torch:relu\", \"a\"))",
    "%y = torch:add(%x, @dataclass(\"torch:Tensor\"))", "%y = torch:add(%x, @tensor(0))", "%y = torch:add(%x, @what())",
    "%y = torch:add(%x, @int(\"" + "9" * 5000 + "\"))", "%y = torch:add(%x, @size(\"a\"))", "%y = torch:add(%x, @name())",
    "%y : @generic(@name(\"torch:relu\"), 1) = torch:add(%x)", "%y = torch:add(%x, @dtype(\"__dict__\"))",
    "%y = torch:add(%x, " + "[" * 100000 + ")", "%y = torch:add(%x, range(1.5, 2, 3))",
    "%y = torch:add(%x, @bytes(\"zz\"))", "%y = torch:add(%x, namedtuple(@name(\"builtins:int\"), 1, 2, 3))",
]  # fmt: skip


@pytest.mark.parametrize("line", HOSTILE_LINES, ids=lambda line: line[:60])
def test_hostile_lines_are_refused(line):
    with pytest.raises(fx.FormatError):
        fx.parse_text(f"fx 1\ngraph:\n  %x = placeholder\n  {line}\n  return %y\n")


def test_what_the_user_passes_is_found_and_nothing_else():
    text = fx.print_text(_graph_of(user_function))
    with pytest.raises(fx.FormatError, match="user_function' is not among the functions .* pass it in globals"):
        fx.parse_text(text)
    for given in ([user_function], {f"{__name__}:user_function": user_function}):
        assert list(fx.parse_text(text, globals=given).nodes)[1].target is user_function
    with pytest.raises(fx.FormatError, match="has no name under which it could be found again"):
        fx.print_text(_graph_of(lambda x: x))


def _graph_of(function):
    graph = fx.Graph()
    graph.output(graph.call_function(function, (graph.placeholder("x"),)))
    return graph


def test_errors_have_line_and_column():
    with pytest.raises(fx.FormatError, match=r"line 3, column 14: there is no node %z before this line"):
        fx.parse_text("fx 1\ngraph:\n  return (1, %z)\n")
    with pytest.raises(fx.FormatError, match="expected one graph, found 0"):
        fx.parse_text("fx 1\n")
    with pytest.raises(fx.FormatError, match="text must be a str, not bytes"):
        fx.parse_text(b"fx 1\n")
