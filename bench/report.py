"""The tables: times and ratios by case, and one row for each gate with what was asked and what was reached."""

import statistics
from dataclasses import dataclass
from pathlib import Path

from cases import CASES
from names import EVERYONE, LABEL
from reasons import reason


@dataclass
class Gate:
    name: str
    asked: str
    got: float | None  # None: not measured
    limit: float
    at_most: bool = False  # a time has an upper limit, a ratio a lower one
    missing: str = ""
    spread: str = ""

    @property
    def reached(self):
        return self.got is not None

    @property
    def passes(self):
        return self.got <= self.limit if self.at_most else self.got >= self.limit

    def cells(self):
        if not self.reached:
            return [self.name, self.asked, "–", "not measured", self.missing]
        verdict = "pass" if self.passes else "**falls short**"
        return [self.name, self.asked, number(self.got) + self.spread, verdict, "" if self.passes else reason(self.name)]


def cpu_name():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown CPU"


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def spread(values):
    return f" ({number(min(values))} to {number(max(values))})" if len(values) > 1 else ""


def number(value, digits=3):
    return "–" if value is None else f"{value:.{digits}g}" if value < 1000 else f"{value:.0f}"


class Measured:
    """What the processes measured, by case and number of threads."""

    def __init__(self, runs):
        self.runs = runs

    def of(self, threads, case):
        return [r["cases"][case.id] for r in self.runs if r["threads"] == threads and case.id in r["cases"]]

    def ms(self, threads, case, name):
        return median(r["ms"].get(name) for r in self.of(threads, case))

    def ratios(self, threads, case, name, to="fxjit"):
        """How many times faster `to` is than `name`, in each process."""
        times = [r["ms"] for r in self.of(threads, case)]
        return [t[name] / t[to] for t in times if name in t and to in t]

    def extra(self, group, key):
        return [r[group][key] for r in self.runs if key in r.get(group, {})]

    @property
    def threads(self):
        return sorted({r["threads"] for r in self.runs})

    @property
    def missing(self):
        return {name: why for r in self.runs for name, why in r["missing"].items()}


