"""Misuse, and the error that it gets: class and text are torch.fx's, ours add the node and the place."""

import math
import operator

import pytest
import torch
from helpers import names, node_named

CONTROL_FLOW = "symbolically traced variables cannot be used as inputs to control flow"
ITERATION = "Proxy object cannot be iterated"


def star_unpack(x):
    a, *b = x
    return a


def two_equal(x):
    return 0 < x < 1


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: 1 if x.sum() > 0 else 2, lambda x: not x, lambda x: x and 1, two_equal, lambda x: min(x, 1),
        lambda x: bool(x),
    ],
    ids=["if", "not", "and", "chained comparison", "min", "bool"],
)  # fmt: skip
def test_control_flow_raises(fx, fn):
    with pytest.raises(fx.proxy.TraceError, match=CONTROL_FLOW) as info:
        fx.Tracer().trace(fn)
    assert isinstance(info.value, ValueError)


def test_a_while_loop_and_an_assertion_raise(fx):
    def loop(x):
        while x.sum() > 0:
            x = x - 1
        return x

    def check(x):
        assert x.sum() > 0
        return x

    for fn in (loop, check):
        with pytest.raises(fx.proxy.TraceError, match=CONTROL_FLOW):
            fx.Tracer().trace(fn)


@pytest.mark.parametrize(
    "fn",
    [lambda x: [v for v in x], lambda x: 1 in x, star_unpack, lambda x: print(*x), lambda x: sum(x)],
    ids=["for", "in", "starred unpack", "starred call", "sum"],
)
def test_iteration_raises(fx, fn):
    with pytest.raises(fx.proxy.TraceError, match=ITERATION):
        fx.Tracer().trace(fn)


def test_mapping_unpack_raises_as_iteration(fx):
    with pytest.raises(fx.proxy.TraceError, match=ITERATION):
        fx.Tracer().trace(lambda x: dict(**x))


def test_the_error_names_node_and_source_line(ours):
    def f(x):
        y = x.sum() > 0
        return x if y else -x

    line = f.__code__.co_firstlineno + 2
    with pytest.raises(ours.TraceError, match=rf"node 'gt', at .*test_errors\.py:{line} in f"):
        ours.Tracer().trace(f)
    with pytest.raises(ours.TraceError, match=r"node 'neg', at .*test_errors\.py:\d+ in <lambda>"):
        ours.Tracer().trace(lambda x: list(x.neg()))


def test_trace_error_is_one_class_for_both(ours):
    assert ours.TraceError is torch.fx.proxy.TraceError


def test_len_says_how_to_wrap_it(fx):
    with pytest.raises(RuntimeError, match="'len' is not supported in symbolic tracing by default.*wrap"):
        fx.Tracer().trace(lambda x: len(x))
    with pytest.raises(RuntimeError, match="'len' is not supported in symbolic tracing by default.*wrap"):
        fx.Tracer().trace(lambda x: list(reversed(x)))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: int(x), lambda x: float(x), lambda x: range(x), lambda x: [1, 2][x], lambda x: round(x),
        lambda x: divmod(x, 2), lambda x: f"{x:.2f}",
    ],
    ids=["int", "float", "range", "index", "round", "divmod", "format"],
)  # fmt: skip
def test_builtins_raise_their_type_errors(fx, fn):
    with pytest.raises(TypeError, match="Proxy"):
        fx.Tracer().trace(fn)


def set_item(x):
    x[0] = 1


def delete_item(x):
    del x[0]


@pytest.mark.parametrize("fn", [set_item, delete_item])
def test_items_can_be_neither_assigned_nor_deleted(fx, fn):
    with pytest.raises(TypeError, match="'Proxy' object does(n't| not) support item (assignment|deletion)"):
        fx.Tracer().trace(fn)


def test_self_must_not_hide_in_varargs(fx):
    class M(torch.nn.Module):
        def forward(*args):
            return args[1]

    with pytest.raises(RuntimeError, match="``self`` argument cannot be part of \\*args expansion"):
        fx.Tracer().trace(M())


