"""Programs that handle exceptions: compiled where no operation can raise in what they guard."""

import contextlib
import importlib
import random

import numpy
import pytest
import torch

import fxjit


def test_exceptions_that_the_program_catches():
    def f(x):
        try:
            return x.view(7)
        except RuntimeError:
            return x * 3
    c = fxjit.compile(f)
    for n in (7, 7, 3, 3):
        assert torch.equal(c(torch.ones(n)), f(torch.ones(n)))


@contextlib.contextmanager
def tidy():
    try:
        yield 2
    finally:
        pass


@contextlib.contextmanager
def forgiving():
    try:
        yield 2
    except RuntimeError:
        pass


class Forgiving:
    def __enter__(self):
        return 2

    def __exit__(self, *_):
        return True


def is_there(name):
    try:
        return bool(importlib.import_module(name))
    except ImportError:
        return False


def finally_(x):
    n = 1
    try:
        x = x.view(7)
    finally:
        n += 1
    return x * n


def within(manager):
    def f(x):
        with manager() as n:
            x = x.view(7) * n
        return x
    return f


def unknown_attribute(x):
    try:
        return x.nonsense
    except AttributeError:
        return x * 2


def again_and_again(x):
    while True:
        try:
            return x.sum().item()
        except Exception:
            continue


@pytest.mark.parametrize("f, captured", [
    (finally_, True), (within(tidy), True), (lambda x: x + is_there("no_such_module"), True),
    (within(lambda: contextlib.nullcontext(2)), True),
    (within(forgiving), False), (within(Forgiving), False), (unknown_attribute, False), (again_and_again, False),
    (within(lambda: contextlib.suppress(RuntimeError, TypeError)), False),
], ids="finally with_finally no_operation nullcontext with_except own_manager attribute loop suppress".split())
def test_code_that_handles_exceptions_is_captured_where_no_operation_can_raise_in_it(f, captured):
    def outcome(g, x):
        try:
            return g(x)
        except (RuntimeError, TypeError) as e:
            return type(e)

    c = fxjit.compile(f)
    for n in (7, 7, 3, 3, 7):
        x = torch.arange(n, dtype=torch.float32)
        got, wanted = outcome(c, x), outcome(f, x)
        assert got is wanted or torch.equal(torch.as_tensor(got), torch.as_tensor(wanted))
    assert bool(c.explain().specialisations) == captured, str(c.explain())
    assert captured or "catches exceptions" in str(c.explain())


def test_errors_of_the_program_are_raised_and_not_logged(caplog):
    norm = torch.nn.BatchNorm1d(3)

    def f(x):
        y = x @ torch.ones(3, 3)
        return norm(y) if y.dim() == 2 else y

    c = fxjit.compile(f)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="cannot be multiplied"):
            c(torch.ones(2, 5))
    assert not caplog.records


@pytest.mark.parametrize("draw", [random.random, numpy.random.rand])
@pytest.mark.parametrize("fails", [False, True])
def test_random_numbers_are_drawn_once_a_call(draw, fails):
    def f(x):
        y = x * float(draw())
        return y if not fails or y.sum() > 0 else x

    def run(g):
        random.seed(1), numpy.random.seed(1)
        return [g(torch.ones(2))[0].item() for _ in range(4)]

    assert run(fxjit.compile(f)) == run(f)
