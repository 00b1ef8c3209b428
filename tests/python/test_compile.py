"""fxjit.compile against eager: values, dtypes, strides, aliasing, mutation, errors, and what explain() says of it."""

import random
import warnings

import pytest
import torch
import torch.nn.functional as F
from compiling import aten_calls, check, kernels, same

import fxjit


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


# ---- kernels ----

def test_a_chain_is_one_kernel_and_no_aten_call():
    c = check(lambda x, y: (x.sigmoid() * y + 1).clamp(0, 1), torch.randn(33), torch.randn(33))
    assert len(kernels(c)) == 1 and not aten_calls(c)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32])
def test_arithmetic_in_each_type(dtype):
    x, y = (torch.arange(-9, 10).to(dtype) for _ in range(2))
    check(lambda x, y: torch.where(x > 2, x * y - 3, x.abs() + y), x, y)


@pytest.mark.parametrize("exponent", [0.5, -0.5, 2, 3, -1, -2, 0, 1, 2.5])
def test_powers_of_zeros_infinities_and_denormals(exponent):
    """Eager takes roots for one half in float32 and bfloat16, and the power, which has other signs, in float16."""
    special = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1, -1, 2.5, 6e-8, -6e-8, 300])
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        x = special.to(dtype).repeat(8)  # long enough for eager's vector code
        c = fxjit.compile(lambda x: x**exponent)
        c(x)
        ours, eager = c(x), x**exponent
        torch.testing.assert_close(ours, eager, equal_nan=True)
        assert torch.equal(ours.signbit() & ~eager.isnan(), eager.signbit() & ~eager.isnan()), dtype


def test_softmax_layer_norm_and_rms_norm_are_one_row_kernel_each():
    x, w = torch.randn(7, 48), torch.randn(48)
    for f in (lambda x, w: torch.softmax(x, -1), lambda x, w: F.layer_norm(x, (48,), w),
              lambda x, w: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w):
        c = check(f, x, w)
        assert len(kernels(c)) == 1 and not aten_calls(c)


def test_linear_goes_to_a_library_or_to_aten_and_the_rest_is_fused():
    m = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
    c = check(m, torch.randn(5, 8))
    assert kernels(c) == ["fused_gelu"]


@pytest.mark.parametrize("make", [lambda t: t.t(), lambda t: t[:, ::2], lambda t: t[:1].expand(6, 6), lambda t: t[1:, 1:]])
def test_inputs_of_any_stride(make):
    t = torch.randn(6, 6)
    check(lambda x: x * 2 + x, make(t))


def test_channels_last_stays_channels_last():
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    check(lambda x, b: torch.relu(x + b), x, torch.randn(1, 3, 1, 1))


@pytest.mark.parametrize("shape", [(0,), (1,), (0, 4), (1, 1), ()])
def test_empty_and_single_element_tensors(shape):
    check(lambda x: (x + 1).exp(), torch.randn(shape))


# ---- aliasing and mutation ----

def test_an_input_that_is_returned_is_the_same_object():
    f = fxjit.compile(lambda x, y: (x, x + y, x))
    x, y = torch.randn(4), torch.randn(4)
    for _ in range(3):
        a, b, c = f(x, y)
        assert a is x and c is x and torch.equal(b, x + y)


def test_a_view_of_an_input_shares_its_memory():
    f = fxjit.compile(lambda x: (x.view(2, 2), x + 1))
    x = torch.randn(4)
    for _ in range(3):
        v, _ = f(x)
        v.fill_(7)
        assert x.eq(7).all()


def test_mutation_of_an_input_reaches_the_caller_and_bumps_the_version():
    def g(x, y):
        x += y
        return x * 2
    f = fxjit.compile(g)
    for _ in range(3):
        x, y = torch.randn(5), torch.randn(5)
        want = (x + y) * 2
        version, after = x._version, x + y
        torch.testing.assert_close(f(x, y), want)
        torch.testing.assert_close(x, after)
        assert x._version > version


# ---- specialisation ----

def test_a_new_size_compiles_no_kernel_again():
    f = fxjit.compile(lambda x, y: x.sigmoid() + y)
    for n in (8, 8, 100, 17, 3):
        x, y = torch.randn(n), torch.randn(n)
        same(f(x, y), x.sigmoid() + y)
    made = f.explain().specialisations
    assert len(made) == 1 and sum(not k.cached for k in f.explain().kernels) <= 1


def test_sizes_that_the_program_looks_at_are_part_of_the_key():
    def g(x):
        return x.reshape(x.size(0) // 2, -1) * 2
    f = fxjit.compile(g)
    for n in (4, 4, 8, 8, 4):
        x = torch.randn(n, 3)
        same(f(x), g(x))


@pytest.mark.parametrize("f", [torch.diff, torch.trapezoid, lambda x: torch.einsum("ij,ij->i", x, x), torch.rot90])
def test_sizes_that_an_operator_computes_with_are_part_of_the_key(f):
    """The insides of a composite operator are recorded: what it made of sizes is a constant of the record."""
    g = lambda x: f(x + 1)
    compiled = fxjit.compile(g)
    with torch.no_grad():
        for columns in (5, 9, 5, 12):
            x = torch.rand(3, columns)
            for _ in range(2):
                torch.testing.assert_close(compiled(x), g(x))


def test_a_size_in_the_result_follows_the_input():
    f = fxjit.compile(lambda x: (x + 1, x.size(0)))
    for n in (4, 4, 6, 6):
        assert f(torch.randn(n))[1] == n


def test_parameters_are_read_at_each_call():
    m = torch.nn.Linear(4, 4)
    f = fxjit.compile(m)
    x = torch.randn(3, 4)
    for _ in range(3):
        same(f(x), m(x))
    m.weight.data.mul_(2)
    same(f(x), m(x))
    m.load_state_dict(torch.nn.Linear(4, 4).state_dict())
    same(f(x), m(x))
    m.weight = torch.nn.Parameter(torch.zeros(4, 4))
    same(f(x), m(x))


def test_train_and_eval_are_seen():
    m = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.ReLU()).eval()
    f = fxjit.compile(m)
    x = torch.ones(1000)
    for _ in range(3):
        assert torch.equal(f(x), x)
    m.train()
    torch.manual_seed(3)
    ours = f(x)
    torch.manual_seed(3)
    assert torch.equal(ours, m(x))


