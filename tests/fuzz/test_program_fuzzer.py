"""300 random programs equal eager; and the fuzzer finds what is planted, shrinks it, and prints what runs."""

import contextlib
import dataclasses
import io
import sys
from pathlib import Path

import pytest
import torch

import fxjit

sys.path.insert(0, str(Path(__file__).parent))
import program_fuzzer as fuzzer  # noqa: E402


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_random_programs_equal_eager(first):
    for seed in range(first, first + 50):
        program = fuzzer.generate(seed)
        problem = fuzzer.check(program)
        if problem:
            least = fuzzer.shrink(program)
            pytest.fail(fuzzer.reproducer(least, fuzzer.check(least) or problem), pytrace=False)


def test_a_seed_is_a_program():
    assert fuzzer.generate(5) == fuzzer.generate(5)
    assert len({fuzzer.generate(seed).source() for seed in range(20)}) > 15


def wrong(before, after):
    """A compiler that takes one thing for another."""
    return lambda f: fxjit.compile(fuzzer.build(f.source.replace(before, after)))


@pytest.mark.parametrize("before, after", [
    ("torch.sigmoid(", "torch.tanh("),           # values
    ("torch.softmax(", "torch.log_softmax("),
    (".mul_(", ".add_("),                        # what is written to memory
    (".double()", ".float()"),                   # dtype
    (".contiguous()", ".clone()"),               # whose memory an output is
])
def test_a_planted_bug_is_found_and_shrunk(before, after):
    for seed in range(400):
        program = fuzzer.generate(seed)
        if before in program.source() and fuzzer.check(program, wrong(before, after)):
            break
    else:
        pytest.fail("not found")
    least = fuzzer.shrink(program, wrong(before, after))
    assert fuzzer.check(least, wrong(before, after)) and before in least.source()
    assert len(least.statements) <= 3, least.source()
    assert len(least.statements) <= len(program.statements) and len(least.inputs) <= 2


def test_a_bug_of_other_sizes_alone_is_found():
    def compiler(f):
        calls = []

        def run(*args):
            calls.append(1)
            return tuple(o.clone() for o in out) if len(calls) == 3 and (out := last) else save(f(*args))

        def save(value):
            nonlocal last
            last = fuzzer.tensors(value)
            return value

        last = None
        return run

    axes = fuzzer.Input(("a",), torch.float32, "contiguous")
    step = fuzzer.Statement("exact", "{0} * 0.5", ("x0",), "v0")
    program = fuzzer.Program(0, {"x0": axes}, ({"a": 4}, {"a": 5}), (step,), ("v0",))
    assert "call 2 (other sizes): shape" in fuzzer.check(program, compiler)


def test_a_few_units_are_right_and_a_thousandth_is_not():
    axes = fuzzer.Input(("a",), torch.float32, "contiguous")
    steps = (fuzzer.Statement("inexact", "torch.sigmoid({0})", ("x0",), "v0"),
             fuzzer.Statement("exact", "{0} - 0.5", ("v0",), "v1"))
    program = fuzzer.Program(0, {"x0": axes}, ({"a": 64}, {"a": 65}), steps, ("v1",))
    off = lambda by: lambda f: lambda x: f(x) + by  # noqa: E731
    assert fuzzer.check(program, off(1e-7)) is None
    assert "values of v1" in fuzzer.check(program, off(1e-3))


def test_a_write_to_an_input_is_seen():
    axes = fuzzer.Input(("a",), torch.float32, "stepped")
    step = fuzzer.Statement("exact", "{0} + 1", ("x0",), "v0")
    program = fuzzer.Program(0, {"x0": axes}, ({"a": 4}, {"a": 5}), (step,), ("v0",))

    def writes(f):
        def run(x):
            out = f(x)
            x.add_(1)
            return out
        return run

    assert "memory of x0 afterwards" in fuzzer.check(program, writes)


def test_the_reproducer_runs_alone():
    program = dataclasses.replace(fuzzer.generate(3), seed=3)
    script = fuzzer.reproducer(program, "nothing")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(script, "<reproducer>", "exec"), {})
    assert out.getvalue().count("eager") == 4
