"""An exception in a stage of compilation costs speed and nothing else: results are eager's, explain() has the reason, and
later calls do not try again. The option `fault` throws one on purpose."""

import itertools

import pytest
import torch

import fxjit
from fxjit import recording

PASSES = "infer_types canonicalize functionalize decompose fold cse dce fuse".split()
STAGES = ["capture", "variant", "record", "scope", "observe", "import", *PASSES, "plan", "kernels", "codegen", "jit", "forward",
          "link"]
KINDS = {"": "InternalError|a fault on purpose", ":memory": "bad_alloc|MemoryError", ":other": "a fault on purpose"}
SCALES = itertools.count(3)


def program(scale):
    """A new one each time: the kernels of one that was compiled before are found in the cache."""
    terms = [torch.sigmoid, torch.tanh, torch.relu, torch.abs, torch.exp, torch.sin, torch.cos, torch.square]

    def f(x, w):
        y = torch.softmax(x, -1) * w[0]
        n = scale
        while n:
            n, k = divmod(n, len(terms))
            y = terms[k](y) + 1
        return torch.sort(y @ w.t(), -1).values

    return f


class Holding(torch.nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f, self.w = f, torch.nn.Parameter(torch.randn(6, 6))

    def forward(self, x, w):
        return self.f(x, w) + self.w.sum()


def function(f, options):
    compiled = fxjit.compile(f, **options)
    return compiled, compiled.explain


def module(f, options):
    compiled = fxjit.compile(Holding(f), **options)
    return compiled, compiled.explain


def graph_module(f, options):
    compiled = fxjit.compile(fxjit.fx.symbolic_trace(f), **options)
    return compiled, compiled.explain


def called_graph_module(f, options):
    gm = fxjit.fx.symbolic_trace(f)
    return gm, lambda: gm._snapshot._executor.explain()


def dynamo(f, options):
    torch._dynamo.reset()
    made = []

    def backend(gm, inputs):
        made.append(fxjit.compile(gm, **options))
        return made[-1]

    return torch.compile(f, backend=backend), lambda: made[-1].explain()


def exported(f, options):
    class Exported(torch.nn.Module):
        def forward(self, x, w):
            return f(x, w)

    compiled = fxjit.compile(torch.export.export(Exported(), (torch.randn(5, 6), torch.randn(6, 6))), **options)
    return compiled, compiled.explain


ENTRIES = [function, module, graph_module, called_graph_module, dynamo, exported]


@pytest.fixture
def quiet(monkeypatch):
    monkeypatch.setenv("FXJIT_VERIFY", "0")  # with it bugs of ours are raised
    monkeypatch.setenv("FXJIT_LOG", "off")


def eager_of(run, f):
    return fxjit._C.companion(run).target if isinstance(run, Holding) else f


def check(entry, fault, pattern, monkeypatch):
    monkeypatch.setenv("FXJIT_FAULT", fault)
    f = program(next(SCALES))
    run, explain = entry(f, {"fault": fault})
    expected = eager_of(run, f)
    with torch.no_grad():
        for _ in range(4):
            x, w = torch.randn(5, 6), torch.randn(6, 6)
            torch.testing.assert_close(run(x, w), expected(x, w))
    report = explain()
    assert not report.specialisations
    reasons = "\n".join([*report.notes, *(row["reason"] for row in report.fallbacks)])
    assert pattern_in(pattern, reasons), reasons
    assert report.recorded_calls <= 1
    return report


def pattern_in(pattern, text):
    return any(word in text for word in pattern.split("|"))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("stage", STAGES)
def test_a_bug_in_a_stage(stage, entry, quiet, monkeypatch):
    check(entry, stage, KINDS[""], monkeypatch)


@pytest.mark.parametrize("kind", [":memory", ":other"])
@pytest.mark.parametrize("stage", STAGES)
def test_other_exceptions_in_a_stage(stage, kind, quiet, monkeypatch):
    check(graph_module, stage + kind, KINDS[kind], monkeypatch)


@pytest.mark.parametrize("kind", list(KINDS))
def test_no_generic_form(kind, quiet, monkeypatch):
    """The interpreter runs what even the generic form cannot be made of."""
    monkeypatch.setenv("FXJIT_FAULT", f"generic{kind}")
    f = program(next(SCALES))
    compiled = fxjit.compile(f)
    x, w = torch.randn(5, 6, requires_grad=True), torch.randn(6, 6)
    with pytest.warns(UserWarning, match="requires grad"), pytest.warns(RuntimeWarning, match="generic form cannot be made"):
        first = compiled(x, w)
    torch.testing.assert_close(first, f(x, w))
    torch.testing.assert_close(compiled(x, w), f(x, w))
    reasons = [row["reason"] for row in compiled.explain().fallbacks if row["target"] == "interpreter"]
    assert len(reasons) == 1


def test_a_bug_in_taking_notes(quiet, monkeypatch):
    def broken(self, n):
        raise KeyError("no such note")

    monkeypatch.setattr(recording._Recorder, "looks_at_sizes", broken)
    f = program(next(SCALES))
    compiled = fxjit.compile(f)
    with torch.no_grad():
        for _ in range(3):
            x, w = torch.randn(5, 6), torch.randn(6, 6)
            torch.testing.assert_close(compiled(x, w), f(x, w))
    report = compiled.explain()
    assert any("no such note" in row["reason"] for row in report.fallbacks) and report.recorded_calls == 1


def test_writes_and_random_numbers_happen_once(quiet, monkeypatch):
    for stage in STAGES:
        compiled = fxjit.compile(lambda x: x.add_(1).mul_(torch.rand(3)), fault=stage)
        for _ in range(2):
            x, expected = torch.zeros(3), torch.ones(3)
            torch.manual_seed(5)
            result = compiled(x)
            torch.manual_seed(5)
            expected *= torch.rand(3)
            assert torch.equal(x, expected) and result is x


@pytest.mark.parametrize("options", [{"verify": True}, {"verify": False, "strict": True}], ids=["verify", "strict"])
def test_who_wants_to_see_bugs_sees_them(options, quiet):
    for stage in ("capture", "record", "fuse", "jit"):
        compiled = fxjit.compile(program(next(SCALES)), fault=stage, **options)
        with torch.no_grad(), pytest.raises(RuntimeError):
            compiled(torch.randn(5, 6), torch.randn(6, 6))


def test_after_a_reset_it_is_tried_again(quiet):
    f = program(next(SCALES))
    compiled = fxjit.compile(f, fault="fuse")
    x, w = torch.randn(5, 6), torch.randn(6, 6)
    with torch.no_grad():
        compiled(x, w)
        compiled.reset()
        compiled(x, w)
        compiled(x, w)
    assert compiled.explain().recorded_calls == 1
