"""The main job, stage by stage: trace the primitive library, inline it, compile it, run it.

Run it with `tools/demo`, or with `python examples/demo.py` where fxjit is installed.
"""

import argparse
import re
import time

import torch

import fxjit
from primitive_library import Foo, add_lowp, inline_composite, sigmoid_lowp  # noqa: F401


def heading(text):
    print(f"\n==== {text} " + "=" * max(0, 100 - len(text)))


def shortest(f, *args, seconds=0.3):
    """Microseconds of the fastest call, after the slow first ones."""
    for _ in range(3):
        f(*args)
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        f(*args)
        best = min(best, time.perf_counter() - start)
    return best * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1 << 20, help="elements of each input (default: 2^20)")
    size = parser.parse_args().size

    heading("the traced graph: composites are calls")
    traced = fxjit.fx.symbolic_trace(Foo())
    print(traced.graph)

    heading("the same graph with sigmoid_lowp and add_lowp inlined")
    for node in traced.graph.nodes:
        if node.op == "call_function" and node.target in (sigmoid_lowp, add_lowp):
            inline_composite(node)
    traced.recompile()
    print(traced.graph)

    heading("compiled: forward and its kernel in LLVM IR")
    compiled = fxjit.compile(traced)
    x, y = (torch.randn(size, dtype=torch.float16) for _ in range(2))
    start = time.perf_counter()
    first = compiled(x, y)
    first_ms = (time.perf_counter() - start) * 1e3
    second = compiled(x, y)
    code = compiled.code
    print(re.sub(r"\n; ---- kernel", "\n\n; ---- kernel", code[code.index("; ---- specialisation"):]))

    heading("what became of the program")
    print(compiled.explain())

    heading("results against eager")
    eager = Foo()(x, y)
    error = max((r.double() - eager.double()).abs().max().item() for r in (first, second))
    print(f"largest difference: {error}   (float16, {size} elements, one rounding unit at 1 is {torch.finfo(torch.float16).eps})")
    if error > torch.finfo(torch.float16).eps:
        raise SystemExit("the compiled program differs from eager")

    heading("times")
    small = torch.randn(16, dtype=torch.float16)
    print(f"first call, recorded and compiled: {first_ms:.1f} ms")
    for label, a, b in ((f"{size} elements", x, y), ("16 elements", small, small.clone())):
        ours, theirs = shortest(compiled, a, b), shortest(Foo(), a, b)
        print(f"{label}: fxjit {ours:.2f} us, eager {theirs:.2f} us: {theirs / ours:.1f} x")


if __name__ == "__main__":
    with torch.no_grad():
        main()
