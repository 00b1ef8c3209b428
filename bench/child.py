"""One process of the comparison: every contender of every case, checked, then timed in turns.

compare.py starts it with the malloc and OpenMP settings in its environment, and reads one JSON object from the file it names."""

import argparse
import gc
import importlib
import json
import os
import random
import statistics
import sys
import time
from pathlib import Path


def start_jax_threads():
    """JAX's pool is made before torch brings libgomp, which binds this thread: later threads would share its one CPU."""
    try:
        jax = importlib.import_module("jax")
    except ImportError:
        return
    jax.jit(lambda x: x + 1)(jax.numpy.ones(16)).block_until_ready()


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--budget", type=float, required=True)
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--hand-lib", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def progress(text):
    print(f"  {text}", file=sys.stderr, flush=True)


SLOT_NS = 5_000_000


def slot(call):
    """Times of single calls over a few milliseconds. The first call finds the caches of whoever ran before, and is dropped."""
    call()
    times, spent = [], 0
    while spent < SLOT_NS:
        start = time.perf_counter_ns()
        result = call()
        spent += (lap := time.perf_counter_ns() - start)
        times.append(lap)
        del result
    return times


def race(contenders, budget, rng):
    """Rounds in shuffled order until the budget of seconds is spent, three at least; the median time of each, in ms."""
    times = {c.name: [] for c in contenders}
    order, rounds, end = list(contenders), 0, time.perf_counter() + budget
    while rounds < 3 or time.perf_counter() < end:
        rng.shuffle(order)
        for contender in order:
            times[contender.name] += slot(contender.call)
        rounds += 1
    return {name: statistics.median(t) / 1e6 for name, t in times.items()}


def per_call_us(call, budget=0.15, batch=200):
    """Microseconds of one call, from batches: a clock read would weigh too much beside a call of 0.3 µs."""
    laps, end = [], time.perf_counter() + budget
    while not laps or time.perf_counter() < end:
        start = time.perf_counter_ns()
        for _ in range(batch):
            call()
        laps.append((time.perf_counter_ns() - start) / batch / 1e3)
    return statistics.median(laps)


def measure_case(field, case, budget, rng):
    """{"ms": …, "wrong": …, "error": …, "first_ms": …}; a contender whose result is wrong is not timed."""
    from cases import EPS

    args = case.make()
    exact = case.exact(args)
    good, wrong, errors, first = [], {}, {}, {}
    for contender in field.contenders(case, args, EPS):
        first[contender.name] = contender.first_ms
        if contender.name != "copy":
            result = contender.tensor(contender.call())
            error = case.tolerance.error(result, exact)
            errors[contender.name] = error
            if result.dtype != args[0].dtype or not error <= case.tolerance.value:
                wrong[contender.name] = f"{result.dtype}, error {error:.3g}, allowed {case.tolerance}"
                continue
        good.append(contender)
    del exact
    return {"ms": race(good, budget, rng), "wrong": wrong, "error": errors, "first_ms": first}


def measure_calls(field, rng):
    """Microseconds of a call of Foo on 16 elements, from Python."""
    import torch
    from cases import Foo, jax_foo

    args = [torch.randn(16).half(), torch.randn(16).half()]
    foo = Foo()
    calls = {"eager": lambda: foo(*args)}
    if "inductor" not in field.missing:
        compiled = field.compile_inductor(foo)
        calls["inductor"] = lambda: compiled(*args)
    if field.jax:
        jitted = field.jax.jit(lambda x, y: jax_foo(field.jax, x, y))
        operands = [field.jax.numpy.asarray(a.numpy()) for a in args]
        calls["jax"] = lambda: jitted(*operands).block_until_ready()
    if field.fxjit:
        ours = field.fxjit.compile(foo)
        calls["fxjit"] = lambda: ours(*args)
    return shuffled_rounds(calls, per_call_us, 5, rng)


def shuffled_rounds(calls, measure, rounds, rng):
    for call in calls.values():
        call(), call(), call()
    names, found = list(calls), {name: [] for name in calls}
    for _ in range(rounds):
        rng.shuffle(names)
        for name in names:
            found[name].append(measure(calls[name]))
    return {name: statistics.median(v) for name, v in found.items()}


# What a compilation spends before there is a graph, or on the recorded first call, is capture and not compilation.
CAPTURE_STAGES = ("capture", "trace", "record")


