"""How fast graphs are traced, copied, checked and edited: fxjit.fx against torch.fx in one process, and how time grows with
the number of nodes. Results are compared before anything is timed. --write puts the tables into docs/benchmarks-fx.md and
the picture beside it.

  cmake --workflow --preset bench
  PYTHONPATH=build/bench/python .venv/bin/python bench/fx_speed.py
"""

import argparse
import copy
import gc
import json
import operator
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import torch
import torch.fx
from cases import additions
from fx_growth import svg

ROOT = Path(__file__).resolve().parent.parent
NODES = 20_000
CURVE = (1_000, 10_000, 100_000, 1_000_000)


@dataclass
class Case:
    """`prepare(fx)` gives what `run` is called on, anew each time and outside of the clock; `look` what is compared."""

    name: str
    factor: float  # asked: how many times as fast as torch.fx; 0: nothing is
    prepare: Callable
    run: Callable
    look: Callable = lambda result: [node.name for node in result.nodes]
    turns: int = 5


def seconds(case, fx):
    given = case.prepare(fx)
    gc.collect()
    gc.disable()  # a collection in the middle belongs to neither
    try:
        start = time.perf_counter()
        result = case.run(given)
        return time.perf_counter() - start, result
    finally:
        gc.enable()


def measure(case, fxs):
    """Medians of both, in turns."""
    theirs, ours = (case.look(seconds(case, fx)[1]) for fx in fxs)  # the first turn of each only warms
    if theirs != ours:
        raise SystemExit(f"{case.name}: the results differ; nothing is timed")
    times = [[], []]
    for _ in range(case.turns):
        for i, fx in enumerate(fxs):
            times[i].append(seconds(case, fx)[0])
    return [statistics.median(t) for t in times]


# ---- cases ----


def scoped(count):
    """A root with a submodule that is traced through: each node has a module stack."""

    class Inner(torch.nn.Module):
        def forward(self, x):
            return additions(count)(x)

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(x)

    return Outer()


def tracer(fx, overridden=False, traces=False):
    class T(fx.Tracer):
        pass

    if overridden:

        def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
            return super(T, self).create_node(kind, target, args, kwargs, name, type_expr)

        T.create_node = create_node
    made = T()
    made.record_stack_traces = traces
    return made


def tracing(name, factor, root, turns=5, **options):
    return Case(name, factor, lambda fx: tracer(fx, **options), lambda t: t.trace(root), turns=turns)


def chain(fx, count=NODES):
    return fx.Tracer().trace(additions(count))


def dead_chain(fx, count=NODES):
    graph = chain(fx, count)
    next(iter(reversed(graph.nodes))).args = (None,)
    return graph


def used_by(fx, each, count=NODES):
    """A stand-in, and nodes of which each has `each` users; `count` nodes in all."""
    graph = fx.Graph()
    stand_in = graph.placeholder("x")
    used = []
    for _ in range(count // (each + 1)):
        used.append(graph.call_function(operator.neg, (stand_in,)))
        for _ in range(each):
            last = graph.call_function(operator.neg, (used[-1],))
    graph.output(last)
    return graph, stand_in, used


def chain_uses(fx):
    graph = chain(fx)
    stand_in, *nodes = graph.nodes
    return graph, stand_in, [node for node in nodes if node.op == "call_function"]


def replace_all(given):
    """Uses of every node go to a node that stands for it. Which nodes those are is found before the clock starts: the list
    and the question for `op` took as long as the calls."""
    graph, stand_in, nodes = given
    for node in nodes:
        node.replace_all_uses_with(stand_in)
    return graph


def graph_copy(pair):
    source, target = pair
    target.graph_copy(source, {})
    return target


def lint(graph):
    graph.lint()
    return graph


def dead_code(graph):
    graph.eliminate_dead_code()
    return graph


def recompiled(module):
    """recompile(), and the code for any input ready: torch.fx's Python function, our machine code."""
    module.recompile()
    if isinstance(module, torch.fx.GraphModule):
        return module
    from fxjit._C import GenericForward

    generic = GenericForward(module._snapshot)
    return lambda x: generic(module, [x])


def called(module):
    """The first call is recorded as well, and a specialisation compiled from the record."""
    module.recompile()
    return module(torch.ones(2))


def node_list(graph):
    return [(node.name, len(node.users)) for node in graph.nodes]


def model_cases():
    from torchvision import models

    with torch.device("meta"):
        named = {"ResNet-50": models.resnet50(), "ViT-B/16": models.vit_b_16()}
    named["12-layer transformer"] = Blocks(12)
    return [tracing(f"trace {name}", 3, model.eval()) for name, model in named.items()]


class Block(torch.nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(dim), torch.nn.LayerNorm(dim)
        self.qkv, self.out = torch.nn.Linear(dim, 3 * dim), torch.nn.Linear(dim, dim)
        self.up, self.down = torch.nn.Linear(dim, 4 * dim), torch.nn.Linear(4 * dim, dim)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).chunk(3, -1)
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (q, k, v))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm2(x))))


