"""fxjit-run and fxjit-opt: what they print and their exit codes; files between Python and C++."""

import os
import pathlib
import subprocess

import pytest
import torch
from fxjit import fx

BIN = pathlib.Path(os.environ.get("FXJIT_BUILD_DIR", "build/dev")) / "bin"

PROGRAM = """fx 1
graph:
  %x : f32[8, 64] = placeholder
  %scale = placeholder scale(2.0)
  %softmax = torch:softmax(%x, -1)
  %mul = _operator:mul(%softmax, %scale)
  %half = call_method half(%mul)
  return (%half, {"size": 3})
"""


def tool(name, *args, text=PROGRAM):
    return subprocess.run([BIN / name, *map(str, args)], input=text, capture_output=True, text=True, timeout=120)


def test_a_text_is_compiled_and_compared():
    result = tool("fxjit-run", "--explain", "-")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["result", "value", "largest", "error", "verdict"]
    assert lines[2].startswith("0       f16[8, 64]") and lines[2].endswith("equal")
    assert lines[3].startswith("1       3 ") and "kernels:" in result.stdout


def test_a_result_that_differs():
    random = "fx 1\ngraph:\n  %x : f32[8] = placeholder\n  %y = torch:rand_like(%x)\n  return %y\n"
    result = tool("fxjit-run", "-", text=random)
    assert result.returncode == 1 and "differs" in result.stdout


@pytest.mark.parametrize(
    "args, text, code, message",
    [
        (["--nothing", "-"], PROGRAM, 2, "unknown option --nothing"),
        ([], PROGRAM, 2, "no file"),
        (["--seed=x", "-"], PROGRAM, 2, "--seed takes a number, not 'x'"),
        (["/nowhere"], PROGRAM, 3, "cannot read /nowhere"),
        (["-"], "fx 1\ngraph:\n  return %x\n", 3, "line 3, column 10: there is no node %x"),
        (["-"], PROGRAM.replace("f32[8, 64]", "f32[8, s0]"), 3, "the size 's0' in f32[8, s0] is no number: pass --input=f32["),
        (["-"], PROGRAM.replace(" : f32[8, 64]", ""), 3, "what is %x? Pass --input"),
        (["--input=1", "--input=2", "--input=3", "-"], PROGRAM, 3, "more inputs than placeholders"),
        (["-"], PROGRAM.replace("torch:softmax", "mine:softmax"), 4, "this program has no function mine:softmax"),
        (["-"], PROGRAM.replace("half(", "nonsense("), 4, "nonsense"),
    ],
)
def test_exit_codes(args, text, code, message):
    result = tool("fxjit-run", *args, text=text)
    assert result.returncode == code and message in result.stderr, (result.returncode, result.stderr)


def test_help():
    for name in ("fxjit-run", "fxjit-opt"):
        result = tool(name, "--help")
        assert result.returncode == 0 and "exit status: 0" in result.stdout and not result.stderr
    assert tool("fxjit-opt").returncode == 2


TYPED = """fx 1
symbol s0 : size(0, 0) = 6
typed graph:
  %x : f32[s0] = placeholder
  %exp : f32[s0] = aten::exp(%x)
  %neg : f32[s0] = aten::neg(%x)
  return (%exp,)
"""


@pytest.mark.parametrize(
    "args, text, code, message",
    [
        (["--nothing"], TYPED, 2, "unknown option --nothing: there are --passes="),
        (["--emit=graphs"], TYPED, 2, "there is no stage 'graphs': graph, fx, table, kernels, llvm, asm"),
        (["--target=sm_10"], TYPED, 2, "there is no target 'sm_10': avx512, avx2, sm_80, sm_90"),
        (["--passes=dce,fuze"], TYPED, 2, "there is no pass 'fuze' over a typed graph, which this text is: infer_types, canonicalize"),
        (["--passes=fuse"], PROGRAM, 2, "there is no pass 'fuse' over a graph, which this text is: dce, cse"),
        (["--emit=llvm"], TYPED, 1, "there are no kernels here: the pass fuse makes them"),
        (["--passes=functionalize"], TYPED.replace("exp(", "normal_("), 1, "this in-place operator has no pure form (pass functionalize)"),
        ([], TYPED.replace("f32[s0] =", "f32[s1] =", 1), 1, "line 4, column 12: there is no symbol s1"),
        ([], TYPED.replace("(%exp,)", "(%exp, %y)"), 1, "line 7, column 17: there is no node %y"),
    ],
)
def test_exit_codes_of_passes(args, text, code, message):
    result = tool("fxjit-opt", *args, "-", text=text)
    assert result.returncode == code and message in result.stderr and not result.stdout, (result.returncode, result.stderr)


