#!/usr/bin/env python3
"""Random tensor programs through fxjit.compile, compared with eager; a failure is shrunk and printed as a script.

Each seed is one program with its inputs, always the same. Four calls each: recorded, compiled, other sizes, and the first
sizes again. Compared are values, dtype, shape, strides, which input an output shares memory with, and all memory behind the inputs.

    PYTHONPATH=build/dev/python .venv/bin/python tests/fuzz/program_fuzzer.py --seed 0 --count 300
"""

import argparse
import dataclasses
import random
import sys
import warnings

import torch
import torch.nn.functional as F

import fxjit
from statements import COMMON, INEXACT_WRITES, PERHAPS_COPIES, RARE

SIZES = [0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65]
FLOATS = [torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTS = [torch.int64, torch.int32, torch.uint8]
RARE_INTS = [torch.int64, torch.int16, torch.int8, torch.bool]
LAYOUTS = ["contiguous", "contiguous", "transposed", "stepped", "shifted", "channels_last"]
RARE_LAYOUTS = ["expanded", "spaced_rows", "specials", "reversed"]

@dataclasses.dataclass(frozen=True)
class Input:
    axes: tuple  # names of sizes, and 1
    dtype: torch.dtype
    layout: str


@dataclasses.dataclass(frozen=True)
class Statement:
    kind: str
    text: str
    operands: tuple
    result: str  # "" for a write

    def line(self):
        value = self.text.format(*self.operands)
        return f"{self.result} = {value}" if self.result else value


@dataclasses.dataclass(frozen=True)
class Program:
    seed: int
    inputs: dict       # name: Input
    sizes: tuple       # of two dicts: the name of a size to its value
    statements: tuple
    outputs: tuple

    def source(self):
        lines = [f"def program({', '.join(self.inputs)}):"]
        lines += [f"    {s.line()}" for s in self.statements]
        return "\n".join(lines + [f"    return {', '.join(self.outputs)}", ""])


def build(source):
    """The function `program` of that source. It keeps the source as an attribute."""
    names = {"torch": torch, "F": F}
    exec(compile(source, "<fuzz>", "exec"), names)
    names["program"].source = source
    return names["program"]


def make_input(spec, shape, generator):
    """(the memory, the tensor in it)."""
    shape, full = list(shape), tuple(shape)
    layout = spec.layout if shape else "contiguous"
    if layout == "transposed" and len(shape) > 1:
        shape[-1], shape[-2] = shape[-2], shape[-1]
    elif layout == "stepped":
        shape[-1] *= 2
    elif layout in ("shifted", "spaced_rows"):
        shape[-1] += 1
    elif layout == "expanded":
        shape[0] = 1
    elif layout == "reversed":
        shape.reverse()
    if spec.dtype.is_floating_point:
        memory = torch.randn(shape, generator=generator).to(spec.dtype)
    else:
        memory = torch.randint(-4 if spec.dtype.is_signed else 0, 5, shape, generator=generator).to(spec.dtype)
    if layout == "transposed" and len(shape) > 1:
        return memory, memory.transpose(-1, -2)
    if layout == "stepped":
        return memory, memory[..., ::2]
    if layout == "shifted":
        return memory, memory[..., 1:]
    if layout == "spaced_rows":
        return memory, memory[..., :-1]
    if layout == "expanded":
        return memory, memory.expand(full)
    if layout == "reversed":
        return memory, memory.permute(*reversed(range(len(shape))))
    if layout == "specials" and spec.dtype.is_floating_point:
        memory.view(-1)[::3] = torch.tensor([-0.0, 1e-40, float("inf"), float("nan")]).to(spec.dtype)[memory.numel() % 4]
    if layout == "channels_last" and len(shape) == 4:
        memory = memory.contiguous(memory_format=torch.channels_last)
    return memory, memory


def make_inputs(program, sizes):
    """Two lists, always the same values: the memories, and the tensors."""
    generator = torch.Generator().manual_seed(program.seed)
    pairs = [make_input(i, [sizes.get(a, a) for a in i.axes], generator) for i in program.inputs.values()]
    return [m for m, _ in pairs], [t for _, t in pairs]


# ---- generation ----

def runs(program):
    """Does it run in eager with both sets of sizes, with results neither huge nor no tensors?"""
    try:
        warnings.filterwarnings("ignore", message="var\\(\\)")  # of a row of one element: NaN
        for sizes in program.sizes:
            out = build(program.source())(*make_inputs(program, sizes)[1])
            if any(o.numel() > 1 << 18 for o in (out if isinstance(out, tuple) else (out,))):
                return False
        return True
    except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError):
        return False


