"""Tracing with example inputs: what rests on shapes, dtypes and devices is decided, and noted as a guard."""

import math
import operator

import pytest
import torch
from helpers import targets

import fxjit

fx = fxjit.fx
W = torch.randn(3, 3)
X = torch.randn(4, 3)


def loop(x):
    total = x[0] * 0
    for i in range(x.size(0)):
        total = total + x[i]
    return total


def unpack_rows(x):
    a, b, c, d = x
    return a + b - c * d


def unpack_shape(x):
    a, b = x.shape
    return x.view(b, a)


def starred(x):
    first, *rest = x
    return first + len(rest)


def assign_item(x):
    y = x + 0
    y[0] = 1
    y[1:, 0] = x[0, 0]
    return y


def add_in_place(x):
    y = x * 1
    z = y
    y += 1
    return y + z


def count_up(x):
    n = x.size(0)
    n += 1
    return x * n


def squeezed_in_place(x):
    y = x * 1
    before = y.dim()
    y.unsqueeze_(0)
    return y * (10 * before + y.dim()) if y.shape[0] == 1 else y


# program: (function, guards)
PROGRAMS = {
    "shape": (lambda x: x + 1 if x.shape[0] > 3 else x - 1, ["x.size(0) > 3"]),
    "size": (lambda x: x + 1 if x.size(0) == 5 else x - 1, ["x.size(0) != 5"]),
    "size by keyword": (lambda x: x + 1 if x.size(dim=-1) == 3 else x - 1, ["x.size(-1) == 3"]),
    "arithmetic": (lambda x: x if x.size(0) * 2 - 1 < x.numel() else -x, ["((x.size(0) * 2) - 1) < x.numel()"]),
    "len": (lambda x: x * len(x), ["x.dim() == 2", "x.size(0) == 4"]),
    "range": (loop, ["x.size(0) == 4"]),
    "iteration": (lambda x: sum(row for row in x), ["x.dim() == 2", "x.size(0) == 4"]),
    "unpack": (unpack_rows, ["x.dim() == 2", "x.size(0) == 4"]),
    "unpack shape": (unpack_shape, ["x.dim() == 2"]),
    "starred": (starred, ["x.dim() == 2", "x.size(0) == 4"]),
    "spread shape": (lambda x: x.reshape(*x.shape[:-1], 1, -1), ["x.dim() == 2"]),
    "dtype": (lambda x: x * 2 if x.dtype == torch.float32 else x, ["x.dtype == torch.float32"]),
    "dtypes": (lambda x: x * 2 if x.dtype in (torch.half, torch.float) else x,
               ["x.dtype != torch.float16", "x.dtype == torch.float32"]),
    "floating": (lambda x: x * 2 if x.is_floating_point() else x, ["x.is_floating_point()"]),
    "device": (lambda x: x * 2 if x.device.type == "cpu" else x, ["x.device.type == 'cpu'"]),
    "is_cuda": (lambda x: x * 2 if x.is_cuda else x + 1, ["not x.is_cuda"]),
    "ndim": (lambda x: x * 2 if x.ndim == 2 and x.dim() < 3 else x, ["x.dim() == 2", "x.dim() < 3"]),
    "chained": (lambda x: x * 2 if 2 < x.size(1) < 4 else x, ["x.size(1) > 2", "x.size(1) < 4"]),
    "not": (lambda x: x * 2 if not x.size(0) % 2 else x, ["not (x.size(0) % 2)"]),
    "int": (lambda x: x * int(math.ceil(x.size(0) / 3)), ["math.ceil(x.size(0) / 3) == 2"]),
    "round": (lambda x: x * round(x.size(0) / 3), []),
    "divmod": (lambda x: x * divmod(x.size(0), 3)[1], []),
    "min": (lambda x: x[: min(x.size(0), 2)], ["x.size(0) > 2"]),
    "index of a list": (lambda x: x * [1, 2, 3, 4, 5][x.size(0)], ["x.size(0) == 4"]),
    "set": (lambda x: x * 2 if x.size(0) in {4, 5} else x, ["x.size(0) == 4"]),
    "text": (lambda x: x * len(f"{x.size(1)}"), ["x.size(1) == 3"]),
    "contained": (lambda x: x * 2 if 3 in x.shape else x, ["x.dim() == 2", "x.size(0) != 3", "x.size(1) == 3"]),
    "isinstance": (lambda x: x * 2 if isinstance(x, torch.Tensor) and isinstance(x.size(0), int) else x, []),
    "hasattr": (lambda x: x * 2 if hasattr(x, "anything") else x + 1, []),
    "zeros": (lambda x: torch.zeros(x.size(0), 3) + x, []),
    "arange": (lambda x: x.t() + torch.arange(x.size(0)), []),
    "full": (lambda x: torch.full((x.size(0), 2), x.size(1)), []),
    "randint": (lambda x: torch.randint(0, x.size(0), (2,)) * 0, []),
    "narrow": (lambda x: torch.narrow(x, 0, 0, x.size(1)), []),
    "eye": (lambda x: torch.eye(x.size(1)), []),
    "tensor": (lambda x: x * torch.tensor(x.size(0)), []),
    "slice": (lambda x: x[: x.size(0) - 1], []),
    "slice of a constant": (lambda x: W[: x.size(1) - 1] * 2, []),
    "split": (lambda x: x.split(x.size(0) // 2)[1], []),
    "assigned item": (assign_item, []),
    "in place": (add_in_place, []),
    "counter": (count_up, []),
    "metadata in place": (squeezed_in_place, [
        "x.dim() == 2", "x.size(0) == 4", "x.size(1) == 3", "x.dtype == torch.float32",
        "x.device == device(type='cpu')", "x.stride() == (3, 1)", "x.requires_grad == False"]),
}  # fmt: skip


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_programs(name):
    f, guards = PROGRAMS[name]
    tracer = fx.Tracer()
    graph = tracer.trace(f, example_inputs=(X,))
    assert [str(g) for g in graph.guards] == guards
    assert tracer.guards == list(graph.guards)
    graph.lint()
    traced = fx.GraphModule(tracer.root, graph)
    torch.testing.assert_close(traced(X.clone()), f(X.clone()), rtol=0, atol=0)


def test_sizes_stay_symbolic():
    traced = fx.symbolic_trace(lambda x: (x + torch.zeros(x.size(0), 3), x.shape[0] * 2), example_inputs=(X,))
    for n in (4, 6):
        x = torch.randn(n, 3)
        assert traced(x)[0].shape == (n, 3) and traced(x)[1] == 2 * n


def test_guards_hold_for_the_inputs_that_decide_alike():
    graph = fx.Tracer().trace(lambda x, y: x + 1 if x.shape == y.shape and x.size(0) > 3 else y, example_inputs=(X, X))
    assert [str(g) for g in graph.guards] == ["x.shape == y.shape", "x.size(0) > 3"]
    same, size = graph.guards
    assert same.holds((torch.ones(2), torch.ones(2))) and not same.holds((torch.ones(2), torch.ones(3)))
    assert size.holds((torch.ones(9), None)) and not size.holds((torch.ones(3), None))
    assert not size.holds(("no tensor", None))


def pooled(x):
    y = torch.nn.functional.avg_pool1d(x, 2)
    return y + 1 if y.shape[-1] > 2 else y


def test_a_decision_on_a_computed_tensor_is_one_on_what_it_is_computed_from():
    x = torch.randn(4, 3, 6)
    graph = fx.Tracer().trace(pooled, example_inputs=(x,))
    assert [str(g) for g in graph.guards] == ["x.dim() == 3", "x.size(0) == 4", "x.size(1) == 3", "x.size(2) == 6"]
    assert all(g.holds((x,)) for g in graph.guards)
    assert not all(g.holds((torch.randn(4, 3, 8),)) for g in graph.guards)


W2 = torch.randn(5, 3)


# A size that an operator keeps or names: the guard is on that one alone, in the inputs' terms.
KEPT = {
    "elementwise": (lambda x: x.relu().float(), 0, "x.size(0)"), "broadcast": (lambda x: x + W[0], 0, "x.size(0)"),
    "scalar": (lambda x: 2 * x + x.size(1), 1, "x.size(1)"), "transpose": (lambda x: x.transpose(0, 1), 0, "x.size(1)"),
    "permute": (lambda x: x.permute(1, 0), 1, "x.size(0)"), "unsqueeze": (lambda x: x.unsqueeze(0), 1, "x.size(0)"),
    "view": (lambda x: x.view(x.size(1), x.size(0)), 1, "x.size(0)"), "matmul": (lambda x: x @ W, 0, "x.size(0)"),
    "linear": (lambda x: torch.nn.functional.linear(x, W2), 1, "_tensor_constant0.size(0)"),
    "chunk": (lambda x: x.chunk(3, 1)[0], 0, "x.size(0)"), "getitem": (lambda x: x[:, 0], 0, "x.size(0)"),
    "new axis": (lambda x: x[None, :, :2], 1, "x.size(0)"), "cat": (lambda x: torch.cat([x, x], 1), 0, "x.size(0)"),
    "flatten": (lambda x: x.unsqueeze(2).flatten(1), 0, "x.size(0)"), "softmax": (lambda x: x.softmax(-1), 0, "x.size(0)"),
    "module": (torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.ReLU(), torch.nn.LayerNorm(5)), 0, "input.size(0)"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(KEPT))
def test_sizes_are_followed_through_operators(name):
    f, d, expected = KEPT[name]

    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.f = f

        def forward(self, x):
            y = self.f(x)
            return y * 2 if y.shape[d] > 1 else y
    m = M()
    tracer = fx.Tracer()
    graph = tracer.trace(m, example_inputs=(X,))
    text = [str(g) for g in graph.guards if "dim()" not in str(g) and "!= 1" not in str(g)]
    assert text == [f"{expected.replace('input', 'x')} > 1"]
    traced = fx.GraphModule(m, graph)
    other = torch.randn(7, 3)
    assert all(g.holds((other,), m) for g in graph.guards)
    assert torch.equal(traced(other), m(other))


def test_results_of_several_tensors_leave_sizes_free():
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = torch.nn.MultiheadAttention(4, 2, batch_first=True)
            self.cell = torch.nn.LSTM(4, 4)

        def forward(self, x):
            y, _ = self.attention(x, x, x)
            z, (h, c) = self.cell(y)
            values, _ = torch.max(z, -1)
            return values + h.sum() + c.sum()
    m, x = M(), torch.randn(2, 3, 4)
    graph = fx.Tracer().trace(m, example_inputs=(x,))
    assert all("size" not in str(g) for g in graph.guards)
    traced, other = fx.GraphModule(m, graph), torch.randn(3, 5, 4)
    torch.testing.assert_close(traced(other), m(other))


def test_sizes_of_constants_need_no_guard():
    m = torch.nn.Linear(3, 5)

    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.m = m

        def forward(self, x):
            return [part * 2 for part in self.m(x).chunk(5, -1)]
    graph = fx.Tracer().trace(M(), example_inputs=(X,))
    assert all("size" not in str(g) for g in graph.guards)


def test_ranks_and_dtypes_of_computed_tensors_leave_sizes_free():
    def f(x):
        y = (x @ W).relu()
        b, c = y.shape
        return y * b if y.dtype == torch.float32 else y
    graph = fx.Tracer().trace(f, example_inputs=(X,))
    assert all("size" not in str(g) for g in graph.guards)
    assert {"x.dim() == 2", "x.dtype == torch.float32"} <= {str(g) for g in graph.guards}


def test_in_place_operators_change_the_tensor_and_item_assignment_stays():
    graph = fx.Tracer().trace(assign_item, example_inputs=(X,))
    assert targets(graph, "call_function").count(operator.setitem) == 2
    graph.eliminate_dead_code()
    assert targets(graph, "call_function").count(operator.setitem) == 2
    graph = fx.Tracer().trace(add_in_place, example_inputs=(X,))
    assert operator.iadd in targets(graph, "call_function")


def test_modules_are_evaluated_without_recording_or_running_them_on_data():
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.block = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.BatchNorm2d(4))
            self.encoder = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)

        def forward(self, x):
            y = self.block(x)
            b, c, h, w = y.shape
            y = self.encoder(y.flatten(2).transpose(1, 2))
            return y.mean(1) if y.size(1) == 25 else y
    m, x = M(), torch.randn(2, 3, 5, 5)
    tracer = fx.Tracer()
    graph = tracer.trace(m, example_inputs=(x,))
    assert m.block[1].num_batches_tracked == 0
    assert targets(graph, "call_module") == ["block.0", "block.1", "encoder"]
    torch.testing.assert_close(fx.GraphModule(m, graph).eval()(x), m.eval()(x))