def test_constants_among_the_arguments_select_a_variant():
    def g(x, scale, flag=True):
        return x * scale if flag else x
    f = fxjit.compile(g)
    x = torch.randn(4)
    for scale in (2.0, 3, 2.0, -0.0):
        for flag in (True, False):
            same(f(x, scale, flag), g(x, scale, flag))
            same(f(x, scale=scale, flag=flag), g(x, scale, flag))


def test_structured_arguments_and_results():
    def g(pair, named):
        a, b = pair
        return {"sum": a + named["c"], "rest": [b * 2, 3]}
    f = fxjit.compile(g)
    for _ in range(3):
        a, b, c = torch.randn(3), torch.randn(3), torch.randn(3)
        out, want = f((a, b), {"c": c}), g((a, b), {"c": c})
        assert list(out) == ["sum", "rest"] and out["rest"][1] == 3
        same(out["sum"], want["sum"])
        same(out["rest"][0], want["rest"][0])


SCALE = 2.0


def test_a_global_that_changes_is_seen():
    global SCALE
    f = fxjit.compile(lambda x: x * SCALE)
    x = torch.ones(3)
    for _ in range(3):
        assert f(x).eq(2).all()
    SCALE = 5.0
    try:
        assert f(x).eq(5).all()
    finally:
        SCALE = 2.0


def test_a_module_attribute_that_changes_is_seen():
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.k = 2

        def forward(self, x):
            return x * self.k
    m = M()
    f = fxjit.compile(m)
    x = torch.ones(3)
    for _ in range(3):
        assert f(x).eq(2).all()
    m.k = 7
    assert f(x).eq(7).all()


# ---- what cannot be captured runs eagerly, with the reason ----

SCALES = torch.tensor([2.0, 3.0])


@pytest.mark.parametrize("f, reason", [
    (lambda x: x + 1 if x.sum() > 0 else x - 1, "control flow"),
    (lambda x: x + random.random(), "random"),
    (lambda x: (print("", end=""), x + 1)[1], "print"),
    (lambda x: x * SCALES.tolist()[0], "reads the data"),
])
def test_eager_with_the_reason(f, reason):
    c = fxjit.compile(f)
    x = torch.ones(3)
    for _ in range(3):
        random.seed(0)
        ours = c(x)
        random.seed(0)
        same(ours, f(x))
    assert reason in str(c.explain())
    with pytest.raises(RuntimeError, match=reason):
        fxjit.compile(f, strict=True)(x)


def test_effects_while_tracing_are_undone():
    log = []

    def g(x):
        log.append(1)
        return x + 1
    f = fxjit.compile(g)
    for i in range(3):
        f(torch.ones(2))
        assert len(log) == i + 1


def test_a_module_that_counts_its_calls_counts_them():
    class M(torch.nn.Module):
        n = 0

        def forward(self, x):
            self.n += 1
            return x + self.n
    m = M()
    f = fxjit.compile(m)
    for i in range(1, 4):
        assert f(torch.zeros(1)).item() == i
    assert m.n == 3


def test_no_grad_inside_is_not_lost():
    def g(x):
        with torch.no_grad():
            return x * 2
    with torch.enable_grad():
        x = torch.ones(2, requires_grad=True)
        assert not fxjit.compile(g)(x).requires_grad


# ---- gradients ----

def test_with_gradients_the_generic_form_runs_and_warns_once():
    m = torch.nn.Linear(3, 3)
    f = fxjit.compile(m)
    x = torch.randn(2, 3)
    with torch.enable_grad(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            m.zero_grad()
            f(x).sum().backward()
            ours = m.weight.grad.clone()
            m.zero_grad()
            m(x).sum().backward()
            torch.testing.assert_close(ours, m.weight.grad)
    assert sum("no_grad" in str(w.message) for w in caught) == 1


@pytest.mark.parametrize("pool, x", [(torch.nn.AdaptiveAvgPool2d(1), torch.randn(2, 3, 4, 5)),
                                     (torch.nn.AdaptiveAvgPool3d(1), torch.randn(2, 3, 4, 5, 2))])
def test_global_pooling_of_channels_last(pool, x):
    x = x.contiguous(memory_format=torch.channels_last if x.dim() == 4 else torch.channels_last_3d)
    check(lambda x: pool(x.relu() * 2) + 1, x)


def test_indices_have_a_size_that_does_not_depend_on_data():
    table, rows = torch.randn(5, 3), torch.tensor([[0, 4], [2, 2]])
    compiled = check(lambda t, i: (t * 2)[i].relu() + 1, table, rows)
    assert len(kernels(compiled)) == 2
    check(lambda t, m: (t * 2)[m].relu(), table, table > 0, specialisations=0)
