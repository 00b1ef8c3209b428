"""The second seed, row by row: composites, wrap, inlining after and during the trace."""

import operator
import re
import threading
import weakref

import pytest
import torch
from helpers import LIBRARY, inline_all, names, node_named, same_bits, targets

INLINED_SIGMOIDS = ["x", "y", "float_1", "sigmoid", "half", "float_2", "sigmoid_1", "half_1", "add_lowp", "output"]


@pytest.fixture
def lib(fx, program):
    return program(fx, LIBRARY, "primitive_lib")


@pytest.fixture
def our_lib(ours, program):
    return program(ours, LIBRARY, "primitive_lib")


def inputs(dtype=torch.float16):
    generator = torch.Generator().manual_seed(5)
    return [torch.randn(16, generator=generator).to(dtype) for _ in range(2)]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_s2_01_composites_equal_eager(fx, lib, dtype):
    x, y = inputs(dtype)
    traced = fx.symbolic_trace(lib.Foo())
    assert same_bits(traced(x, y), lib.Foo()(x, y))
    inlined = inline_all(lib, traced, lib.sigmoid_lowp, lib.add_lowp)
    torch.testing.assert_close(inlined(x, y), lib.Foo()(x, y), rtol=2**-10, atol=2**-24)


def test_s2_02_a_wrapped_function_stays_itself(fx, lib):
    fn, x = lib.sigmoid_lowp, inputs()[0]
    before = fn(x)
    assert fx.wrap is not None and fn.__name__ == "sigmoid_lowp"
    fx.symbolic_trace(lib.Foo())
    assert lib.sigmoid_lowp is fn
    assert same_bits(fn(x), before)


def test_s2_02_wrap_returns_what_it_was_given_and_takes_names(fx, program):
    m = program(fx, "def f(x): return x\nr = fx.wrap(f)\nassert r is f\nfx.wrap('f')\ng = fx.wrap('len')\n")
    assert m.g == "len"


def test_s2_03_a_wrapped_call_without_proxies_runs(fx, lib, program):
    x = inputs()[0]
    m = program(fx, "lib = None\ndef f(x):\n    return x + helper(2)\ndef helper(n): return n * 21\nfx.wrap(helper)\n")
    graph = fx.Tracer().trace(m.f)
    assert [n.args for n in graph.nodes if n.op == "call_function"] == [(node_named(graph, "x"), 42)]
    assert x.dtype == torch.float16


def test_s2_04_nodes_of_the_traced_library(fx, lib):
    graph = fx.Tracer().trace(lib.Foo())
    assert names(graph) == ["x", "y", "sigmoid_lowp", "sigmoid_lowp_1", "add_lowp", "output"]
    assert targets(graph, "call_function") == [lib.sigmoid_lowp, lib.sigmoid_lowp, lib.add_lowp]
    assert all(n.meta["is_wrapped"] for n in graph.nodes if n.op == "call_function")


def test_s2_05_code_names_the_composites_at_three_call_sites(ours, our_lib):
    code = ours.symbolic_trace(our_lib.Foo()).code
    assert len(re.findall(r"primitive_lib\.sigmoid_lowp\b", code)) >= 2
    assert re.search(r"primitive_lib\.add_lowp\b", code)


def test_s2_05_values_are_released_after_their_last_use(fx, program):
    m = program(
        fx,
        "import weakref\n"
        "seen = []\n"
        "def make(x):\n    y = x + 1\n    seen.append(weakref.ref(y))\n    return y\n"
        "def probe(x):\n    seen.append([r() is None for r in seen if isinstance(r, weakref.ref)])\n    return x\n"
        "fx.wrap(make)\nfx.wrap(probe)\n"
        "def f(x):\n    a = make(x)\n    b = a * 2\n    c = probe(b)\n    return c + 1\n",
    )
    fx.symbolic_trace(m.f)(torch.ones(2))
    assert isinstance(m.seen[0], weakref.ref) and m.seen[1] == [True]


def test_s2_06_a_target_keeps_identity_and_qualified_name(fx, lib):
    graph = fx.Tracer().trace(lib.Foo())
    copy = fx.Graph()
    copy.graph_copy(graph, {})
    for g in (graph, copy):
        node = node_named(g, "add_lowp")
        assert node.target is lib.add_lowp
        assert node.target.__module__ == "primitive_lib"
        assert "primitive_lib.add_lowp" in node.format_node()


def test_s2_07_a_graph_may_be_edited_while_its_nodes_are_visited(fx, lib):
    traced = fx.symbolic_trace(lib.Foo())
    visited = []
    for node in traced.graph.nodes:
        visited.append(node.name)
        if node.target is lib.sigmoid_lowp:
            lib.inline_call(node)
    assert visited == ["x", "y", "sigmoid_lowp", "sigmoid_lowp_1", "add_lowp", "output"]