def test_the_random_state_is_left_alone():
    state = torch.get_rng_state()
    fx.Tracer().trace(lambda x: x if torch.nn.functional.dropout(x).shape[0] > 3 else -x, example_inputs=(X,))
    assert torch.equal(torch.get_rng_state(), state)


def test_optional_and_plain_arguments():
    def f(x, y=None, n=2, *rest, **named):
        y = x if y is None else y
        for r in rest:
            y = y + r
        return y * n + named["k"] if "k" in named else y * n
    graph = fx.Tracer().trace(f, example_inputs=(X,))
    assert "y is None" in [str(g) for g in graph.guards]
    assert targets(graph, "placeholder") == ["x", "y", "n", "*rest", "**named"]
    graph = fx.Tracer().trace(f, example_inputs={"x": X, "y": X, "n": 3})
    assert "y is None" not in [str(g) for g in graph.guards]
    graph = fx.Tracer().trace(f, example_inputs=(X, X, 3, X, X))
    assert "len(rest) == 2" in [str(g) for g in graph.guards]


def test_with_concrete_arguments():
    def f(pair, flag):
        a, b = pair
        return a + b if flag and a.shape[0] == 4 else a

    tracer = fx.Tracer()
    graph = tracer.trace(f, concrete_args={"pair": (fx.PH, fx.PH), "flag": True}, example_inputs=((X, X), True))
    assert [str(g) for g in graph.guards] == ["pair_1.size(0) == 4"]
    torch.testing.assert_close(fx.GraphModule(tracer.root, graph)((X, X), True), f((X, X), True))
    with pytest.raises(ValueError, match="the example input for 'pair' has 1 values where concrete_args has 2"):
        fx.Tracer().trace(f, concrete_args={"pair": (fx.PH, fx.PH), "flag": True}, example_inputs=((X,), True))