def roots_of(name, statements):
    """All names that share memory with it."""
    group = {name}
    while True:
        more = {n for s in statements if s.kind == "view" for n in (s.operands[0], s.result)
                if {s.operands[0], s.result} & group}
        more |= {n for s in statements if s.text in PERHAPS_COPIES
                 for n in (s.operands[0], s.result) if {s.operands[0], s.result} & group}
        if more <= group:
            return group
        group |= more


def inexact_names(statements):
    """Names whose values may be a few units off."""
    found = set()
    for s in statements:
        source = set(s.operands) & found
        if s.kind == "inexact" or source or s.text in INEXACT_WRITES:
            found |= roots_of(s.result or s.operands[0], statements)
    return found


def generate(seed, length=8):
    rng = random.Random(seed)
    rank = rng.choice([1, 2, 2, 3, 3, 4])
    names = ["a", "b", "c", "d"][:rank]
    sizes = tuple({n: rng.choice(SIZES[:9] if rank > 2 else SIZES) for n in names} for _ in range(2))
    main = rng.choice(FLOATS)
    rare = seed % 2 == 1
    statements, layouts, ints = COMMON, LAYOUTS, INTS
    if rare:
        statements, layouts, ints = COMMON + RARE, LAYOUTS + RARE_LAYOUTS, INTS + RARE_INTS
    inputs = {}
    for i in range(rng.randint(1, 3)):
        axes = [n if rng.random() < 0.85 else 1 for n in names][rng.choice([0, 0, 0, rng.randint(0, rank)]):]
        dtype = main if rng.random() < 0.75 else rng.choice(FLOATS + ints)
        inputs[f"x{i}"] = Input(tuple(axes), dtype, rng.choice(layouts))
    program = Program(seed, inputs, sizes, (), tuple(inputs))
    alive = list(inputs)
    wanted, tries = rng.randint(1, length), 0
    while len(program.statements) < wanted and tries < 10 * length:
        tries += 1
        kind, text = rng.choice(statements)
        operands = tuple(rng.choice(alive[-4:]) for _ in range(1 + ("{1}" in text) + ("{2}" in text)))
        statement = Statement(kind, text, operands, "" if kind == "write" else f"v{len(program.statements)}")
        if kind == "step" and set(operands[:2]) & inexact_names(program.statements):
            continue
        if ">" in text and set(operands) & inexact_names(program.statements):
            continue
        result = (statement.result,) if statement.result else (operands[0],)
        longer = dataclasses.replace(program, statements=program.statements + (statement,), outputs=result)
        if runs(longer):
            program = longer
            alive += [statement.result] if statement.result else []
    made = [s.result for s in program.statements if s.result]
    used = {n for s in program.statements if s.result for n in s.operands}
    ends = [n for n in made if n not in used or rng.random() < 0.15] or [rng.choice(alive)]
    return dataclasses.replace(program, outputs=tuple(ends))


# ---- comparison ----

def tensors(value):
    return list(value) if isinstance(value, tuple) else [value]


def nudged(t, units, generator):
    """A copy with each element that many units up or down."""
    if not isinstance(t, torch.Tensor) or not t.is_floating_point():
        return t
    signs = torch.randint(0, 2, t.shape, generator=generator) * 2.0 - 1
    return t.clone().copy_(t.double() * (1 + units * torch.finfo(t.dtype).eps * signs))