class Blocks(torch.nn.Module):
    """A transformer written out, so that the trace goes through its layers."""

    def __init__(self, layers, dim=64, heads=4):
        super().__init__()
        self.layers = torch.nn.ModuleList(Block(dim, heads) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def gm_of(fx):
    graph = chain(fx)
    return fx.GraphModule({}, graph)


def cases():
    yield tracing("trace 20,000 additions, module scopes", 30, scoped(NODES))
    yield tracing("trace 20,000 additions, create_node overridden", 12, scoped(NODES), overridden=True)
    yield tracing("trace 20,000 additions, stack traces", 10, scoped(NODES), turns=3, traces=True)
    yield from model_cases()
    yield Case("deepcopy", 20, chain, copy.deepcopy)
    yield Case("lint", 20, chain, lint)
    yield Case("eliminate_dead_code, all dead", 20, dead_chain, dead_code)
    yield Case("replace_all_uses_with of every node, one user each", 20, chain_uses, replace_all, node_list)
    yield Case("replace_all_uses_with, eight users each", 20, lambda fx: used_by(fx, 8), replace_all, node_list)
    yield Case("graph_copy", 20, lambda fx: (chain(fx), fx.Graph()), graph_copy)
    yield Case("recompile, code for any input ready", 1, gm_of, recompiled, lambda f: f(torch.ones(2)).tolist())
    yield Case("recompile and first call", 0, gm_of, called, lambda t: t.tolist(), turns=3)


# ---- memory ----

MEMORY = """
import gc, importlib, resource, sys, torch, torch.fx
fx = importlib.import_module(sys.argv[1])
sys.path.insert(0, sys.argv[2])
from cases import additions
from fx_growth import svg
def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()
fx.Tracer().trace(additions(1000))
gc.collect()
before, count = resident(), 200_000
graph = fx.Tracer().trace(additions(count))
nodes = list(graph.nodes)
gc.collect()
print((resident() - before) / count)
"""


def bytes_per_node(name):
    command = [sys.executable, "-c", MEMORY, name, str(Path(__file__).parent)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


# ---- C++ alone ----

CPP_NAME, CPP_FILTER, CPP_SECONDS = "C++: trace 100,000 additions by Proxy", "BM_fx_trace_additions/100000$", 0.1


def cpp_seconds(binary):
    """The median of five repetitions, each of many traces; None without the binary."""
    if not binary.exists():
        return None
    command = [str(binary), f"--benchmark_filter={CPP_FILTER}", "--benchmark_repetitions=5", "--benchmark_format=json"]
    rows = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["benchmarks"]
    times = [row["real_time"] for row in rows if row["run_type"] == "iteration"]
    return statistics.median(times) / 1e3  # they are in ms


# ---- growth ----


def curve_steps(fx):
    return {
        "trace": lambda count, graph: chain(fx, count),
        "copy": lambda count, graph: copy.deepcopy(graph),
        "lint": lambda count, graph: graph.lint(),
        "print": lambda count, graph: str(graph),
        "print_text": lambda count, graph: fx.print_text(graph),
        "parse_text": lambda count, text: fx.parse_text(text),
        "dead code": lambda count, graph: dead_code(graph),
    }


def curve(fx, sizes):
    """step → seconds at each size."""
    found = {}
    for count in sizes:
        graph = chain(fx, count)
        for name, step in curve_steps(fx).items():
            if name == "dead code":
                next(iter(reversed(graph.nodes))).args = (None,)
            given = fx.print_text(graph) if name == "parse_text" else graph
            gc.collect()
            gc.disable()
            start = time.perf_counter()
            keep = step(count, given)
            found.setdefault(name, []).append(time.perf_counter() - start)
            gc.enable()
            del keep
    return found


def report(rows, memory, cpp, found, sizes):
    lines = ["# Benchmarks of fxjit.fx", "", "Made by `bench/fx_speed.py --write`: torch.fx and fxjit.fx in one process, in "
             f"turns, medians, {NODES:,} nodes where nothing else is said; results are compared first.", ""]
    lines += ["| what | torch.fx, ms | fxjit.fx, ms | × | asked |", "| --- | --- | --- | --- | --- |"]
    for case, (theirs, ours) in rows:
        times = theirs / ours
        mark = "" if times >= case.factor else " **falls short**"
        asked = f"{case.factor:g}{mark}" if case.factor else "–"
        lines.append(f"| {case.name} | {theirs * 1e3:.3g} | {ours * 1e3:.3g} | {times:.3g} | {asked} |")
    if memory:
        mark = "" if memory[1] <= memory[0] / 2 else " **falls short**"
        lines.append(f"| bytes per node, with its Python object | {memory[0]:.0f} | {memory[1]:.0f} | "
                     f"{memory[0] / memory[1]:.3g} | 2{mark} |")
    if cpp:
        mark = "" if cpp <= CPP_SECONDS else " **falls short**"
        lines.append(f"| {CPP_NAME} | – | {cpp * 1e3:.3g} | – | at most {CPP_SECONDS * 1e3:g} ms{mark} |")
    if found:
        lines += ["", "## Growth", "", "Seconds over the number of nodes of a chain of additions, fxjit.fx:", "",
                  f"| nodes | {' | '.join(found)} |", "| --- |" + " --- |" * len(found)]
        for i, count in enumerate(sizes):
            lines.append(f"| {count:,} | {' | '.join(f'{row[i]:.3g}' for row in found.values())} |")
        if len(sizes) > 1:
            lines.append(f"| growth over the last step of {sizes[-1] // sizes[-2]} | " +
                         " | ".join(f"{row[-1] / row[-2]:.3g}" for row in found.values()) + " |")
        lines += ["", "`print` is `str(graph)`; `print_text` and `parse_text` are the text format. Time a node grows a "
                  "little with the size, as the graph leaves the caches; the work does not: `tests/unit/fx/linear_test.cpp` "
                  "counts it.", "", "![seconds over nodes](fx-growth.svg)"]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--match", default="", help="only cases whose name contains this, and neither memory nor growth")
    parser.add_argument("--largest", type=int, default=CURVE[-1], help="nodes of the largest graph of the growth table")
    parser.add_argument("--binary", type=Path, default=ROOT / "build" / "bench" / "fxjit_bench",
                        help="the C++ benchmarks, by default those of preset bench")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks-fx.md and docs/fx-growth.svg")
    args = parser.parse_args()
    if args.write and (args.match or not args.binary.exists()):
        parser.error(f"--write needs all rows: no --match, and {args.binary}")
    import fxjit.fx

    rows = []
    for case in cases():
        if args.match in case.name:
            print(f"{case.name} ...", file=sys.stderr, flush=True)
            rows.append((case, measure(case, (torch.fx, fxjit.fx))))
    memory, cpp, found, sizes = None, None, None, [n for n in CURVE if n <= args.largest]
    if not args.match:
        print("memory, growth ...", file=sys.stderr, flush=True)
        memory = [bytes_per_node(name) for name in ("torch.fx", "fxjit.fx")]
        cpp = cpp_seconds(args.binary)
        found = curve(fxjit.fx, sizes)
    text = report(rows, memory, cpp, found, sizes)
    print(text)
    if args.write:
        (ROOT / "docs" / "benchmarks-fx.md").write_text(text)
        (ROOT / "docs" / "fx-growth.svg").write_text(svg(found, sizes))


if __name__ == "__main__":
    main()