def fxjit_compile_ms(fxjit, fn, x):
    compiled = fxjit.compile(fn)
    compiled(x)
    stages = compiled.explain().stages
    return sum(ms for stage, ms in stages.items() if stage not in CAPTURE_STAGES)


def measure_compile(field):
    """Milliseconds to compile small graphs; fxjit's first is the process's first, so this runs before anything else."""
    import torch
    from cases import further_graphs, jax_further_graphs, jax_sigmoid_lowp, sigmoid_lowp

    x = torch.randn(1 << 12).half()
    found = {}
    if field.fxjit:
        found["fxjit_first"] = fxjit_compile_ms(field.fxjit, sigmoid_lowp, x)
        found["fxjit_further"] = statistics.median(fxjit_compile_ms(field.fxjit, f, x) for f in further_graphs())
    if field.jax:
        operand = field.jax.numpy.asarray(x.numpy())
        graphs = [lambda v: jax_sigmoid_lowp(field.jax, v), *jax_further_graphs(field.jax)]
        times = []
        for graph in graphs:
            lowered = field.jax.jit(graph).lower(operand)
            start = time.perf_counter()
            lowered.compile()
            times.append((time.perf_counter() - start) * 1e3)
        found["jax_first"], found["jax_further"] = times[0], statistics.median(times[1:])
    return found


def measure_trace(field, count=20_000, rounds=3):
    """Milliseconds to trace `count` additions, with the stock Tracer and with one that overrides create_node in Python."""
    import torch.fx
    from cases import additions

    found = {}
    modules = {"torch": torch.fx} | ({"fxjit": field.fxjit.fx} if field.fxjit else {})
    for name, fx in modules.items():

        class Overriding(fx.Tracer):
            def create_node(self, *args, **kwargs):
                return super().create_node(*args, **kwargs)

        for kind, tracer in (("plain", fx.Tracer), ("overridden", Overriding)):
            times = []
            for _ in range(rounds):
                gc.collect()
                start = time.perf_counter()
                tracer().trace(additions(count))
                times.append((time.perf_counter() - start) * 1e3)
            found[f"{name}_{kind}"] = statistics.median(times)
    return found


def measure_rewrite(field):
    """Milliseconds in which replace_pattern replaces 1,000 matches among 20,000 nodes: torch.fx once, ours the median
    of three."""
    import torch.fx
    from cases import repeated_pattern

    found = {}
    modules = {"torch": (torch.fx, 1)} | ({"fxjit": (field.fxjit.fx, 3)} if field.fxjit else {})
    for name, (fx, rounds) in modules.items():
        times = []
        for _ in range(rounds):
            gm = fx.symbolic_trace(lambda x: repeated_pattern(x))
            gc.collect()
            start = time.perf_counter()
            matches = fx.replace_pattern(gm, lambda x: torch.relu(torch.sin(x)), lambda x: torch.cos(x))
            times.append((time.perf_counter() - start) * 1e3)
            assert len(matches) == 1000, f"{name} replaced {len(matches)}"
        found[name] = statistics.median(times)
    return found


def main():
    options = arguments()
    if "jax" not in options.without:
        start_jax_threads()
    import torch
    from cases import CASES
    from contenders import Field

    rng = random.Random(options.seed)
    report = {"threads": options.threads, "cases": {}}
    with torch.no_grad():
        field = Field(options.threads, options.without, options.hand_lib)
        wanted = set(options.case)
        if "compile" in wanted:
            progress("compile time")
            report["compile"] = measure_compile(field)
        for case in CASES:
            if case.id in wanted:
                progress(case.id)
                report["cases"][case.id] = measure_case(field, case, options.budget, rng)
        if "call" in wanted:
            progress("call overhead")
            report["call"] = measure_calls(field, rng)
        if "trace" in wanted:
            progress("tracing")
            report["trace"] = measure_trace(field)
        if "rewrite" in wanted:
            progress("rewriting")
            report["rewrite"] = measure_rewrite(field)
    report["missing"] = field.missing
    report["hand_accuracy"] = field.hand_accuracy
    report["versions"] = {"torch": torch.__version__, "jax": getattr(field.jax, "__version__", None)}
    report["versions"]["fxjit"] = getattr(field.fxjit, "__version__", None)
    report["actual_threads"] = torch.get_num_threads()
    options.out.write_text(json.dumps(report))
    sys.stdout.flush()
    os._exit(0)  # the pools of three runtimes need no orderly end


if __name__ == "__main__":
    main()