def table(head, rows):
    return ["| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows]]


def measured_rows(measured):
    return [(c, t) for c in CASES for t in measured.threads if measured.of(t, c)]


def times_table(measured):
    names = [n for n in EVERYONE if n not in measured.missing]
    rows = [
        [case.name, case.size, str(threads), *[number(measured.ms(threads, case, n)) for n in names]]
        for case, threads in measured_rows(measured)
    ]
    return table(["case", "elements", "threads", *[f"{LABEL[n]}, ms" for n in names]], rows)


def case_gates(measured, case, threads):
    for name, limit in case.gates.items():
        ratios = measured.ratios(threads, case, name)
        got = 0.0 if any("fxjit" in r["wrong"] for r in measured.of(threads, case)) else median(ratios)
        absent = measured.missing.get("fxjit") or measured.missing.get(name, f"{LABEL[name]} was wrong")
        title = f"{case.name} {case.size}, {threads} thread{'s'[: threads - 1]}: {LABEL[name]}"
        yield Gate(title, f"≥ {limit:g} ×", got, limit, missing=absent, spread=spread(ratios))


def ratio_table(measured):
    """One line for each case and number of threads: ratios, those without a gate in brackets, those that fall short bold."""
    names = [n for n in EVERYONE if n not in measured.missing and n != "fxjit"]
    rows = []
    for case, threads in measured_rows(measured):
        gates = dict(zip(case.gates, case_gates(measured, case, threads)))
        cells = []
        for name in names:
            ratios = measured.ratios(threads, case, name)
            text = number(median(ratios)) + spread(ratios)
            if name not in gates:
                text = f"[{number(median(ratios))}]"
            elif not gates[name].reached or not gates[name].passes:
                text = f"**{text}**, asked {case.gates[name]:g}"
            cells.append(text)
        short = [g for g in gates.values() if g.reached and not g.passes]
        absent = [g.missing for g in gates.values() if not g.reached]
        verdict = "falls short" if short else "not measured" if absent else "pass"
        why = "; ".join(dict.fromkeys([reason(g.name) for g in short] + absent))
        rows.append([case.name, case.size, str(threads), *cells, verdict, why])
    return table(["case", "elements", "threads", *[f"× {LABEL[n]}" for n in names], "gates", "reason"], rows)


def time_gate(name, values, limit, unit, missing):
    """A time is held against its limit by its minimum: what disturbs a measurement only adds to it."""
    return Gate(name, f"≤ {limit:g} {unit}", min(values, default=None), limit, True, missing, spread(values) if values else "")


def other_gates(measured, cpp):
    absent = measured.missing.get("fxjit", "not asked for")
    yield time_gate("compile, first kernel, ms", measured.extra("compile", "fxjit_first"), 12, "ms", absent)
    further = measured.extra("compile", "fxjit_further")
    yield time_gate("compile, each further kernel, ms", further, 6, "ms", absent)
    jax = measured.extra("compile", "jax_further")
    ratios = [j / f for j, f in zip(jax, further)]
    yield Gate("compile, further kernel: speed of JAX", "≥ 5 ×", median(ratios), 5, False, absent, spread(ratios))
    yield time_gate("call Foo on 16 elements, Python, µs", measured.extra("call", "fxjit"), 0.6, "µs", absent)
    in_cpp = cpp.get("call/foo16", []) if isinstance(cpp, dict) else []
    why = cpp if isinstance(cpp, str) else "fxjit_bench has no call/foo16"
    yield time_gate("call Foo on 16 elements, C++, µs", in_cpp, 0.3, "µs", why)
    for kind, limit in (("plain", 20), ("overridden", 10)):
        ours, theirs = measured.extra("trace", f"fxjit_{kind}"), measured.extra("trace", f"torch_{kind}")
        ratios = [t / o for t, o in zip(theirs, ours)]
        title = "trace 20,000 additions" + (", create_node overridden" if kind == "overridden" else "")
        yield Gate(f"{title}: speed of torch.fx", f"≥ {limit} ×", median(ratios), limit, False, absent, spread(ratios))
    ratios = [t / o for t, o in zip(measured.extra("rewrite", "torch"), measured.extra("rewrite", "fxjit"))]
    title = "replace_pattern, 1,000 matches in 20,000 nodes: speed of torch.fx"
    yield Gate(title, "≥ 20 ×", median(ratios), 20, False, absent, spread(ratios))


def overhead_table(measured, cpp):
    """Compile, call, trace and rewrite times of everyone, for the reader; the gates have rows of their own."""
    rows = []
    for name in ("eager", "inductor", "jax", "fxjit"):
        rows.append((f"call Foo on 16 elements, {LABEL[name]}, µs", measured.extra("call", name)))
    rows += [(f"{name}, C++, µs", us) for name, us in (cpp.items() if isinstance(cpp, dict) else [])]
    for key in ("fxjit_first", "fxjit_further", "jax_first", "jax_further"):
        who, which = key.split("_")
        rows.append((f"compile, {which} kernel, {LABEL[who]}, ms", measured.extra("compile", key)))
    first = [c["first_ms"]["inductor"] for c in measured.runs[0]["cases"].values() if "inductor" in c["first_ms"]]
    rows.append(("first call of a case, torch.compile, empty disk cache, ms", first))
    for key in ("torch_plain", "torch_overridden", "fxjit_plain", "fxjit_overridden"):
        who, kind = key.split("_")
        rows.append((f"trace 20,000 additions, {who}.fx, {kind}, ms", measured.extra("trace", key)))
    for who in ("torch", "fxjit"):
        rows.append((f"replace_pattern, 1,000 matches in 20,000 nodes, {who}.fx, ms", measured.extra("rewrite", who)))
    filled = [[what, number(median(values)) + spread(values)] for what, values in rows if values]
    return table(["what", "median (range)"], filled)


def wrong_results(measured):
    seen = {}
    for run in measured.runs:
        for case, result in run["cases"].items():
            for name, what in result["wrong"].items():
                seen[f"{case}, {run['threads']} threads, {LABEL[name]}"] = what
    return [f"- {where}: {what}; not timed" for where, what in seen.items()]


def error_table(measured):
    names = [n for n in EVERYONE if n not in measured.missing and n != "copy"]
    rows = []
    for case in CASES:
        found = [e for t in measured.threads for e in measured.of(t, case)]
        if found:
            worst = [number(max(f["error"].get(n, 0.0) for f in found), 2) for n in names]
            rows.append([case.id, str(case.tolerance), *worst])
    return table(["case", "allowed", *[LABEL[n] for n in names]], rows)


def setting(measured, minutes):
    run = measured.runs[0]
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items() if version)
    processes = max(sum(r["threads"] == t for r in measured.runs) for t in measured.threads)
    lines = [
        f"CPU: {cpu_name()}. {versions}. Processes for each number of threads: {processes}. The run took {minutes:.0f} minutes.",
        "",
        "Made by `tools/bench --write`. Times are medians, in the table of gates minima; a ratio is how many times faster",
        "fxjit is, the median over the processes. All contenders run in one process in shuffled turns, under `no_grad`, with one set of malloc settings",
        "(memory is kept, huge pages are asked for) and `OMP_PROC_BIND=true`; results are checked against fp64 first, and a",
        "wrong one is not timed. *copy* is `torch.Tensor.copy_` of as many bytes as the case reads and writes; *hand* is",
        "`bench/hand_*.cpp`, AVX-512 kernels within the same error budgets, on torch's thread pool. 0.95 counts as 1: the",
        "noise.",
    ]
    if run["hand_accuracy"]:
        found = ", ".join(f"{name} {ulp:.2f} (budget {budget:g})" for name, ulp, budget in run["hand_accuracy"])
        lines += ["", f"Largest error of the hand-written functions in a sweep, ULP: {found}."]
    lines += [f"\nMissing: {LABEL[name]}: {why}." for name, why in measured.missing.items()]
    return lines


def render(runs, cpp, minutes):
    """The whole page as Markdown."""
    measured = Measured(runs)
    others = [*other_gates(measured, cpp)]
    gates = [g for case, threads in measured_rows(measured) for g in case_gates(measured, case, threads)] + others
    short = sum(g.reached and not g.passes for g in gates)
    unknown = sum(not g.reached for g in gates)
    parts = ["# Benchmarks", "", *setting(measured, minutes), "", "## Gates", ""]
    parts += [f"Of {len(gates)} gates {len(gates) - short - unknown} pass, {short} fall short, {unknown} were not measured.", ""]
    kernels = bool(measured_rows(measured))
    if kernels and "fxjit" not in measured.missing:
        parts += ["Kernels: how many times faster fxjit is, range over the processes in brackets. Asked is 0.95 where nothing",
                  "else is said; a ratio in square brackets has no gate.", "", *ratio_table(measured), ""]
    parts += table(["what", "asked", "reached", "verdict", "reason"], [g.cells() for g in others]) + [""]
    if kernels:
        parts += ["## Kernels, ms", "", *times_table(measured), ""]
    parts += ["## Compiling, calling, tracing", "", *overhead_table(measured, cpp), ""]
    if kernels:
        parts += ["## Errors against fp64", "", *error_table(measured), *wrong_results(measured), ""]
    return "\n".join(parts)
