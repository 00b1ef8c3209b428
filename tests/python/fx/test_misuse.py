"""What is easily written wrongly: the right behaviour, or an error that names the place and what would work.

The rows that torch.fx gets right are tested with both; those where it is silent or misleading with ours alone.
"""

import operator
import warnings

import pytest
import torch
from helpers import names, targets

import fxjit

W = torch.randn(3, 3)


def lines_of(info):
    return "\n".join([str(info.value), *getattr(info.value, "__notes__", [])])


# ---- errors ----

def test_control_flow_names_the_way_out(ours):
    with pytest.raises(ours.TraceError, match="give the tracer example inputs: trace\\(root, example_inputs=") as info:
        ours.Tracer().trace(lambda x: x if x.shape[0] > 3 else -x)
    assert "test_misuse.py" in str(info.value) and "node 'gt'" in str(info.value)


@pytest.mark.parametrize(
    ("f", "advice"),
    [
        (lambda x: int(x), "wrap('int')"), (lambda x: float(x), "wrap("), (lambda x: range(x), "example_inputs"),
        (lambda x: [1, 2][x], "example_inputs"), (lambda x: round(x), "wrap('round')"),
        (lambda x: divmod(x, 2), "// and %"), (lambda x: f"{x:.2f}", "example_inputs"),
        (lambda x: W[: x.size(0)], "example_inputs"),
        (lambda x: torch.Size([x.size(0)]), "a tuple"), (lambda x: operator.setitem(x, 0, 1), "operator.setitem"),
    ],
)  # fmt: skip
def test_type_errors_say_where_and_what_would_work(ours, f, advice):
    with pytest.raises(TypeError) as info:
        ours.Tracer().trace(f)
    assert advice in lines_of(info)
    assert f"test_misuse.py:{f.__code__.co_firstlineno}" in lines_of(info)


FACTORIES = {
    "zeros": lambda x: torch.zeros(x.size(0)), "zeros of two": lambda x: torch.zeros(x.size(0), 2),
    "zeros of a tuple": lambda x: torch.zeros((2, x.size(0))), "zeros of a shape": lambda x: torch.zeros(x.shape),
    "ones": lambda x: torch.ones(x.size(0), x.size(1)), "empty": lambda x: torch.empty(x.size(0), 1).fill_(0),
    "full": lambda x: torch.full((x.size(0),), 2.5), "arange": lambda x: torch.arange(x.size(0)),
    "arange of two": lambda x: torch.arange(1, x.size(0)), "linspace": lambda x: torch.linspace(0, 1, x.size(0)),
    "eye": lambda x: torch.eye(x.size(0), x.size(1)), "rand": lambda x: torch.rand(x.size(0), 2) * 0,
    "randn": lambda x: torch.randn(x.size(0), 2) * 0, "randint": lambda x: torch.randint(0, x.size(0), (2,)) * 0,
    "narrow": lambda x: torch.narrow(x, 0, 0, x.size(1)), "narrow method": lambda x: x.narrow(0, 0, x.size(1)),
    "narrow of a constant": lambda x: torch.narrow(W, 0, 0, x.size(1)), "tensor": lambda x: torch.tensor(x.size(0)),
    "tensor of a list": lambda x: torch.tensor([x.size(0), 1]), "new_zeros": lambda x: x.new_zeros(x.size(0), 2),
    "dtype and device": lambda x: torch.zeros(x.size(0), 2, dtype=x.dtype, device=x.device),
    "reshape": lambda x: torch.reshape(x, (x.size(1), -1)), "repeat": lambda x: x.repeat(x.size(1), 1),
}  # fmt: skip


@pytest.mark.parametrize("examples", [False, True])
@pytest.mark.parametrize("name", list(FACTORIES))
def test_factories_take_sizes(ours, name, examples):
    f = FACTORIES[name]
    traced = ours.symbolic_trace(f, example_inputs=(torch.randn(4, 3),) if examples else None)
    assert list(traced.graph.guards) == []
    for rows in (4, 6):
        x = torch.randn(rows, 3)
        assert torch.equal(traced(x), f(x)) and traced(x).dtype == f(x).dtype