def test_examples_that_do_not_fit():
    with pytest.raises(TypeError, match="example_inputs do not fit the parameters"):
        fx.Tracer().trace(lambda x: x, example_inputs=(X, X))
    with pytest.raises(TypeError, match="a tuple of arguments or a dict, not Tensor"):
        fx.Tracer().trace(lambda x: x, example_inputs=X)


def data_dependent():
    return {
        "if": lambda x: x if x.sum() > 0 else -x,
        "while": lambda x: [x for _ in iter(lambda: bool(x.sum() > 0), False)],
        "int": lambda x: x * int(x.sum()),
        "item": lambda x: x if x.sum().item() > 0 else -x,
        "nonzero": lambda x: x if x.nonzero().shape[0] > 3 else -x,
        "in": lambda x: x if 1.0 in x[0] else -x,
    }


@pytest.mark.parametrize("name", list(data_dependent()))
def test_what_rests_on_data_raises_with_node_line_and_advice(name):
    with pytest.raises(fx.TraceError, match=r"node '\w+', at .*test_example_inputs\.py:\d+ in <lambda>\)") as info:
        fx.Tracer().trace(data_dependent()[name], example_inputs=(X,))
    assert "data" in str(info.value)


def test_errors_of_the_values_themselves():
    def three(x):
        a, b, c = x.shape
        return a

    with pytest.raises(ValueError, match="not enough values to unpack"):
        fx.Tracer().trace(three, example_inputs=(X,))
    with pytest.raises(TypeError, match="len.. of a 0-d tensor"):
        fx.Tracer().trace(lambda x: len(x.sum()), example_inputs=(X,))
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        fx.Tracer().trace(lambda x: list(x.sum()), example_inputs=(X,))
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'nothing'"):
        fx.Tracer().trace(lambda x: x.nothing, example_inputs=(X,))
    with pytest.raises(TypeError, match="'Tensor' object does not support item deletion"):
        fx.Tracer().trace(lambda x: operator.delitem(x, 0), example_inputs=(X,))


def test_nothing_is_left_behind():
    original = isinstance
    with pytest.raises(fx.TraceError):
        fx.Tracer().trace(lambda x: x if x.sum() > 0 else -x, example_inputs=(X,))
    import builtins
    assert builtins.isinstance is original and torch.zeros.__module__ != "fxjit.fx._factories"
    assert not torch._C._is_torch_function_mode_enabled()
    assert not fx.is_fx_tracing()


def test_a_tracer_with_its_own_proxy_class_and_hooks_keeps_them():
    class Mine(fx.Proxy):
        pass

    class T(fx.Tracer):
        def proxy(self, node):
            return Mine(node, self)

    graph = T().trace(lambda x: x.relu() if x.shape[0] > 3 else x, example_inputs=(X,))
    assert [str(g) for g in graph.guards] == ["x.size(0) > 3"]


def test_a_graph_without_examples_has_no_guards():
    assert list(fx.Tracer().trace(lambda x: x).guards) == [] and list(fx.Graph().guards) == []
