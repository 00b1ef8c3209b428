"""What makes tracing fast, counted: no Python of ours runs per operator. The times are in the benchmarks."""

import sys

import pytest


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