def test_a_factory_imported_by_name_is_found(ours, program):
    module = program(ours, "from torch import zeros\ndef f(x): return zeros(x.size(0), 2) + 1", "imports_zeros")
    assert torch.equal(ours.symbolic_trace(module.f)(torch.ones(3)), torch.ones(3, 2))
    assert module.zeros is torch.zeros and torch.zeros.__name__ == "zeros"


def test_a_tensor_of_a_tensor_is_recorded(ours):
    traced = ours.symbolic_trace(lambda x: torch.tensor(x) + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch advises clone().detach(), as in eager mode
        assert torch.equal(traced(torch.ones(2)), torch.full((2,), 2.0))


def test_modules_and_parameters_from_elsewhere_are_described(ours):
    with pytest.raises(NameError, match="module is not installed as a submodule: a Linear that"):
        ours.Tracer().trace(lambda x: torch.nn.Linear(2, 2)(x))
    with pytest.raises(NameError, match=r"parameter is not a member of this module: shape \(2,\), torch.float32"):
        ours.Tracer().trace(lambda x: x + torch.nn.Parameter(torch.ones(2)))


def test_erasing(fx):
    graph = fx.Tracer().trace(lambda x: x.neg().relu())
    neg = next(n for n in graph.nodes if n.name == "neg")
    with pytest.raises(RuntimeError, match="Tried to erase Node neg but it still had 1 users in the graph"):
        graph.erase_node(neg)
    with pytest.raises(RuntimeError, match="Attempting to remove .* from wrong graph"):
        fx.Graph().erase_node(list(graph.nodes)[-1])
    other = fx.Graph()
    node = other.placeholder("x")
    other.erase_node(node)
    with pytest.warns(UserWarning, match="already erased node"):
        other.erase_node(node)


def test_a_run_error_names_node_and_user_line(ours):
    def f(x):
        y = x.relu()
        return y.matmul(y)

    class T(ours.Tracer):
        record_stack_traces = True

    class M(torch.nn.Module):
        def forward(self, x):
            return f(x)

    m = M()
    traced = ours.GraphModule(m, T().trace(m))
    with pytest.raises(RuntimeError) as info:
        traced(torch.ones(2, 3))
    line = f"line {f.__code__.co_firstlineno + 2}, in f"
    assert "While executing %matmul" in lines_of(info) and line in lines_of(info)
    for _ in range(2):
        traced(torch.ones(2, 2, requires_grad=True))  # the second time in the generic form
    with pytest.raises(RuntimeError) as info:
        traced(torch.ones(2, 3, requires_grad=True))
    assert "While executing %matmul" in lines_of(info) and line in lines_of(info)
    node = next(n for n in traced.graph.nodes if n.name == "matmul")
    assert f"line {f.__code__.co_firstlineno + 2}, in f" in node.stack_trace


# ---- what torch.fx gets wrong without a word ----

WRITES = {
    "method": (lambda x: (x.mul_(2), x)[1], None), "function": (lambda x: (torch.relu_(x), x)[1], None),
    "operator": (lambda x: (torch.ops.aten.mul_.Tensor(x, 2), x)[1], None),
    "out": (lambda x: (torch.neg(x + 0, out=x), x)[1], None),
    "functional": (lambda x: (torch.nn.functional.relu(x, inplace=True), x)[1], None),
    "in-place operator": (lambda x: (operator.imul(x, 2), x)[1], (torch.ones(2),)),
    "item": (lambda x: (operator.setitem(x, 0, 5), x)[1], (torch.ones(2),)),
}


@pytest.mark.parametrize("name", list(WRITES))
def test_dead_code_elimination_keeps_what_writes(ours, name):
    f, examples = WRITES[name]
    traced = ours.symbolic_trace(f, example_inputs=examples)
    traced.graph.eliminate_dead_code()
    traced.recompile()
    assert torch.equal(traced(torch.tensor([-1.0, 3.0])), f(torch.tensor([-1.0, 3.0])))


def test_dead_code_elimination_keeps_a_module_that_writes(ours):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.act = torch.nn.ReLU(inplace=True)
            self.dead = torch.nn.ReLU()

        def forward(self, x):
            self.act(x)
            self.dead(x)
            return x

    traced = ours.symbolic_trace(M())
    assert traced.graph.eliminate_dead_code()
    assert targets(traced.graph, "call_module") == ["act"]
    traced.recompile()
    assert torch.equal(traced(torch.tensor([-1.0, 3.0])), torch.tensor([0.0, 3.0]))


def test_dead_code_elimination_keeps_the_random_stream(fx):
    traced = fx.symbolic_trace(lambda x: (torch.rand(2), torch.rand_like(x), x + torch.rand_like(x))[2])
    traced.graph.eliminate_dead_code()
    assert names(traced.graph).count("rand_like") == 1 and "rand_like_1" in names(traced.graph)


def test_a_new_node_that_uses_the_old_is_left_out_by_a_callback(fx):
    graph = fx.Tracer().trace(lambda x: x.neg().relu())
    neg = next(n for n in graph.nodes if n.name == "neg")
    with graph.inserting_after(neg):
        new = graph.call_function(torch.abs, (neg,))
    neg.replace_all_uses_with(new)
    assert new.args == (new,)
    with pytest.raises(RuntimeError, match="'abs_1' was used before it has been defined"):
        graph.lint()
    new.args = (neg,)
    neg.replace_all_uses_with(new, delete_user_cb=lambda user: user is not new)
    graph.lint()


def test_an_edited_graph_takes_effect_at_recompile(fx):
    traced = fx.symbolic_trace(lambda x: x + 1)
    next(n for n in traced.graph.nodes if n.name == "add").target = operator.sub
    assert traced(torch.ones(1)) == 2 and fx.Interpreter(traced).run(torch.ones(1)) == 0
    traced.recompile()
    assert traced(torch.ones(1)) == 0


class Counting(torch.nn.Module):
    """Reads what a plain trace bakes in: the mode, a buffer's shape, an attribute."""

    def __init__(self):
        super().__init__()
        self.register_buffer("b", torch.ones(3))
        self.scale = 2.0

    def forward(self, x):
        y = x * self.scale * self.b.shape[0]
        return y + 1 if self.training else y


def add_in_place(x):
    x += 1
    return x * 2


def no_grad_inside(x):
    with torch.no_grad():
        return x * 2


def autocast_inside(x):
    with torch.autocast("cpu", torch.bfloat16):
        return x @ x


def inference_mode_inside(x):
    with torch.inference_mode():
        return x * 2


def asks_for_the_mode(x):
    return x * 2 if torch.is_grad_enabled() else x * 3


SILENT = {
    "in-place": (add_in_place, None),
    "a mode": (Counting(), lambda m: m.train(not m.training)),
    "a buffer's shape": (Counting(), lambda m: setattr(m, "b", torch.ones(5))),
    "an attribute": (Counting(), lambda m: setattr(m, "scale", 7.0)),
    "no_grad": (no_grad_inside, None),
    "autocast": (autocast_inside, None),
    "inference_mode": (inference_mode_inside, None),
    "grad mode": (asks_for_the_mode, lambda f: torch.set_grad_enabled(True)),
    "isinstance": (lambda x: x * 2 if isinstance(x, torch.Tensor) else x, None),
    "hasattr": (lambda x: x * 2 if hasattr(x, "nothing") else x, None),
    "is None": (lambda x, y=None: x if y is None else x * 2, None),
    "randn": (lambda x: x + torch.randn(3), None),
}


@pytest.mark.parametrize("name", list(SILENT))
@torch.no_grad()
def test_compile_does_what_eager_does(name):
    f, change = SILENT[name]
    compiled = fxjit.compile(f)
    for turn in range(6):
        if change is not None and turn == 3:
            change(f)
        ours, eager = torch.full((3, 3), 2.0), torch.full((3, 3), 2.0)
        torch.manual_seed(turn)
        a = compiled(ours)
        torch.manual_seed(turn)
        b = f(eager)
        assert torch.equal(a, b) and a.dtype == b.dtype and torch.equal(ours, eager)
        assert a.is_inference() == b.is_inference()


def test_concrete_arguments_that_change_later(fx):
    traced = fx.symbolic_trace(lambda x, n: x * n, concrete_args={"n": 3})
    assert traced(torch.ones(1), 3) == 3
    with pytest.raises(AssertionError, match="n has been specialized to have value 3 but got another value"):
        traced(torch.ones(1), 4)
    with pytest.warns(UserWarning, match="Was not able to add assertion to guarantee correct input n"):
        fx.symbolic_trace(lambda x, n: x, concrete_args={"n": object})


# ---- methods called through their class ----


def through_the_class(x):
    flat = torch.Tensor.flatten(torch.Tensor.relu(x))
    return flat + torch.Tensor.flatten(W) + torch.Tensor.__getitem__(x, 0).sum()


class ThroughTheClass(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = torch.nn.ReLU()

    def forward(self, x):
        return torch.Tensor.flatten(self.relu(self.relu(x)))


def test_methods_through_their_class_are_recorded(ours):
    before = dict(vars(torch.Tensor))
    gm = ours.symbolic_trace(through_the_class)
    assert targets(gm.graph, "call_method") == ["relu", "flatten", "__getitem__", "sum"]
    assert dict(vars(torch.Tensor)) == before
    x = torch.randn(3, 3)
    assert torch.equal(gm(x), through_the_class(x))
    assert torch.equal(ours.symbolic_trace(through_the_class, example_inputs=(x,))(x), gm(x))


def test_what_was_traced_before_such_a_method_leaves_nothing(ours):
    tracer = ours.Tracer()
    graph = tracer.trace(ThroughTheClass())
    assert [list(n.meta.get("nn_module_stack", ())) for n in graph.nodes] == [[], ["relu"], ["relu@1"], [], []]
    assert tracer.num_calls == {"relu": 2} and not tracer.module_stack
    with pytest.raises(TypeError, match="descriptor 'flatten' for"):
        ours.symbolic_trace(lambda x: torch.Tensor.flatten(type(x)))


def test_methods_in_the_registry_are_leaves(fx):
    import importlib

    registry = importlib.import_module(f"{fx.__name__}._symbolic_trace")._wrapped_methods_to_patch
    registry.append((torch.Tensor, "__getitem__"))
    try:
        graph = fx.symbolic_trace(lambda x: W[x]).graph
    finally:
        registry.remove((torch.Tensor, "__getitem__"))
    assert targets(graph, "call_method") == ["__getitem__"]
    assert fx.symbolic_trace(lambda x: W[0] + x)(0).equal(W[0])


# ---- what torch.fx records wrongly without a word: with example inputs it is right, or said ----


@pytest.mark.parametrize(("f", "mode"), [(no_grad_inside, "grad mode off"), (autocast_inside, "autocast on the CPU on"),
                                         (inference_mode_inside, "inference mode on")])  # fmt: skip
def test_a_mode_that_the_graph_does_not_say_is_warned_of(ours, f, mode):
    line = f"test_misuse.py:{f.__code__.co_firstlineno + 2} in {f.__name__}"
    with pytest.warns(UserWarning, match=f"{mode}.*which the graph does not say .*{line}") as warned:
        ours.symbolic_trace(f, example_inputs=(torch.ones(3, 3),))
    assert len(warned) == 1


def test_the_mode_of_the_caller_is_nothing_to_warn_of(ours):
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("error")
        ours.symbolic_trace(no_grad_inside, example_inputs=(torch.ones(3, 3),))


def test_random_numbers_are_drawn_at_each_call_with_example_inputs(ours):
    def f(x):
        noise = torch.randn(3, 2)
        if noise.shape[0] == 3:
            x = x + torch.normal(0.0, 1.0, size=(2,))
        return x @ noise.t()

    traced = ours.symbolic_trace(f, example_inputs=(torch.ones(2, 2),))
    drawn = [t for t in targets(traced.graph, "call_function") if t in (torch.randn, torch.normal)]
    assert drawn == [torch.randn, torch.normal]
    for seed in range(3):
        torch.manual_seed(seed)
        want = f(torch.ones(2, 2))
        torch.manual_seed(seed)
        assert torch.equal(traced(torch.ones(2, 2)), want)