def test_s2_08_a_graph_appending_tracer_appends_at_the_insert_point(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    last = graph.output(x)
    tracer = fx.proxy.GraphAppendingTracer(graph)
    with graph.inserting_before(last):
        y = fx.Proxy(x, tracer).neg() + 1
    assert isinstance(y, fx.Proxy) and y.tracer is tracer
    assert names(graph) == ["x", "neg", "add", "output"]
    with pytest.raises(NotImplementedError):
        tracer.create_arg(object())


def test_s2_09_inserting_before_is_a_scope(fx, lib):
    graph = fx.Tracer().trace(lib.Foo())
    lib.inline_call(node_named(graph, "sigmoid_lowp"))
    assert names(graph)[:6] == ["x", "y", "float_1", "sigmoid", "half", "sigmoid_lowp_1"]
    y = node_named(graph, "y")
    with pytest.raises(KeyError):
        with graph.inserting_before(y):
            raise KeyError
    output = node_named(graph, "output")
    with graph.inserting_before(output):
        graph.call_method("neg", (y,))
    graph.call_method("abs", (y,))
    assert names(graph)[-3:] == ["neg", "output", "abs_1"]


def test_s2_10_map_arg_reaches_nodes_at_any_depth(fx):
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    node = graph.call_function(max, ([x, (y, 1)], slice(x, None)), {"k": {"a": [y]}})
    tracer = fx.proxy.GraphAppendingTracer(graph)
    args = fx.node.map_arg(node.args, lambda n: fx.Proxy(n, tracer))
    kwargs = fx.node.map_arg(node.kwargs, lambda n: fx.Proxy(n, tracer))
    assert isinstance(args, tuple) and isinstance(args[0], list) and isinstance(args[0][1], tuple)
    assert [p.node for p in (args[0][0], args[0][1][0], args[1].start, kwargs["k"]["a"][0])] == [x, y, x, y]
    assert args[0][1][1] == 1


def test_s2_11_a_composite_called_on_proxies_emits_its_body(fx, lib):
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"))
    lib.sigmoid_lowp(x)
    assert targets(graph, "call_method") == ["float", "sigmoid", "half"]


def test_s2_12_uses_are_moved_and_the_call_erased(fx, lib):
    graph = fx.Tracer().trace(lib.Foo())
    old, user = node_named(graph, "sigmoid_lowp"), node_named(graph, "add_lowp")
    lib.inline_call(old)
    graph.lint()
    assert user.args[0] is node_named(graph, "half") and user in node_named(graph, "half").users
    assert old not in list(graph.nodes) and len(old.users) == 0
    assert old.name == "sigmoid_lowp" and old.op == "call_function"  # still readable


def test_s2_13_edits_take_effect_at_recompile(fx, lib):
    x, y = inputs()
    traced = fx.symbolic_trace(lib.Foo())
    old = traced(x, y)
    node = node_named(traced.graph, "add_lowp")
    with traced.graph.inserting_after(node):
        negated = traced.graph.call_method("neg", (node,))
    node.replace_all_uses_with(negated, lambda user: user is not negated)
    assert same_bits(traced(x, y), old)
    traced.recompile()
    assert same_bits(traced(x, y), -old)


def test_s2_13_recompile_while_another_thread_runs_the_old_code(fx, lib):
    x, y = inputs()
    traced = fx.symbolic_trace(lib.Foo())
    plain = traced(x, y)
    results, stop = [], threading.Event()

    def run():
        while not stop.is_set():
            results.append(traced(x, y))

    thread = threading.Thread(target=run)
    thread.start()
    output = node_named(traced.graph, "output")
    for _ in range(20):
        value = output.args[0]
        with traced.graph.inserting_before(output):
            output.args = (traced.graph.call_method("neg", (value,)),)
        traced.recompile()
    stop.set()
    thread.join()
    assert results and all(same_bits(r, plain) or same_bits(r, -plain) for r in results)
    assert same_bits(traced(x, y), plain)


def test_s2_14_names_after_inlining(fx, lib):
    traced = inline_all(lib, fx.symbolic_trace(lib.Foo()), lib.sigmoid_lowp)
    assert names(traced.graph) == INLINED_SIGMOIDS


def test_s2_15_partial_and_full_inlining_equal_eager(fx, lib):
    x, y = inputs()
    traced = inline_all(lib, fx.symbolic_trace(lib.Foo()), lib.sigmoid_lowp)
    assert targets(traced.graph, "call_function") == [lib.add_lowp]
    assert same_bits(traced(x, y), lib.Foo()(x, y))
    inline_all(lib, traced, lib.add_lowp)
    assert targets(traced.graph, "call_function") == [operator.add]
    assert same_bits(traced(x, y), lib.Foo()(x, y))


def test_s2_16_the_helper_uses_its_argument(fx, lib):
    graph = fx.Tracer().trace(lib.Foo())
    other_variable = node_named(graph, "sigmoid_lowp_1")
    node = None  # noqa: F841 (the seed read a global of this name)
    lib.inline_call(other_variable)
    assert names(graph) == ["x", "y", "sigmoid_lowp", "float_1", "sigmoid", "half", "add_lowp", "output"]


def test_s2_17_functions_of_another_module_are_left_alone(fx, lib):
    class M(torch.nn.Module):
        def forward(self, x):
            return torch.relu(lib.sigmoid_lowp(x))

    graph = fx.Tracer().trace(lib.Foo())
    with graph.inserting_before(node_named(graph, "output")):
        graph.call_function(torch.relu, (node_named(graph, "add_lowp"),))
    for node in graph.nodes:
        if node.op == "call_function" and node.target.__module__ == lib.inline_call.__module__:
            lib.inline_call(node)
    assert torch.relu in targets(graph, "call_function")
    assert lib.add_lowp not in targets(graph, "call_function")


def test_s2_18_create_node_gets_nodes_not_proxies(fx, lib):
    seen = []

    class T(fx.Tracer):
        def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
            seen.append((kind, args, kwargs))
            return super().create_node(kind, target, args, kwargs, name, type_expr)

    T().trace(lib.Foo())
    (_, args, kwargs) = next(s for s in seen if s[0] == "call_function")
    assert isinstance(args, tuple) and isinstance(kwargs, dict) and isinstance(args[0], fx.Node)


def test_s2_19_the_inlining_tracer_consumes_no_name(fx, lib):
    graph = lib.InliningTracer().trace(lib.Foo())
    expected = ["x", "y", "sigmoid_lowp", "sigmoid_lowp_1", "float_1", "float_2", "add", "half", "output"]
    assert names(graph) == expected


def test_s2_20_other_calls_go_to_the_base_class(fx, lib):
    graph = lib.InliningTracer().trace(lib.Foo())
    assert targets(graph, "call_function") == [lib.sigmoid_lowp, lib.sigmoid_lowp, operator.add]


def test_s2_21_the_graph_in_a_graph_module_runs(fx, lib):
    f = lib.Foo()
    x, y = inputs()
    graph = lib.InliningTracer().trace(f)
    assert isinstance(graph, fx.Graph)
    assert same_bits(fx.GraphModule(f, graph)(x, y), f(x, y))


def test_s2_22_kinds_of_the_inlined_operations(fx, lib):
    graph = lib.InliningTracer().trace(lib.Foo())
    assert (node_named(graph, "add").op, node_named(graph, "add").target) == ("call_function", operator.add)
    assert [(n.op, n.target) for n in graph.nodes if n.name in ("float_1", "half")] == [
        ("call_method", "float"), ("call_method", "half")
    ]  # fmt: skip


def test_s2_26_two_traces_leak_no_state(fx, lib):
    first = lib.InliningTracer().trace(lib.Foo())
    second = lib.InliningTracer().trace(lib.Foo())
    assert str(first) == str(second)
    tracer = fx.Tracer()
    assert str(tracer.trace(lib.Foo())) == str(tracer.trace(lib.Foo()))


def test_s2_27_is_leaf_function_is_true_by_default_and_asked_for_wrapped_functions(ours, our_lib):
    asked = []

    class T(ours.Tracer):
        def is_leaf_function(self, fn):
            asked.append(fn)
            return super().is_leaf_function(fn) and fn is not our_lib.sigmoid_lowp

    graph = T().trace(our_lib.Foo())
    assert ours.Tracer().is_leaf_function(our_lib.add_lowp) is True
    assert asked == [our_lib.sigmoid_lowp, our_lib.sigmoid_lowp, our_lib.add_lowp]
    assert names(graph) == INLINED_SIGMOIDS


def test_s2_28_between_the_casts_the_arithmetic_is_float32(fx, lib):
    x = torch.linspace(-20, 20, 4001).half()
    traced = inline_all(lib, fx.symbolic_trace(lib.Foo()), lib.sigmoid_lowp, lib.add_lowp)
    sigmoid = x.float().sigmoid().half()
    expected = (sigmoid.float() + sigmoid.float()).half()
    for _ in range(2):
        assert same_bits(traced(x, x), expected)


def test_s2_28_float_of_a_float32_is_the_same_tensor(fx):
    traced = fx.symbolic_trace(lambda x: (x.float(), x + 1))
    x = torch.randn(4)
    for _ in range(2):
        assert traced(x)[0].data_ptr() == x.data_ptr()


def test_s2_29_a_composite_kept_and_the_same_inlined_are_equal(ours, program):
    source = LIBRARY.replace("fx.wrap(sigmoid_lowp)", "fx.wrap(sigmoid_lowp, leaf=True)")
    m = program(ours, source, "leaf_kept")
    x, y = inputs()
    kept = ours.symbolic_trace(m.Foo())
    inlined = inline_all(m, ours.symbolic_trace(m.Foo()), m.sigmoid_lowp, m.add_lowp)
    for _ in range(3):
        assert same_bits(kept(x, y), inlined(x, y))
        assert same_bits(kept(x, y), m.Foo()(x, y))
