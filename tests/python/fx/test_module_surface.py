"""A GraphModule is an nn.Module in all that torch does with modules; calling conventions; the surface of the classes."""

import copy
import gc
import importlib
import inspect
import operator
import pickle
import weakref

import pytest
import torch
from helpers import calling, names
from torch.utils import _pytree as pytree

from fxjit._C import find_proxy


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.scale = torch.nn.Parameter(torch.ones(3))
        self.register_buffer("shift", torch.zeros(3))

    def forward(self, x):
        return self.linear(x) * self.scale + self.shift


def traced(fx):
    torch.manual_seed(0)
    return fx.symbolic_trace(Net())


def test_functional_call_replaces_parameters_and_buffers(fx):
    gm, x = traced(fx), torch.ones(2, 3)
    changed = {"scale": torch.full((3,), 2.0), "shift": torch.ones(3)}
    with torch.no_grad():
        plain, other = gm(x), torch.func.functional_call(gm, changed, (x,))
        assert torch.equal(other, plain * 2 + 1) and torch.equal(gm(x), plain)


def test_state_dict_goes_both_ways(fx):
    gm, net, x = traced(fx), Net(), torch.ones(2, 3)
    assert set(gm.state_dict()) == set(net.state_dict())
    gm.load_state_dict(net.state_dict())
    with torch.no_grad():
        assert torch.equal(gm(x), net(x))
        net.load_state_dict({k: v + 1 for k, v in gm.state_dict().items()})
        gm.load_state_dict(net.state_dict())
        assert torch.equal(gm(x), net(x))
    with pytest.raises(RuntimeError, match="Missing key"):
        gm.load_state_dict({})


def test_to_moves_and_casts_what_forward_reads(fx):
    gm, x = traced(fx), torch.ones(2, 3)
    with torch.no_grad():
        before = gm(x)
        assert gm.to(torch.float64) is gm and gm(x.double()).dtype == torch.float64
        assert torch.allclose(gm(x.double()).float(), before)
        assert gm.to("meta")(x.to("meta")).device.type == "meta"


def test_hooks_run_around_forward_and_on_submodules(fx):
    gm, log = traced(fx), []
    handles = [
        gm.register_forward_pre_hook(lambda m, args: log.append("pre")),
        gm.register_forward_hook(lambda m, args, out: out + 1),
        gm.linear.register_forward_hook(lambda m, args, out: log.append("linear")),
    ]
    x = torch.ones(1, 3)
    with torch.no_grad():
        hooked = gm(x)
        assert log == ["pre", "linear"]
        for handle in handles:
            handle.remove()
        assert torch.equal(hooked, gm(x) + 1) and log == ["pre", "linear"]


def test_replicas_compute_with_their_own_parameters(fx):
    gm, x = traced(fx), torch.ones(2, 3)
    replica = gm._replicate_for_data_parallel()
    assert replica._is_replica
    replica._parameters = {"scale": torch.full((3,), 3.0)}
    replica._buffers = {"shift": torch.zeros(3)}
    with torch.no_grad():
        assert torch.allclose(replica(x), gm(x) * 3) and torch.equal(gm.scale, torch.ones(3))


def test_training_mode_and_zero_grad_are_the_modules(fx):
    gm = traced(fx)
    gm(torch.ones(2, 3)).sum().backward()
    assert gm.scale.grad is not None and gm.training and not gm.eval().training
    gm.zero_grad()
    assert gm.scale.grad is None
    assert [n for n, _ in gm.named_parameters()] == ["scale", "linear.weight", "linear.bias"]


def test_deepcopy_of_a_module_that_holds_itself(fx):
    gm = traced(fx)
    gm.meta["self"] = gm
    gm.__dict__["me"] = [gm]
    copied = copy.deepcopy(gm)
    assert copied.meta["self"] is copied and copied is not gm and copied.scale is not gm.scale
    with torch.no_grad():
        assert torch.equal(copied(torch.ones(1, 3)), gm(torch.ones(1, 3)))
    ref = weakref.ref(gm)
    del gm
    gc.collect()
    assert ref() is None


def test_deepcopy_ten_thousand_deep(fx):
    graph = fx.Graph()
    value = graph.placeholder("x")
    for _ in range(10_000):
        value = graph.call_function(operator.add, (value, 1))
    graph.output(value)
    copied = copy.deepcopy(graph)
    copied.lint()
    assert names(copied) == names(graph) and len(copied.nodes) == 10_002
    assert fx.GraphModule({}, copied)(1) == 10_001