def perturbed(program, sizes, trial):
    """Outputs and memories with each inexact step four units off, and its operands one: how far right answers may be."""
    memories, args = make_inputs(program, sizes)
    generator = torch.Generator().manual_seed(trial)
    names = {"torch": torch, "F": F, **dict(zip(program.inputs, args))}
    for s in program.statements:
        if s.kind == "inexact":
            near = {**names, **{o: nudged(names[o], 1, generator) for o in s.operands}}
            exec(s.line(), near)
            value = near[s.result]
            floor = torch.full_like(value, 1.0) if "gelu" in s.text or "norm" in s.text else torch.zeros_like(value)
            names[s.result] = nudged(value, 4, generator) + (nudged(floor, 2, generator) - floor)
        else:
            exec(s.line(), names)
            if s.text in INEXACT_WRITES:
                names[s.operands[0]].copy_(nudged(names[s.operands[0]], 4, generator))
    return [names[o] for o in program.outputs] + memories


def values_differ(ours, eager, variants):
    """Is an element further from eager's than tolerance and the variants allow?"""
    if not eager.is_floating_point():
        return not torch.equal(ours, eager)
    a, b = ours.double(), eager.double()
    eps = torch.finfo(eager.dtype).eps
    far = ~((a == b) | (a.isnan() & b.isnan()) | ((a - b).abs() <= 4 * eps * (1 + b.abs())))
    if not far.any():
        return False
    spread = torch.zeros_like(b)
    for v in variants():
        d = (v.double() - b).abs()
        spread = torch.maximum(spread, torch.where(d.isnan() & ~(v.isnan() & eager.isnan()), float("inf"), d.nan_to_num(0)))
    return bool((far & ~((a - b).abs() <= 4 * spread) & ~spread.isinf()).any())


def sharing(outputs, memories):
    """For each output: which input's memory it is in."""
    where = [m.untyped_storage().data_ptr() for m in memories]
    return [where.index(p) if o.numel() and (p := o.untyped_storage().data_ptr()) in where else None for o in outputs]


def compare_call(program, sizes, function, compiled):
    eager_memory, args = make_inputs(program, sizes)
    eager = tensors(function(*args))
    our_memory, args = make_inputs(program, sizes)
    try:
        ours = tensors(compiled(*args))
    except Exception as error:  # eager raised none: whatever this is, it is a finding
        return f"raises {type(error).__name__}: {error}"
    if len(ours) != len(eager):
        return f"{len(ours)} outputs, eager {len(eager)}"
    for name, a, b in zip(program.outputs, ours, eager):
        for what in ("dtype", "shape"):
            if getattr(a, what) != getattr(b, what):
                return f"{what} of {name}: {getattr(a, what)}, eager {getattr(b, what)}"
        if a.stride() != b.stride():
            return f"strides of {name} of shape {tuple(b.shape)}: {a.stride()}, eager {b.stride()}"
    if sharing(ours, our_memory) != sharing(eager, eager_memory):
        return f"memory of outputs: {sharing(ours, our_memory)}, eager {sharing(eager, eager_memory)}"
    made = []

    def variants(i):
        if not made:
            made.extend(perturbed(program, sizes, trial) for trial in range(4))
        return [m[i] for m in made]

    labels = list(program.outputs) + [f"the memory of {n} afterwards" for n in program.inputs]
    for i, (label, a, b) in enumerate(zip(labels, ours + our_memory, eager + eager_memory)):
        if values_differ(a, b, lambda: variants(i)):
            return f"values of {label}: {a.flatten()[:8].tolist()}, eager {b.flatten()[:8].tolist()}"
    return None


def check(program, compiler=fxjit.compile):
    """None, or what differs from eager and in which call."""
    function = build(program.source())
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            compiled = compiler(build(program.source()))
        except Exception as error:
            return f"compile raises {type(error).__name__}: {error}"
        first, second = program.sizes
        for call, sizes in enumerate((first, first, second, first)):
            problem = compare_call(program, sizes, function, compiled)
            if problem:
                return f"call {call} ({('recorded', 'compiled', 'other sizes', 'first sizes again')[call]}): {problem}"
    return None