def test_wrap_at_the_wrong_place_or_of_the_wrong_thing(fx, program):
    with pytest.raises(NotImplementedError, match="wrap must be called at the top level of a module"):
        fx.wrap("len")
    with pytest.raises(RuntimeError, match="Unsupported type for global function"):
        program(fx, "fx.wrap(5)", "wrap_int")


def test_an_unknown_name_is_refused_by_wrap_itself(ours, program):
    with pytest.raises(NameError, match="has no global 'nothing_here'"):
        program(ours, "fx.wrap('nothing_here')", "wrap_unknown")
    with pytest.raises(NameError, match="has no global '<lambda>'"):
        program(ours, "fx.wrap(lambda x: x)", "wrap_lambda")
    with pytest.raises(NameError, match="has no global 'relu'"):
        program(ours, "fx.wrap(torch.relu)", "wrap_attribute")
    program(ours, "fx.wrap('later')\ndef later(x): return x", "wrap_later")


def test_two_tracers_in_one_torch_call(fx):
    x, y = (fx.Proxy(fx.Graph().placeholder("x")) for _ in range(2))
    with pytest.raises(RuntimeError, match="Found multiple different tracers.*while trying to trace operations"):
        torch.add(x, y)
    assert (x + y.node.graph.nodes.__len__()).node.op == "call_function"


def test_insert_points_and_moves_stay_in_their_graph(fx):
    graph, other = fx.Graph(), fx.Graph()
    x, y = graph.placeholder("x"), other.placeholder("y")
    for insert in (graph.inserting_before, graph.inserting_after):
        with pytest.raises(AssertionError, match="not in graph"):
            insert(y)
    with pytest.raises(AssertionError):
        x.prepend(y)
    x.prepend(x)
    assert names(graph) == ["x"]


def test_targets_of_the_wrong_kind(fx):
    graph = fx.Graph()
    with pytest.raises(ValueError, match="but a Callable is expected"):
        graph.create_node("call_function", "text", (), {})
    with pytest.raises(ValueError, match="but a str is expected"):
        graph.create_node("call_method", operator.add, (), {})
    with pytest.raises(AssertionError):
        graph.create_node("nonsense", "x", (), {})


def test_arguments_of_the_wrong_kind(fx):
    graph = fx.Graph()
    with pytest.raises(AssertionError, match="args must be a tuple"):
        graph.create_node("call_function", max, [1], {})
    with pytest.raises(AssertionError, match="kwargs must be a dict"):
        graph.create_node("call_function", max, (), [1])


def test_arguments_cannot_be_edited_in_place(fx):
    graph = fx.Graph()
    node = graph.call_function(max, ([1, 2],), {"k": {"a": 1}})
    for edit in (
        lambda: node.args[0].append(3), lambda: operator.setitem(node.args[0], 0, 5),
        lambda: operator.setitem(node.kwargs, "z", 1), lambda: node.kwargs["k"].update(b=2),
    ):  # fmt: skip
        with pytest.raises(TypeError, match="does not support mutation(.|\n)*create a new copy"):
            edit()
    assert isinstance(node.args[0], list) and isinstance(node.kwargs, dict)


def test_argument_updates_out_of_range(fx):
    node = fx.Graph().call_function(max, (1, 2))
    with pytest.raises(IndexError):
        node.update_arg(2, 5)
    with pytest.raises(AssertionError, match="insert_args index must be between 0 and len"):
        node.insert_arg(3, 5)
    node.update_arg(-1, 5)
    node.insert_arg(0, 7)
    node.update_kwarg("k", 9)
    assert node.args == (7, 1, 5) and dict(node.kwargs) == {"k": 9}


def test_graph_module_roots(fx):
    graph = fx.Graph()
    graph.output(graph.call_module("foo.bar", (graph.placeholder("x"),)))
    with pytest.raises(RuntimeError, match="referenced target foo.bar but that target was not provided"):
        fx.GraphModule({}, graph)
    with pytest.raises(RuntimeError, match="Unsupported type"):
        fx.GraphModule(5, graph)
    module = fx.GraphModule({"foo.bar": torch.nn.ReLU()}, graph)
    with pytest.raises(AssertionError, match="Expected a Graph instance"):
        module.graph = "graph"


