"""What makes tracing fast, counted: no Python of ours runs per operator. The times are in the benchmarks."""

import sys

import pytest
import torch


def chain(count):
    def program(x):
        for _ in range(count):
            x = x + 1
        return x
    return program


def plain(fx):
    return fx.Tracer()


def overridden(fx):
    class T(fx.Tracer):
        def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
            return super().create_node(kind, target, args, kwargs, name, type_expr)

    return T()


def python_calls(run):
    """How many Python functions are entered."""
    entered = 0

    def count(frame, event, argument):
        nonlocal entered
        entered += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(before)
    return entered


@pytest.mark.parametrize(("make", "each"), [(plain, 0), (overridden, 1)])
def test_an_operator_costs_python_calls(ours, make, each):
    python_calls(lambda: make(ours).trace(chain(1)))  # what is imported or cached by the first trace
    small, large = (python_calls(lambda: make(ours).trace(chain(n))) for n in (100, 1100))
    assert large - small == each * 1000


class Calls(torch.nn.Module):
    """`count` calls of one submodule."""

    def __init__(self, count, inner):
        super().__init__()
        self.count, self.inner = count, inner

    def forward(self, x):
        for _ in range(self.count):
            x = self.inner(x)
        return x


def own_paths(fx):
    class T(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return super().is_leaf_module(m, module_qualified_name)

    return T()


@pytest.mark.parametrize(("make", "each"), [(plain, 2), (own_paths, 4)])
def test_a_call_of_a_leaf_module_costs_python_calls(ours, make, each):
    """What stands for torch.nn.Module.__getattr__ and __call__ during a trace; a step that is overridden, and its base's."""
    def trace(count):
        return python_calls(lambda: make(ours).trace(Calls(count, torch.nn.ReLU())))

    trace(1)
    assert trace(1100) - trace(100) == each * 1000


def test_a_tree_of_modules_costs_no_python_calls(ours):
    """Paths and constants of modules that are not called."""
    def trace(count):
        root = Calls(1, torch.nn.ReLU())
        root.others = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(1, 1)) for _ in range(count)))
        return python_calls(lambda: plain(ours).trace(root))

    trace(1)
    assert trace(200) == trace(10)