def test_passes_run_in_the_order_given():
    once = tool("fxjit-opt", "--passes=dce", "-", text=TYPED)
    assert once.stdout == TYPED.replace("  %neg : f32[s0] = aten::neg(%x)\n", "")
    assert tool("fxjit-opt", "-", text=once.stdout).stdout == once.stdout
    assert tool("fxjit-opt", "--passes=dce,functionalize,fuse", "--emit=asm", "--target=avx2", "-", text=TYPED).returncode == 0


def test_what_a_compilation_prints_reads_back(tmp_path):
    environment = dict(os.environ, FXJIT_DUMP="graph")
    result = subprocess.run([BIN / "fxjit-run", "-"], input=PROGRAM, capture_output=True, text=True, timeout=120, env=environment)
    dumps = ["fx 1\n" + part for part in result.stderr.split("fx 1\n")[1:]]
    assert len(dumps) > 2, result.stderr
    for dump in dumps:
        text = dump.split("===")[0]
        if "kernel:" not in text:
            assert tool("fxjit-opt", "-", text=text).stdout == text


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(1, 4, 3, padding=1, bias=False), torch.nn.BatchNorm2d(4), torch.nn.ReLU(),
            torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(16, 8), torch.nn.LayerNorm(8), torch.nn.GELU(),
            torch.nn.Dropout(),
        )  # fmt: skip
        self.register_buffer("offset", torch.arange(8.0), persistent=False)

    def forward(self, x):
        return torch.nn.functional.gelu(torch.nn.functional.relu(self.layers(x)) + self.offset), x.float()[..., 0]


def test_a_file_of_python_runs_without_python_and_comes_back(tmp_path):
    gm = fx.symbolic_trace(Net().eval())
    next(iter(gm.graph.nodes)).type = "f32[2, 1, 4, 4]"
    fx.save(gm, tmp_path / "python.fx")
    result = tool("fxjit-run", f"--save={tmp_path / 'native.fx'}", tmp_path / "python.fx")
    assert result.returncode == 0, result.stderr
    new = fx.load(tmp_path / "native.fx")
    x = torch.randn(2, 1, 4, 4)
    torch.testing.assert_close(new(x), gm(x), rtol=0, atol=0)
    assert [(n, type(m).__name__, m.training) for n, m in new.named_modules()] == [
        (n, type(m).__name__, m.training) for n, m in gm.named_modules()
    ]
    assert list(new.state_dict()) == list(gm.state_dict()) and list(dict(new.named_buffers())) == list(dict(gm.named_buffers()))
    assert str(new.layers) == str(gm.layers)


class Decided(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3))

    def forward(self, x):
        if x.shape[0] > 3 and self.weight.size(0) == 3 and x.dtype == torch.float32 and not x.size(1) % 3:
            return x * self.weight
        return x


@pytest.mark.parametrize("given, fits", [("f32[4, 3]", True), ("f32[9, 3]", True), ("f32[2, 3]", False), ("f64[4, 3]", False)])
def test_guards_of_a_saved_graph_are_checked(given, fits, tmp_path):
    fx.save(fx.symbolic_trace(Decided(), example_inputs=(torch.randn(4, 3),)), tmp_path / "python.fx")
    result = tool("fxjit-run", f"--input={given}", tmp_path / "python.fx")
    assert (result.returncode == 0) == fits, result.stderr
    assert ("does not fit the graph, which was traced with x = float32[4, 3]" in result.stderr) == (not fits)


def test_guards_without_a_meaning_in_cpp_do_not_hold(tmp_path):
    fx.save(fx.symbolic_trace(lambda x: x * 2 if x.device.type == "cpu" else x, example_inputs=(torch.ones(2),)),
            tmp_path / "python.fx")
    result = tool("fxjit-run", "--input=f32[2]", tmp_path / "python.fx")
    assert result.returncode == 4 and "cannot be checked" in result.stderr
    result = tool("fxjit-run", "--input=f32[2]", f"--save={tmp_path / 'native.fx'}", tmp_path / "python.fx")
    assert result.returncode and not (tmp_path / "native.fx").exists()


def test_damaged_files_are_refused(tmp_path):
    fx.save(fx.symbolic_trace(Net().eval()), tmp_path / "python.fx")
    data = (tmp_path / "python.fx").read_bytes()
    (tmp_path / "half.fx").write_bytes(data[: len(data) // 2])
    result = tool("fxjit-run", tmp_path / "half.fx")
    assert result.returncode == 3 and "is no file of fxjit, or damaged" in result.stderr
