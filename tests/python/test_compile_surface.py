"""What a compiled callable offers besides calls: options, attributes, code, errors, and who may hand it programs."""

import threading

import pytest
import torch
import torch.nn.functional as F
from compiling import check, same

import fxjit


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


def test_unknown_options_name_the_known_ones():
    with pytest.raises(TypeError, match="strict"):
        fxjit.compile(lambda x: x, strikt=True)
    with pytest.raises(ValueError):
        fxjit.compile(lambda x: x, target="pdp11")


@pytest.mark.parametrize("target", ["avx512", "avx2"])
def test_targets(target):
    f = fxjit.compile(lambda x: torch.tanh(x) + 1, target=target)
    x = torch.randn(100)
    for _ in range(2):
        same(f(x), torch.tanh(x) + 1)
    made = f.explain().specialisations
    assert made or target in str(f.explain()), "either it compiled or the report says why not"


def test_the_module_shines_through():
    m = torch.nn.Linear(2, 2)
    f = fxjit.compile(m)
    assert list(f.state_dict()) == list(m.state_dict()) and next(f.parameters()) is m.weight
    f.eval()
    assert not m.training and f.in_features == 2
    f.tag = "mine"
    assert m.tag == "mine"
    del f.tag
    assert not hasattr(m, "tag") and not hasattr(f, "tag")


def test_no_name_of_the_module_is_taken_but_the_documented_ones():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.target, self.options, self.positions = "here", {"a": 1}, [0, 1]

        def run(self):
            return self.target

        def forward(self, x):
            return x * self.options["a"]

    m = Model()
    f = fxjit.compile(m)
    inner = vars(fxjit._C.companion(f))
    for name in sorted({*inner, *dir(type(fxjit._C.companion(f)))} - {"explain", "code", "reset", "draw", "picture"}):
        if not name.startswith("__") and name not in ("target", "options", "positions", "run"):
            setattr(m, name, name)
            assert getattr(f, name) == name
            setattr(f, name, "set")
            assert getattr(m, name) == "set"
    assert (f.target, f.options, f.positions, f.run()) == ("here", {"a": 1}, [0, 1], "here")
    f.options = {"a": 3}
    for _ in range(3):
        same(f(torch.ones(2)), torch.full((2,), 3.0))
    assert f.explain().recorded_calls


def test_a_program_that_runs_eagerly_says_so():
    f = fxjit.compile(lambda x: x * 2 if x.sum() > 0 else x)
    for _ in range(3):
        f(torch.ones(2))
    report = f.explain()
    assert report.capture == "none" and report.generic_calls == 3 and not report.recorded_calls
    (fallback,) = report.fallbacks
    assert fallback["target"] == "eager" and "control flow" in fallback["reason"]
    assert "eager, 3 calls: " in str(report) and "control flow" in str(report)
    assert f.code.startswith("; eager: ") and "nothing was called" not in f.code
    f.reset()
    assert not f.explain().fallbacks and "nothing was called" in f.code


def test_dumps_of_every_stage(tmp_path):
    f = fxjit.compile(lambda x: x * 2.5 + torch.tanh(x) / 3, dump=f"graph,kernel,llvm,asm,ptx:{tmp_path}")
    for _ in range(2):
        f(torch.ones(3))
    texts = {(path.suffix, path.name.split("-")[1].split("_")[0].split(".")[0]): path.read_text() for path in tmp_path.iterdir()}
    for key, start in {(".graph", "fuse"): "kernel:", (".kernel", "kernel"): "axes parallel", (".ll", "kernel"): "define",
                       (".ll", "forward"): "define", (".s", "kernel"): "ret", (".ptx", "kernel"): ".target sm_80"}.items():
        assert start in texts[key], key


def test_unknown_stages_of_dump_name_the_known_ones():
    with pytest.raises(ValueError, match="stages are graph, kernel, llvm, asm, ptx"):
        fxjit.compile(lambda x: x, dump="graph,foo")


@pytest.mark.parametrize("make", [lambda: torch.nn.Linear(2, 2), lambda: torch.sin, lambda: lambda x: x * 3,
                                  lambda: fxjit.fx.symbolic_trace(lambda x: x * 3)])
def test_what_is_compiled_already_is_compiled_anew(make):
    program, x = make(), torch.ones(2)
    once = fxjit.compile(program)
    twice = fxjit.compile(once, threads="one")
    for _ in range(3):
        same(twice(x), program(x))
    assert twice.explain().specialisations and not once.explain().specialisations


def test_code_and_reset():
    f = fxjit.compile(lambda x: x * 3)
    x = torch.ones(2)
    f(x), f(x)
    code = f.code
    assert "generic form" in code and "specialisation" in code and "define" in code
    f.reset()
    assert not f.explain().specialisations
    assert f(x).eq(3).all()


def test_errors_are_eager_s():
    f = fxjit.compile(lambda x, y: x + y)
    x = torch.randn(3)
    for _ in range(2):
        f(x, x)
    with pytest.raises(RuntimeError, match="must match the size"):
        f(x, torch.randn(4))
    with pytest.raises(TypeError):
        f(x)


def test_graph_modules_and_torch_fx():
    def g(x):
        return torch.relu(x) + 1
    x = torch.randn(5)
    ours = fxjit.fx.symbolic_trace(g)
    for _ in range(3):
        same(ours(x), g(x))
    check(fxjit.fx.symbolic_trace(g), x)
    check(torch.fx.symbolic_trace(g), x)


def test_torch_compile_backend():
    def g(x, y):
        return (x * y).tanh() + 1
    f = torch.compile(g, backend="fxjit")
    x, y = torch.randn(9), torch.randn(9)
    for _ in range(3):
        same(f(x, y), g(x, y))
    with pytest.raises(Exception, match="strict"):
        torch.compile(g, backend="fxjit", options={"nonsense": 1})(torch.randn(4), torch.randn(4))


def test_several_threads():
    f = fxjit.compile(lambda x: (x * 2).sigmoid())
    wrong = []

    def work(seed):
        g = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for n in (5, 70000, 9, 40000):
                x = torch.randn(n, generator=g)
                if not torch.allclose(f(x), (x * 2).sigmoid()):
                    wrong.append(n)
                if seed == 0:
                    f.reset()
    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert not wrong


def test_a_norm_of_a_transposed_row_of_one_element_after_another_shape():
    f = fxjit.compile(lambda x: F.layer_norm(torch.sin(x).transpose(-1, -2), (1,)))
    for shape in ((7, 1, 3), (7, 1, 3), (7, 1, 7), (7, 1, 1)):
        x = torch.randn(shape)
        same(f(x), F.layer_norm(torch.sin(x).transpose(-1, -2), (1,)))


def test_a_part_written_in_place_keeps_its_strides():
    def program(x):
        part = x.double().chunk(2, -1)[0]
        part.sigmoid_()
        return part
    x = torch.rand(1, 65)
    compiled = fxjit.compile(program)
    with torch.no_grad():
        for _ in range(3):
            y, expected = compiled(x), program(x)
            assert y.stride() == expected.stride() == (65, 1) and torch.equal(y, expected)
