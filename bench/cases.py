"""The cases of the comparison: each program once for torch, once for JAX, and the fp64 value it is checked against."""

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Callable

import torch

EPS = 1e-5
GELU_SCALE = math.sqrt(2 / math.pi)


# The primitive library's composites, and the programs that the gates name.


def sigmoid_lowp(x):
    return x.float().sigmoid().half()


def add_lowp(a, b):
    return (a.float() + b.float()).half()


def gelu_tanh(x):
    return 0.5 * x * (1.0 + torch.tanh(GELU_SCALE * (x + 0.044715 * torch.pow(x, 3.0))))


def chain12(x, y):
    b = (x * 1.5 + y - x) * y
    e = (torch.maximum(b, x).abs() + 0.25).sqrt()
    return torch.relu(torch.minimum(b / e, y)) * 0.5


def where_clamp(x, y):
    return torch.where(x > y, x, y * 0.1).clamp(-1.0, 1.0)


def softmax(x):
    return torch.softmax(x, -1)


def layer_norm(x, weight, bias):
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias, EPS)


def rms_norm(x, weight):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + EPS) * weight


class Foo(torch.nn.Module):
    """The module of the primitive library: three composites, two fp16 inputs."""

    def forward(self, x, y):
        return add_lowp(sigmoid_lowp(x), sigmoid_lowp(y))


# The same in JAX. The module is passed in, since JAX may be missing.


def jax_sigmoid_lowp(jax, x):
    return jax.nn.sigmoid(x.astype("float32")).astype("float16")


def jax_add_lowp(jax, a, b):
    return (a.astype("float32") + b.astype("float32")).astype("float16")


def jax_gelu_tanh(jax, x):
    return 0.5 * x * (1.0 + jax.numpy.tanh(GELU_SCALE * (x + 0.044715 * x**3)))


def jax_chain12(jax, x, y):
    np = jax.numpy
    b = (x * 1.5 + y - x) * y
    e = np.sqrt(np.abs(np.maximum(b, x)) + 0.25)
    return jax.nn.relu(np.minimum(b / e, y)) * 0.5


def jax_where_clamp(jax, x, y):
    return jax.numpy.clip(jax.numpy.where(x > y, x, y * 0.1), -1.0, 1.0)


def jax_softmax(jax, x):
    return jax.nn.softmax(x, -1)


def jax_layer_norm(jax, x, weight, bias):
    d = x - x.mean(-1, keepdims=True)
    return d * jax.lax.rsqrt((d * d).mean(-1, keepdims=True) + EPS) * weight + bias


def jax_rms_norm(jax, x, weight):
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + EPS) * weight


def jax_foo(jax, x, y):
    return jax_add_lowp(jax, jax_sigmoid_lowp(jax, x), jax_sigmoid_lowp(jax, y))


@dataclass(frozen=True)
class Tolerance:
    """How far a result may be from the fp64 value: in ULP of its dtype, or absolute. Data is of order 1."""

    value: float
    ulp: bool = False

    def __str__(self):
        return f"{self.value:g} ULP" if self.ulp else f"{self.value:g}"

    def error(self, got, want):
        """The largest error of `got`, a tensor, against `want`, the fp64 value."""
        error = (got.double() - want).abs()
        if self.ulp:
            info = torch.finfo(got.dtype)
            error /= torch.exp2(torch.floor(torch.log2(want.abs().clamp(min=info.tiny)))) * info.eps
        return error.max().item()


@dataclass(frozen=True)
class Case:
    """One row. `inputs` makes the operands of `count` elements, or of `count` rows where `cols` is set."""

    name: str
    fn: Callable
    jax: Callable
    inputs: Callable
    count: int
    bytes: int  # read and written, per element
    tolerance: Tolerance
    cols: int = 0
    gates: dict = field(default_factory=dict)  # contender -> the share of its speed that is asked for

    @property
    def id(self):
        return f"{self.name}/{self.size}"

    @property
    def size(self):
        return f"{self.count}x{self.cols}" if self.cols else f"2^{self.count.bit_length() - 1}"

    @property
    def elements(self):
        return self.count * max(self.cols, 1)

    def make(self):
        torch.manual_seed(len(self.name) * 1000 + self.count % 997)
        return self.inputs(self.count, self.cols)

    def exact(self, args):
        """The program's value in fp64; the casts of the fp16 programs vanish, since fp64 is what `float()` must not lose."""
        wide = [a.double() for a in args]
        if self.fn is sigmoid_lowp:
            return wide[0].sigmoid()
        if self.fn is add_lowp:
            return wide[0] + wide[1]
        return self.fn(*wide)


