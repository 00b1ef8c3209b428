"""A graph that was traced with example inputs is run only for inputs that its trace would decide alike."""

import copy
import io
import pickle

import pytest
import torch

import fxjit
from fxjit.fx.passes.split_module import split_module

fx = fxjit.fx
FOUR, TWO = torch.randn(4, 3), torch.randn(2, 3)


def grow(x):
    return x + 1 if x.shape[0] > 3 else x - 1


def rows(x):
    return x * len(x)


def floats(x):
    return x * 2 if x.is_floating_point() else x


def alike(x, y):
    return x + y if x.shape == y.shape else x - y.sum()


def optional(x, bias=None):
    return x if bias is None else x + bias


def counted(n, x):
    return x + n if n > 2 else x - n


class Wide(torch.nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(n))

    def forward(self, x):
        return x * self.weight if self.weight.size(0) > 2 else x


class Calling(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, z):
        return self.inner(z * 2)


# function, example inputs, others that fit, others that don't, the guard that fails
CALLS = {
    "size": (grow, (FOUR,), (torch.randn(9, 3),), (TWO,), "x.size(0) > 3"),
    "len": (rows, (FOUR,), (torch.randn(4, 7),), (TWO,), "x.size(0) == 4"),
    "rank": (rows, (FOUR,), (FOUR * 2,), (torch.randn(4),), "x.dim() == 2"),
    "dtype": (floats, (FOUR,), (FOUR.double(),), (FOUR.long(),), "x.is_floating_point()"),
    "two inputs": (alike, (FOUR, FOUR), (TWO, TWO), (FOUR, TWO), "x.shape == y.shape"),
    "none": (optional, (FOUR, None), (TWO, None), (FOUR, torch.ones(3)), "bias is None"),
    "number": (counted, (3, FOUR), (5, TWO), (2, FOUR), "n > 2"),
}


def on_the_module(gm):
    return gm


def compiled(gm):
    return fxjit.compile(gm)


def interpreted(gm):
    return fx.Interpreter(gm).run


def interpreted_boxed(gm):
    return lambda *args: fx.Interpreter(gm).boxed_run(list(args))


def hooked(gm):
    gm.register_forward_hook(lambda m, args, out: None)
    return gm


def deep_copied(gm):
    return copy.deepcopy(gm)


def copied(gm):
    return copy.copy(gm)


def pickled(gm):
    return pickle.loads(pickle.dumps(gm))