def test_nested_arguments_of_a_node_copy_with_their_kinds(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(max, ([x, (x, {"k": slice(x, None, 2)})], ...), {"a": [1.5, None]})
    graph.output(node)
    other = list(copy.deepcopy(graph).nodes)
    y = other[0]
    assert other[1].args == ([y, (y, {"k": slice(y, None, 2)})], ...) and other[1].kwargs == {"a": [1.5, None]}
    assert type(other[1].args[0]) is type(node.args[0]) and other[1].args[0][0].graph is not graph


def test_a_pytree_goes_through_the_calling_convention(fx):
    def program(pair, scale):
        return {"sum": (pair[0] + pair[1]["b"]) * scale}

    example = ((fx.PH, {"b": fx.PH}), fx.PH)
    gm = fx.symbolic_trace(program, concrete_args={"pair": example[0]})
    a, b, s = torch.ones(2), torch.full((2,), 2.0), torch.tensor(3.0)
    assert torch.equal(gm((a, {"b": b}), s)["sum"], (a + b) * s)
    flat = gm.graph.process_inputs((a, {"b": b}), s)
    assert [t is u for t, u in zip(flat, (a, b, s))] == [True] * 3
    leaves, spec = pytree.tree_flatten({"sum": a})
    assert gm.graph.process_outputs(leaves) == {"sum": a} or spec is None


def test_early_free_of_results_that_nobody_uses(fx):
    """What the text of torch.fx says with `x = None`: a value lives until its last use, or not at all."""
    alive = []

    def make(x):
        out = x + 1
        alive.append(weakref.ref(out))
        return out

    def check(x):
        gc.collect()
        assert [ref() is None for ref in alive] == [True, True, False]
        return x + 1

    graph = fx.Graph()
    x = graph.placeholder("x")
    first = graph.call_function(make, (x,))
    graph.call_function(make, (first,))  # nobody uses it
    second = graph.call_function(make, (first,))
    third = graph.call_function(torch.neg, (second,))
    graph.output((graph.call_function(check, (x,)), second, third))
    gm = fx.GraphModule({}, graph)
    with torch.no_grad():
        for _ in range(3):  # recorded, then the generic form
            alive.clear()
            gm(torch.ones(2))
            assert len(alive) == 3


def test_an_error_names_the_node_and_the_users_line(ours):
    def program(x):
        y = x + 1
        return y.view(7)

    gm = ours.symbolic_trace(program)
    with pytest.raises(RuntimeError) as caught:
        ours.Interpreter(gm).run(torch.ones(2))
    assert "view" in str(caught.value) and "While executing" in str(caught.value)


PUBLIC = ("Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "CodeGen")


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_of_the_classes_are_documented_or_torch_fxs(ours, name):
    """A name that torch.fx's class does not have is an addition, and says what it does."""
    theirs, mine = getattr(torch.fx, name), getattr(ours, name)
    for member in (m for m in vars(mine) if not m.startswith("_") and not hasattr(theirs, m)):
        value = inspect.getattr_static(mine, member)
        value = getattr(value, "fget", None) or getattr(value, "__func__", value)
        if callable(value):
            assert inspect.getdoc(value), f"{name}.{member} is not torch.fx's and has no documentation"


def test_print_readable_has_no_trailing_white_space(fx):
    text = calling(fx, fx.symbolic_trace(Net())).print_readable(print_output=False)
    assert "inner" in text and all(line == line.rstrip() for line in text.splitlines())


def test_a_proxy_says_no_to_pickle_rather_than_recurse(ours):
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError, NotImplementedError)):
        pickle.dumps(ours.Proxy(ours.Graph().placeholder("x")))


# ---- the signature of forward ----


def test_forward_has_the_annotations_of_the_program(fx):
    def f(x: torch.Tensor, n: int = 3) -> torch.Tensor:
        return x + n

    found = fx.symbolic_trace(f).forward.__annotations__
    assert found == {"x": torch.Tensor, "n": int, "return": torch.Tensor}
    assert "return" not in fx.symbolic_trace(lambda x: x).forward.__annotations__


def test_a_tensor_as_default_is_an_attribute(ours):
    def f(x, scale=torch.full((1,), 2.0), *, shift=torch.ones(1)):
        return x * scale + shift

    gm = ours.symbolic_trace(f)
    assert gm(3).item() == 7 and gm(3, 4).item() == 13 and gm(3, shift=0).item() == 6
    assert ours.Interpreter(gm).run(3).item() == 7
    assert gm.double()(3).dtype == torch.float64
    gm._tensor_constant0.fill_(5)
    assert [c(1).item() for c in (gm, copy.deepcopy(gm), ours.symbolic_trace(gm))] == [6, 6, 6]


def test_annotate(fx):
    annotate = importlib.import_module(f"{fx.__name__}.annotate").annotate

    def f(x):
        return annotate(x + 1, torch.Tensor), annotate(3, int)

    graph = fx.symbolic_trace(f).graph
    assert [n.type for n in graph.nodes] == [None, torch.Tensor, None]
    with pytest.raises(RuntimeError, match="already had a type on it"):
        fx.symbolic_trace(lambda x: annotate(annotate(x + 1, int), int))


def test_tables_of_names_are_torchs(ours):
    for name in ("dtype_abbrs", "inplace_methods", "magic_methods", "reflectable_magic_methods"):
        assert getattr(ours.graph, name) is getattr(torch.fx.graph, name)
    assert ours.proxy.magic_methods is torch.fx.proxy.magic_methods


def test_a_structure_that_contains_itself_is_a_recursion_error(ours):
    loop = []
    loop.append(loop)
    for walk in (lambda: ours.map_aggregate(loop, id), lambda: ours.map_arg(loop, id), lambda: find_proxy(loop)):
        with pytest.raises(RecursionError):
            walk()
