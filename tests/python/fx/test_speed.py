"""Tracing is an order of magnitude faster than torch.fx's. The benchmarks have the numbers; this keeps the order."""

import time

import pytest
import torch.fx

COUNT = 4000


def chain(x):
    for _ in range(COUNT):
        x = x + 1
    return x


def plain(fx):
    return fx.Tracer()


def overridden(fx):
    class T(fx.Tracer):
        def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
            return super().create_node(kind, target, args, kwargs, name, type_expr)

    return T()


def seconds(tracer, repetitions):
    def once():
        start = time.perf_counter()
        tracer.trace(chain)
        return time.perf_counter() - start

    return min(once() for _ in range(repetitions))


@pytest.mark.parametrize(("make", "factor"), [(plain, 10), (overridden, 5)])
def test_tracing_is_faster_by(ours, make, factor):
    assert seconds(make(torch.fx), 3) > factor * seconds(make(ours), 10)