def pickled_by_torch(gm):
    file = io.BytesIO()
    torch.save(gm, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def saved(gm):
    file = io.BytesIO()
    fx.save(gm, file)
    file.seek(0)
    return fx.load(file)


def with_a_copied_graph(gm):
    graph = fx.Graph()
    graph.output(graph.graph_copy(gm.graph, {}))
    return fx.GraphModule(gm, graph)


def transformed(gm):
    return fx.Transformer(gm).transform()


def split(gm):
    return split_module(gm, None, lambda node: 0)


def called_by_a_compiled_function(gm):
    def outer(*args):
        return gm(*args)

    return fxjit.compile(outer)


def sent_to_torch(gm):
    return gm.to_torch()


def sent_to_torch_and_back(gm):
    return fx.GraphModule.from_torch(copy.deepcopy(gm.to_torch()))


WAYS = [on_the_module, compiled, interpreted, interpreted_boxed, hooked, deep_copied, copied, pickled, pickled_by_torch, saved,
        with_a_copied_graph, transformed, split, called_by_a_compiled_function, sent_to_torch, sent_to_torch_and_back]


@pytest.mark.parametrize("way", WAYS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", list(CALLS))
def test_a_call_that_decides_otherwise_raises(name, way):
    f, example, fitting, other, guard = CALLS[name]
    run = way(fx.symbolic_trace(f, example_inputs=example))
    with torch.no_grad():
        for args in (example, example, fitting, fitting):
            torch.testing.assert_close(run(*args), f(*args), rtol=0, atol=0)
        for _ in range(3):  # before and after something was compiled
            with pytest.raises(fx.GuardError) as error:
                run(*other)
            assert guard in str(error.value)
        torch.testing.assert_close(run(*fitting), f(*fitting), rtol=0, atol=0)


def test_the_error_says_what_was_decided_where_and_on_what():
    gm = fx.symbolic_trace(grow, example_inputs=(FOUR,))
    with pytest.raises(fx.GuardError) as error:
        gm(TWO)
    text = str(error.value)
    line = grow.__code__.co_firstlineno + 1
    assert "traced for x.size(0) > 3" in text
    assert f"{__file__}:{line}  return x + 1 if x.shape[0] > 3 else x - 1" in text
    assert "traced with x = float32[4, 3]" in text and "called with x = float32[2, 3]" in text
    assert "fxjit.compile" in text and "example_inputs" in text
    assert isinstance(error.value, AssertionError)


def test_nothing_runs_before_the_check():
    ran = []

    def effect(x):
        ran.append(x)
        return x

    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(effect, (x,)))
    graph.guards = fx.symbolic_trace(grow, example_inputs=(FOUR,)).graph.guards
    gm = fx.GraphModule({}, graph)
    for run in (gm, fxjit.compile(gm), fx.Interpreter(gm).run):
        with pytest.raises(fx.GuardError):
            run(TWO)
    assert not ran
    gm(FOUR)
    assert ran


def test_attributes():
    for way in (on_the_module, compiled, interpreted, pickled, sent_to_torch, sent_to_torch_and_back):
        run = way(fx.symbolic_trace(Wide(), example_inputs=(FOUR,)))
        with torch.no_grad():
            assert torch.equal(run(FOUR), run(FOUR))
    gm = fx.symbolic_trace(Wide(), example_inputs=(FOUR,))
    assert [str(g) for g in gm.graph.guards] == ["weight.size(0) > 2"]
    with torch.no_grad():
        gm(FOUR)
        gm(FOUR)
        gm.weight = torch.nn.Parameter(torch.randn(1))
        with pytest.raises(fx.GuardError, match=r"weight = float32\[1\]"):
            gm(FOUR)


def variants_of(gm):
    return fxjit._C.companion(gm._snapshot._executor).all_variants()


def test_the_hot_call_checks_sizes_itself():
    gm = fx.symbolic_trace(counted, example_inputs=(3, FOUR))
    sized = fx.symbolic_trace(lambda n, x: x * n if x.size(0) > 3 else x, example_inputs=(3, FOUR))
    with torch.no_grad():
        for f, x in ((gm, TWO), (sized, FOUR)):
            for n in (3, 4, 5, 6):
                f(n, x)
    (variant,) = variants_of(sized)
    assert variant.hot is not None and variant.hot[1] == [[("s", 0, 0), ("c", 0, 3), (">", 0, 0)]]
    assert next(iter(variants_of(gm))).hot is None  # a condition on a number is asked in Python


def test_guards_stay_when_the_graph_is_edited():
    gm = fx.symbolic_trace(alike, example_inputs=(FOUR, FOUR))
    x, y = gm.graph.find_nodes(op="placeholder")
    with gm.graph.inserting_before(x):
        scale = gm.graph.placeholder("scale")
    add = next(n for n in gm.graph.nodes if n.op == "call_function" and n.name == "add")
    with gm.graph.inserting_after(add):
        product = gm.graph.call_function(torch.mul, (add, scale))
    add.replace_all_uses_with(product, delete_user_cb=lambda user: user is not product)
    gm.recompile()
    assert torch.equal(gm(torch.tensor(2.0), TWO, TWO), (TWO + TWO) * 2)
    with pytest.raises(fx.GuardError, match=r"called with x = float32\[4, 3\], y = float32\[2, 3\]"):
        gm(torch.tensor(2.0), FOUR, TWO)


def test_a_guard_on_a_parameter_that_was_removed_says_nothing():
    gm = fx.symbolic_trace(lambda x, y: x + 1 if y.size(0) > 3 else x, example_inputs=(FOUR, FOUR))
    gm.graph.eliminate_dead_code()
    gm.graph.erase_node(gm.graph.find_nodes(op="placeholder")[1])
    gm.recompile()
    assert torch.equal(gm(TWO), TWO + 1)


def test_who_knows_better_drops_the_guards():
    gm = fx.symbolic_trace(grow, example_inputs=(FOUR,))
    gm.graph.guards = []
    with pytest.raises(fx.GuardError):
        gm(TWO)  # what runs is the graph as of the last recompile()
    gm.recompile()
    assert torch.equal(gm(TWO), TWO + 1)


def test_traced_again_the_check_is_part_of_the_new_graph():
    gm = fx.symbolic_trace(grow, example_inputs=(FOUR,))
    outer = fx.symbolic_trace(Calling(gm))
    assert torch.equal(outer(FOUR), FOUR * 2 + 1)
    with pytest.raises(AssertionError, match=r"traced for x.size\(0\) > 3"):
        outer(TWO)
    known = fx.symbolic_trace(Calling(gm), example_inputs=(FOUR,))
    assert [str(g) for g in known.graph.guards] == ["z.dim() == 2", "z.size(0) > 3"]
    with pytest.raises(fx.GuardError):
        fx.symbolic_trace(Calling(gm), example_inputs=(TWO,))


def test_two_ways_to_run_one_module():
    """What the module does when it is called directly is no change to who compiled it."""
    gm = fx.symbolic_trace(lambda x: torch.softmax(x, -1) * 2)
    f = fxjit.compile(gm)
    with torch.no_grad():
        for _ in range(3):
            f(FOUR)
            gm(FOUR)
            f(TWO)
    explanation = f.explain()
    assert not [n for n in explanation.notes if "captured again" in n]
    assert explanation.recorded_calls == 1
    with torch.no_grad():
        for node in gm.graph.nodes:
            if node.name == "mul":
                node.args = (node.args[0], 3)
        gm.recompile()
        torch.testing.assert_close(f(FOUR), torch.softmax(FOUR, -1) * 3)