# ---- shrinking ----

def without_statement(program, i):
    """Uses of its result become uses of its first operand."""
    gone = program.statements[i]
    new = {gone.result: gone.operands[0]} if gone.result else {}
    rest = [dataclasses.replace(s, operands=tuple(new.get(o, o) for o in s.operands))
            for j, s in enumerate(program.statements) if j != i]
    outputs = dict.fromkeys(new.get(o, o) for o in program.outputs)
    return dataclasses.replace(program, statements=tuple(rest), outputs=tuple(outputs))


def smaller(program):
    """Programs with something less, the largest steps first."""
    for i in reversed(range(len(program.statements))):
        yield without_statement(program, i)
    if len(program.outputs) > 1:
        for o in program.outputs:
            yield dataclasses.replace(program, outputs=tuple(p for p in program.outputs if p != o))
    used = {n for s in program.statements for n in s.operands} | set(program.outputs)
    for name in set(program.inputs) - used:
        yield dataclasses.replace(program, inputs={n: i for n, i in program.inputs.items() if n != name})
    for name, i in program.inputs.items():
        if i.layout != "contiguous":
            plain = dataclasses.replace(i, layout="contiguous")
            yield dataclasses.replace(program, inputs={**program.inputs, name: plain})
    for name, value in program.sizes[0].items():
        if program.sizes[1][name] != value:
            yield dataclasses.replace(program, sizes=(program.sizes[0], {**program.sizes[1], name: value}))


def shrink(program, compiler=fxjit.compile):
    """A program that still fails and of which nothing more can be removed."""
    while True:
        found = next((p for p in smaller(program) if p.inputs and runs(p) and check(p, compiler)), None)
        if found is None:
            return program
        program = found


def reproducer(program, problem):
    """A script that needs torch and fxjit alone."""
    first, second = program.sizes
    calls = [f"first = {call_text(program, first)}"]
    calls.append("second = first" if first == second else f"second = {call_text(program, second)}")
    return "\n".join([
        f"# seed {program.seed}; {problem}".replace("\n", "\n# "),
        "import torch", "import torch.nn.functional as F", "", "import fxjit", "", "", program.source(), "",
        *calls, "with torch.no_grad():", "    compiled = fxjit.compile(program)",
        "    for make in (first, first, second, first):", "        ours, eager = make(), make()",
        "        print('ours ', compiled(*ours), ours)", "        print('eager', program(*eager), eager)", ""])


def call_text(program, sizes):
    memories, args = make_inputs(program, sizes)
    values = [f"torch.as_strided(torch.tensor({flat(m)}, dtype={m.dtype}), {tuple(t.shape)}, {t.stride()}, "
              f"{t.storage_offset()})" for m, t in zip(memories, args)]
    return f"lambda: [{', '.join(values)}]"


def flat(memory):
    text = str(torch.as_strided(memory, (memory.numel(),), (1,)).tolist())
    return text.replace("inf", "float('inf')").replace("nan", "float('nan')")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="the first program (default: 0)")
    parser.add_argument("--count", type=int, default=300, help="how many programs, of consecutive seeds (default: 300)")
    parser.add_argument("--length", type=int, default=8, help="most statements of a program (default: 8)")
    parser.add_argument("--show", action="store_true", help="print each program before it runs, for crashes")
    parser.add_argument("--no-shrink", action="store_true", help="print failures as they were found")
    options = parser.parse_args()
    failures = 0
    for seed in range(options.seed, options.seed + options.count):
        program = generate(seed, options.length)
        if options.show:
            print(f"# seed {seed}, sizes {program.sizes}, {program.inputs}\n{program.source()}", flush=True)
        problem = check(program)
        if problem:
            failures += 1
            least = program if options.no_shrink else shrink(program)
            print(reproducer(least, check(least) or problem), flush=True)
    print(f"{options.count} programs, {failures} differ from eager")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
