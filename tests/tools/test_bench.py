"""The comparison's own parts: ratios and gates, refusal of wrong results, and the hand-written kernels against eager."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import cases  # noqa: E402
import child  # noqa: E402
import contenders  # noqa: E402
import report  # noqa: E402

CASES = {case.id: case for case in cases.CASES}


def run_of(case, threads=1, wrong=None, **ms):
    result = {"ms": ms, "wrong": wrong or {}, "error": {}, "first_ms": {}}
    return {"threads": threads, "cases": {case: result}, "missing": {}, "hand_accuracy": None, "versions": {"torch": "2"}}


def gates_of(runs, case):
    return {g.name.rsplit(": ", 1)[1]: g for g in report.case_gates(report.Measured(runs), CASES[case], 1)}


def test_a_ratio_is_the_median_of_the_processes_ratios():
    # The median of times would be 1.0: a slow process must not be compared with a fast one.
    runs = [run_of("add_lowp/2^20", hand=h, fxjit=f) for h, f in ((1, 2), (3, 2), (2, 1), (1, 1.25), (10, 10))]
    assert gates_of(runs, "add_lowp/2^20")["hand"].got == pytest.approx(1.0)


def test_a_gate_says_whether_it_is_reached():
    gates = gates_of([run_of("add_lowp/2^24", hand=0.96, inductor=0.9, copy=0.86, fxjit=1.0)], "add_lowp/2^24")
    assert gates["hand"].passes and gates["copy"].passes and not gates["torch.compile"].passes
    assert not gates["JAX"].reached
    text = report.render([run_of("add_lowp/2^24", hand=0.5, fxjit=1.0)], "none", 1)
    assert "**0.5**, asked 0.95" in text and "falls short" in text


def test_a_wrong_result_of_ours_reaches_no_gate():
    gates = gates_of([run_of("softmax/6144x384", wrong={"fxjit": "error 1"}, hand=1.0)], "softmax/6144x384")
    assert gates["hand"].reached and not gates["hand"].passes


def test_a_wrong_contender_is_named_and_not_timed():
    case = CASES["where_clamp/2^20"]
    field = contenders.Field(1, without=["jax", "inductor", "fxjit", "hand"])
    honest = field.contenders
    wrong = contenders.Contender("hand", lambda: case.make()[0], lambda y: y)
    field.contenders = lambda *args: [*honest(*args), wrong]
    result = child.measure_case(field, case, 0.0, child.random.Random(0))
    assert set(result["wrong"]) == {"hand"} and set(result["ms"]) == {"copy", "eager"}


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.id)
def test_eager_is_within_the_tolerance(case):
    if case.elements > 1 << 22:
        pytest.skip("the same program at its smaller size is tested")
    args = case.make()
    assert case.tolerance.error(case.fn(*args), case.exact(args)) <= case.tolerance.value


@pytest.fixture(scope="module")
def hand(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    library = tmp_path_factory.mktemp("hand") / "libfxjit_hand.so"
    flags = "-std=c++20 -O2 -march=x86-64-v4 -ffp-contract=off -fPIC -shared -fvisibility=hidden".split()
    subprocess.run(["g++", *flags, *map(str, sorted(BENCH.glob("hand_*.cpp"))), "-o", str(library)], check=True)
    try:
        return contenders.Hand(library)
    except contenders.Missing as missing:
        pytest.skip(str(missing))


def test_hand_functions_are_within_their_budgets(hand):
    assert [name for name, _, _ in hand.accuracy(stride=10007)] == ["exp", "sigmoid", "tanh"]


# torch.sqrt of fp32 is MKL's, which on some CPUs is off by 0.75 ULP; the instruction is exact.
SQRT_SLACK = 2.5e-7

POINTWISE = [CASES[f"{name}/2^20"] for name in ("sigmoid_lowp", "add_lowp", "gelu_tanh", "chain12", "where_clamp")]


@pytest.mark.parametrize("count", [1, 15, 16, 63, 64, 1000, 16384 * 3 + 7])
@pytest.mark.parametrize("case", POINTWISE, ids=lambda case: case.name)
def test_hand_pointwise_kernels_on_tails(hand, case, count):
    case = cases.dataclasses.replace(case, count=count)
    args = case.make()
    got = hand.bind(case, args, cases.EPS)()
    if case.name in ("add_lowp", "chain12", "where_clamp"):  # nothing but exactly rounded operators
        torch.testing.assert_close(got, case.fn(*args), rtol=SQRT_SLACK if case.name == "chain12" else 0, atol=0)
    assert case.tolerance.error(got, case.exact(args)) <= case.tolerance.value


@pytest.mark.parametrize("case", POINTWISE, ids=lambda case: case.name)
def test_hand_pointwise_kernels_on_special_values(hand, case):
    dtype = case.make()[0].dtype
    special = torch.tensor([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-3, -1e-3, 6e4, -6e4], dtype=dtype)
    operands = len(case.make())
    args = [a.flatten().contiguous() for a in torch.meshgrid(*[special] * operands, indexing="ij")]
    case = cases.dataclasses.replace(case, count=args[0].numel())
    got, want = hand.bind(case, args, cases.EPS)(), case.fn(*args)
    torch.testing.assert_close(got, want, rtol=1e-3 if dtype == torch.half else 1e-6, atol=0, equal_nan=True)


def test_hand_streamed_output(hand):
    case = cases.dataclasses.replace(CASES["add_lowp/2^24"], count=(1 << 24) + 5)
    args = case.make()
    torch.testing.assert_close(hand.bind(case, args, cases.EPS)(), case.fn(*args), rtol=0, atol=0)


@pytest.mark.parametrize("name", ["softmax/6144x384", "layer_norm/4096x768", "rms_norm/4096x768"])
def test_hand_row_kernels(hand, name):
    case = cases.dataclasses.replace(CASES[name], count=37)
    args = case.make()
    got = hand.bind(case, args, cases.EPS)()
    assert case.tolerance.error(got, case.exact(args)) <= case.tolerance.value


def test_hand_refuses_columns_it_cannot_do(hand):
    case = cases.dataclasses.replace(CASES["softmax/6144x384"], count=2, cols=65)
    with pytest.raises(RuntimeError, match="returned 2"):
        hand.bind(case, case.make(), cases.EPS)()