def test_lint(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    neg = graph.call_function(operator.neg, (x,))
    graph.output(neg)
    graph.lint()
    neg.append(x)
    with pytest.raises(RuntimeError, match="was used before it has been defined"):
        graph.lint()
    neg.prepend(x)
    neg.name = "x"
    with pytest.raises(RuntimeError, match="redefined name x"):
        graph.lint()


def test_lint_of_targets(fx):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(2))
            self.linear = torch.nn.Linear(2, 2)

        def forward(self, x):
            return self.linear(x + self.w)

    traced = fx.symbolic_trace(M())
    traced.graph.lint()
    node_named(traced.graph, "w").target = "v"
    with pytest.raises(RuntimeError, match="references nonexistent attribute v"):
        traced.graph.lint()
    node_named(traced.graph, "w").target = "w"
    node_named(traced.graph, "linear").target = "w"
    with pytest.raises(RuntimeError, match="does not reference an nn.Module"):
        traced.graph.lint()


def test_get_attr_of_a_missing_attribute_warns(fx):
    traced = fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))
    with pytest.warns(UserWarning, match="no underlying reference in the owning GraphModule"):
        traced.graph.get_attr("missing")


def test_interpreter_with_too_few_arguments(fx):
    traced = fx.symbolic_trace(lambda x, y: x + y)
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter y"):
        fx.Interpreter(traced).run(torch.ones(1))
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        traced(torch.ones(1))
    with pytest.raises(TypeError, match="takes 3 positional arguments but 4 were given"):
        traced(1, 2, 3)


def test_run_errors_keep_their_class(fx):
    traced = fx.symbolic_trace(lambda x: x.matmul(x))
    with pytest.raises(RuntimeError) as direct:
        torch.ones(2, 3).matmul(torch.ones(2, 3))
    with pytest.raises(RuntimeError) as info:
        traced(torch.ones(2, 3))
    assert str(direct.value) == str(info.value)
    with pytest.raises(RuntimeError, match="While executing %matmul"):
        fx.Interpreter(traced).run(torch.ones(2, 3))


def test_run_errors_are_noted_with_their_node(ours):
    traced = ours.symbolic_trace(lambda x: x.matmul(x))
    with pytest.raises(RuntimeError) as info:
        traced(torch.ones(2, 3))
    assert any("While executing %matmul" in note for note in info.value.__notes__)


def test_a_failing_callback_passes_through(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(operator.neg, (x,))

    def fail(n):
        raise KeyError("mine")

    for call in (
        lambda: fx.Graph().node_copy(node, fail), lambda: fx.node.map_arg(node.args, fail),
        lambda: x.replace_all_uses_with(node, fail), lambda: graph.eliminate_dead_code(fail),
    ):  # fmt: skip
        with pytest.raises(KeyError, match="mine"):
            call()
    assert names(graph) == ["x", "neg"]


def test_functions_of_math_are_recorded(fx):
    graph = fx.Tracer().trace(lambda x: math.sqrt(x.size(0)))
    assert node_named(graph, "sqrt").target is math.sqrt


def test_an_argument_that_contains_itself_or_is_too_deep_is_a_recursion_error():
    import fxjit.fx

    cyclic, deep = [], []
    cyclic.append(cyclic)
    for _ in range(50_000):
        deep = [deep]
    for value in (cyclic, deep):
        graph = fxjit.fx.Graph()
        with pytest.raises(RecursionError):
            graph.output(value)
        with pytest.raises(RecursionError):
            fxjit.fx.symbolic_trace(lambda x: x + value)


@pytest.mark.parametrize("folder", ["/home/me/torch", "/home/me/fxjit/models", "/srv/site-packages/mine"])
def test_a_file_in_a_folder_named_like_a_library_is_the_users(ours, folder):
    scope = {}
    exec(compile("def f(x):\n    y = x.sum() > 0\n    return x if y else -x\n", f"{folder}/model.py", "exec"), scope)
    with pytest.raises(ours.TraceError, match=f"at {folder}/model.py:3 in f"):
        ours.symbolic_trace(scope["f"])
