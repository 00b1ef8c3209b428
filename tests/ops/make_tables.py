"""Writes tests/ops/data/*.txt: what eager answers, as data for the tests of the ops floor.

    .venv/bin/python tests/ops/make_tables.py

promotion.txt   category dtype category dtype = result of torch.result_type
strides.txt     operator; sizes strides per operand = strides of the result (a TensorIterator output)
values.txt      row dtype operands = result, all as hexadecimal bits
"""

import itertools
import pathlib
import random
import struct

import torch

DATA = pathlib.Path(__file__).parent / "data"
DTYPES = {
    "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "f16": torch.float16, "f32": torch.float32, "f64": torch.float64, "c64": torch.complex64,
    "c128": torch.complex128, "bool": torch.bool, "bf16": torch.bfloat16,
}
NAMES = {t: n for n, t in DTYPES.items()}
NUMBERS = {"bool": True, "i64": 1, "f64": 1.0, "c128": 1j}


def promotion():
    operands = [("tensor", n, torch.ones(2, dtype=t)) for n, t in DTYPES.items()]
    operands += [("zerodim", n, torch.ones((), dtype=t)) for n, t in DTYPES.items()]
    operands += [("number", n, v) for n, v in NUMBERS.items()]
    for (ca, na, a), (cb, nb, b) in itertools.product(operands, operands):
        if ca == "number" and cb == "number":
            continue
        result = torch.result_type(a, b)
        if result != torch.complex32:  # which we do not have
            yield f"{ca} {na} {cb} {nb} = {NAMES[result]}"


def random_layout(rng, shape):
    """A tensor of this shape in one of the layouts that programs have."""
    n = len(shape)
    kind = rng.choice(["contiguous", "permuted", "permuted", "expanded", "strided", "last", "odd"])
    if kind == "last" and n == 4:
        return torch.empty(shape).to(memory_format=torch.channels_last)
    if kind == "permuted":
        order = list(range(n))
        rng.shuffle(order)
        inverse = [order.index(i) for i in range(n)]
        return torch.empty([shape[i] for i in order]).permute(inverse)
    if kind == "expanded":
        return torch.empty([1 if rng.random() < 0.4 else s for s in shape]).expand(shape)
    if kind == "strided" and n > 0:
        return torch.empty([s * (2 if i == n - 1 else 1) for i, s in enumerate(shape)])[..., ::2]
    if kind == "odd":  # strides of dimensions of one element mean nothing, but they are looked at
        t = torch.empty(shape)
        return t.as_strided(shape, [rng.choice([1, 3, 7, 64]) if s == 1 else t.stride(i) for i, s in enumerate(shape)])
    return torch.empty(shape)


def strides():
    rng = random.Random(7)
    operators = {1: ("neg", torch.neg), 2: ("add", torch.add), 3: ("addcmul", torch.addcmul)}
    seen = set()
    while len(seen) < 700:
        count = rng.choice([1, 2, 2, 2, 3])
        rank = rng.choice([0, 1, 2, 2, 3, 3, 4, 4, 5])
        shape = [rng.choice([1, 1, 2, 3, 4, 5] if rng.random() < 0.97 else [0]) for _ in range(rank)]
        tensors = []
        for _ in range(count):
            mine = shape if rng.random() < 0.6 else [1 if rng.random() < 0.4 else s for s in shape]
            if rng.random() < 0.15:
                mine = mine[rng.randrange(len(mine) + 1):]
            tensors.append(random_layout(rng, mine))
        name, function = operators[count]
        result = function(*tensors)
        text = "; ".join(f"{list(t.shape)} {list(t.stride())}" for t in tensors)
        line = f"{name}; {text} = {list(result.stride())}"
        if line not in seen:
            seen.add(line)
            yield line


F = torch.nn.functional
UNARY_FLOAT = {
    "neg": torch.neg, "abs": torch.abs, "sign": torch.sign, "square": torch.square, "reciprocal": torch.reciprocal,
    "rsqrt": torch.rsqrt, "floor": torch.floor, "ceil": torch.ceil, "trunc": torch.trunc, "round": torch.round,
    "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1, "log": torch.log, "log2": torch.log2,
    "log10": torch.log10, "log1p": torch.log1p, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "erf": torch.erf,
    "sin": torch.sin, "cos": torch.cos, "isnan": torch.isnan, "isinf": torch.isinf, "relu": torch.relu,
    "silu": F.silu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "hardswish": F.hardswish, "hardsigmoid": F.hardsigmoid, "sqrt": torch.sqrt,
}
UNARY_INT = {k: UNARY_FLOAT[k] for k in ("neg", "abs", "sign", "square", "relu")} | {"bitwise_not": torch.bitwise_not}
BINARY_FLOAT = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "pow": torch.pow,
    "div_trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"), "eq": torch.eq, "ne": torch.ne,
    "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge, "minimum": torch.minimum,
    "maximum": torch.maximum,
    "leaky_relu": lambda x, y: torch.stack([F.leaky_relu(a, b.item()) for a, b in zip(x, y)]),
}
BINARY_INT = {
    k: BINARY_FLOAT[k] for k in ("add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge", "minimum", "maximum")
} | {
    "bitwise_and": torch.bitwise_and, "bitwise_or": torch.bitwise_or, "bitwise_xor": torch.bitwise_xor,
    "shl": torch.bitwise_left_shift, "shr": torch.bitwise_right_shift,
}
BINARY_BOOL = {
    "logical_and": torch.logical_and, "logical_or": torch.logical_or, "logical_xor": torch.logical_xor,
    "bitwise_and": torch.bitwise_and, "bitwise_or": torch.bitwise_or, "bitwise_xor": torch.bitwise_xor,
}
TERNARY_FLOAT = {
    "clamp": torch.clamp, "muladd": lambda x, y, z: torch.addcmul(x, y, z), "lerp": torch.lerp,
    "threshold": lambda x, y, z: torch.stack([F.threshold(a, b.item(), c.item()) for a, b, c in zip(x, y, z)]),
    "softplus": lambda x, y, z: torch.stack([F.softplus(a, b.item(), c.item()) for a, b, c in zip(x, y, z)]),
}
SINGLE_PRECISION = {"exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sigmoid", "tanh", "erf", "sin", "cos",
                    "pow", "silu", "gelu", "gelu_tanh", "softplus"}