def halves(operands):
    # At least 0.01 in magnitude: fp16 denormals cost a microcode assist each on some CPUs.
    def make(count, cols):
        normal = [torch.randn(count) for _ in range(operands)]
        return [(x + x.sign() * 0.01).half() for x in normal]

    return make


def floats(operands):
    def make(count, cols):
        return [torch.randn(count) * 1.5 for _ in range(operands)]

    return make


def rows(vectors):
    def make(count, cols):
        return [torch.randn(count, cols)] + [torch.randn(cols) * 0.1 + 1 for _ in range(vectors)]

    return make


# A ratio of 0.95 counts as 1: that is the noise of a median over five processes.
SAME = 0.95
HALF_ULP = Tolerance(0.51, ulp=True)


def pointwise_cases():
    same = {"hand": SAME, "inductor": SAME, "jax": SAME}
    table = [
        (sigmoid_lowp, jax_sigmoid_lowp, halves(1), 4, HALF_ULP, {"eager": 3.0}),
        (add_lowp, jax_add_lowp, halves(2), 6, HALF_ULP, {"copy": 0.85}),
        (gelu_tanh, jax_gelu_tanh, floats(1), 8, Tolerance(3e-6), {}),
        (chain12, jax_chain12, floats(2), 12, Tolerance(3e-6), {}),
        (where_clamp, jax_where_clamp, floats(2), 12, Tolerance(1e-7), {"copy": 0.85}),
    ]
    for fn, jax, inputs, size, tolerance, large in table:
        for power in (20, 24):
            gates = same | (large if power == 24 else {})
            yield Case(fn.__name__, fn, jax, inputs, 1 << power, size, tolerance, gates=gates)


def row_cases():
    # "Not slower than the best of eager, torch.compile and JAX" is three gates at once.
    gates = {"hand": SAME, "eager": SAME, "inductor": SAME, "jax": SAME}
    table = [
        (softmax, jax_softmax, rows(0), 6144, 384, Tolerance(1e-7)),
        (layer_norm, jax_layer_norm, rows(2), 4096, 768, Tolerance(5e-6)),
        (rms_norm, jax_rms_norm, rows(1), 4096, 768, Tolerance(5e-6)),
    ]
    for fn, jax, inputs, count, cols, tolerance in table:
        yield Case(fn.__name__, fn, jax, inputs, count, 8, tolerance, cols=cols, gates=gates)


CASES = [*pointwise_cases(), *row_cases()]


# Small graphs for the compile times: the first is a process's first kernel, the others are each a kernel of another shape of
# expression and of sigmoid_lowp's size, so that no cache of kernels can answer.


def further_graphs():
    return [
        lambda x: x.float().tanh().half(),
        lambda x: (x.float().sigmoid() + 1.0).half(),
        lambda x: (x.float() * x.float().sigmoid()).half(),
        lambda x: (x.float().exp() - 1.0).half(),
        lambda x: (1.0 / (1.0 + x.float().abs())).half(),
    ]


def jax_further_graphs(jax):
    np = jax.numpy
    up, down = (lambda x: x.astype("float32")), (lambda x: x.astype("float16"))
    return [
        lambda x: down(np.tanh(up(x))),
        lambda x: down(jax.nn.sigmoid(up(x)) + 1.0),
        lambda x: down(up(x) * jax.nn.sigmoid(up(x))),
        lambda x: down(np.exp(up(x)) - 1.0),
        lambda x: down(1.0 / (1.0 + np.abs(up(x)))),
    ]


def additions(count):
    """A function of `count` additions, for the time that tracing takes."""

    def fn(x):
        for _ in range(count):
            x = x + 1
        return x

    return fn


def repeated_pattern(x, matches=1000, others=18):
    """`matches` times sin and relu, with `others` calls before each: what replace_pattern is timed on."""
    for _ in range(matches):
        for _ in range(others):
            x = torch.neg(x)
        x = torch.relu(torch.sin(x))
    return x