FLOAT_VALUES = [0.0, -0.0, 1.0, -1.5, 0.5, 2.0, 2.5, -3.0, 7.25, 0.1, -0.3, 100.0, 1e-3, float("inf"),
                float("-inf"), float("nan"), -20.5, 3.0, -0.75, 6.5]


def bits(t):
    size = t.element_size()
    form = {1: "b", 2: "h", 4: "i", 8: "q"}[size]
    raw = t.reshape(1).view({1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[size]).item()
    return struct.pack(">" + form, raw).hex()


def rows(rng, table, dtype, values, arity, count):
    for name, function in table.items():
        if dtype == torch.float64 and name in SINGLE_PRECISION:
            continue
        pool = [v for v in values if name != "softplus" or abs(v) < 50]
        if name == "gelu":  # eager's gives NaN for infinity
            pool = [v for v in pool if v != float("inf")]
        columns = [torch.tensor([rng.choice(pool) for _ in range(count)], dtype=dtype) for _ in range(arity)]
        if arity == 1:
            columns = [torch.tensor(pool, dtype=dtype)]
        if name == "softplus":
            columns[1], columns[2] = columns[1].abs() + 1, columns[2].abs()
        if name in ("shl", "shr"):
            width = columns[0].element_size() * 8
            columns[1] = torch.tensor([rng.choice([0, 1, 2, width - 1, width, width + 3, 5]) for _ in range(count)],
                                      dtype=dtype)
        # Repeated, so that nearly all of it is computed by eager's vector code, whose answers are the ones to match.
        result = function(*[c.repeat(40) for c in columns])
        for i in range(len(columns[0])):
            operands = " ".join(bits(c[i]) for c in columns)
            yield f"{name} {NAMES[dtype]} {operands} = {bits(result[i])}"


def values():
    rng = random.Random(11)
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        yield from rows(rng, UNARY_FLOAT, dtype, FLOAT_VALUES, 1, 0)
        yield from rows(rng, BINARY_FLOAT, dtype, FLOAT_VALUES, 2, 12)
        yield from rows(rng, TERNARY_FLOAT, dtype, FLOAT_VALUES, 3, 12)
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
        info = torch.iinfo(dtype)
        pool = [0, 1, 2, 3, 5, 100, info.max, info.max - 1, info.min, info.min + 1] + ([-1, -2, -7] if info.min else [])
        yield from rows(rng, UNARY_INT, dtype, pool, 1, 0)
        yield from rows(rng, BINARY_INT, dtype, pool, 2, 8)
    both = [False, True]
    yield from rows(rng, {"logical_not": torch.logical_not, "bitwise_not": torch.bitwise_not}, torch.bool, both, 1, 0)
    yield from rows(rng, BINARY_BOOL, torch.bool, both, 2, 6)


def casts():
    rng = random.Random(13)
    floats = FLOAT_VALUES + [1e10, -1e10, 3e9, 300.7, -129.2, 70000.0, 1e20, 3000000001.0, 65519.0, 65520.0, 2**-25,
                             2**-24, 1.5 * 2**-24, 2049.0, 2051.0, 1e-42]
    for source, target in itertools.product([d for n, d in DTYPES.items() if n[0] != "c"], repeat=2):
        if source == target:
            continue
        if source.is_floating_point:
            pool = floats
        elif source == torch.bool:
            pool = [False, True]
        else:
            info = torch.iinfo(source)
            pool = [0, 1, 2, 100, info.max, info.min, info.max - 1, info.max // 2 + 1, info.max // 3]
            pool += [rng.randrange(info.min, info.max) for _ in range(5)]
        x = torch.tensor(pool, dtype=source)
        y = x.to(target)
        for i in range(len(pool)):
            yield f"{NAMES[source]} {bits(x[i])} {NAMES[target]} = {bits(y[i])}"


def main():
    torch.set_num_threads(1)
    DATA.mkdir(exist_ok=True)
    for name, make in (("promotion", promotion), ("strides", strides), ("values", values), ("casts", casts)):
        lines = list(make())
        (DATA / f"{name}.txt").write_text("\n".join(lines) + "\n")
        print(f"{name}.txt: {len(lines)} lines")


if __name__ == "__main__":
    main()
