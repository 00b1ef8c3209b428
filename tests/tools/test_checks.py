"""Each check tool finds a planted violation and lets pass what is allowed; tools/test runs them on the repository."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

import check_layers  # noqa: E402
import check_sizes  # noqa: E402


def violations(path: str, text: str) -> list[str]:
    return [message for _, message in check_layers.check_file(path, text)]


@pytest.mark.parametrize("path, line, part", [
    ("src/fx/graph.cpp", '#include "ops/registry.h"', "only lower floors"),
    ("include/fxjit/fx/graph.h", '#include "fxjit/ops/registry.h"', "only lower floors"),
    ("include/fxjit/fx/graph.h", '#include "fx/detail.h"', "users have only include/"),
    ("src/kernel/kernel.cpp", '#include "runtime/abi.h"', "for floors 5 and up"),
    ("src/jit/cpu_jit.cpp", '#include "runtime/arena.h"', "for floors 5 and up"),
    ("runtime/arena.cpp", '#include "support/log.h"', "knows no floor"),
    ("src/kernel/kernel.cpp", "#include <llvm/IR/IRBuilder.h>", "LLVM stays on floors"),
    ("src/driver/compile.cpp", '#include "llvm/IR/Module.h"', "LLVM stays on floors"),
    ("src/jit/cpu_jit.cpp", "#include <ATen/core/Tensor.h>", "without torch"),
    ("src/driver/compile.cpp", "#include <Python.h>", "only the extension module"),
    ("src/codegen/nvptx/hooks.cpp", "#include <cuda.h>", "dlopen"),
    ("src/torch/linear.cpp", '#include "oneapi/dnnl/dnnl.h"', "other oneDNN headers"),
    ("src/torch/call.cpp", "#include <torch/torch.h>", "costs 9 to 23 s"),
    ("src/python/bind_a.cpp", "#include <torch/csrc/autograd/python_variable.h>", "costs 9 to 23 s"),
    ("src/fx/graph.cpp", 'const char* home = std::getenv("HOME");', "support/options"),
    ("runtime/parallel.cpp", "#pragma omp parallel for", "threads belong to the host"),
    ("src/nowhere/a.cpp", "", "on no floor"),
    ("include/fxjit/nowhere.h", "", "on no floor"),
])
def test_a_planted_include_is_found(path, line, part):
    found = violations(path, line + "\n")
    assert len(found) == 1 and part in found[0]


@pytest.mark.parametrize("path, line", [
    ("src/ops/registry.cpp", '#include "fxjit/fx/graph.h"'),
    ("src/jit/cpu_jit.cpp", '#include "runtime/abi.h"'),
    ("src/codegen/cpu/hooks.cpp", '#include "llvm/IR/IRBuilder.h"'),
    ("src/torch/recorder.cpp", "#include <ATen/core/Tensor.h>"),
    ("src/support/options.cpp", 'std::getenv("FXJIT_DUMP");'),
    ("src/fx/graph.cpp", "// getenv() is not called here"),
    ("runtime/libs/dnnl/table.cpp", '#include "oneapi/dnnl/dnnl.h"'),
])
def test_what_is_allowed_passes(path, line):
    assert violations(path, line + "\n") == []


def long_function(lines: int, head: str = "int Foo::bar(int x) const") -> str:
    return "namespace a {\n" + head + " {\n" + "  x++;\n" * (lines - 2) + "}\n}\n"


@pytest.mark.parametrize("head", [
    "int Foo::bar(int x) const", "TEST(Graph, erases)", "Foo::Foo() : a_{1}, b_(2)",
    "auto f(int x) -> std::vector<int>", "template <class T> T g(T x) noexcept(true)", 'extern "C" int h(int x)',
])
def test_a_long_function_is_found(head):
    assert not list(check_sizes.check_file(Path("a.cpp"), long_function(60, head)))
    (line, message), = check_sizes.check_file(Path("a.cpp"), long_function(61, head))
    assert line == 2 and "61 lines" in message


def test_a_class_of_short_functions_is_no_long_function():
    text = "class A final : public B {\n" + "  int f(int x) { return x; }\n" * 100 + "};\n"
    assert not list(check_sizes.check_file(Path("a.h"), text))


def test_braces_in_comments_strings_and_macros_do_not_count():
    text = ('#define OPEN {\n// {\n/* { */\nint f() {\n  const char* s = "{";\n  char c = \'{\';\n'
            '  auto r = R"x({)x";\n  int n = 1\'000;\n}\n' + "int y;\n" * 80)
    assert not list(check_sizes.check_file(Path("a.cpp"), text))


@pytest.mark.parametrize("name, limit", [("a.cpp", 400), ("a.py", 400), ("a.def", 400), ("a.h", 200)])
def test_a_long_file_is_found(name, limit):
    assert not list(check_sizes.check_file(Path(name), "int x;\n" * limit))
    (line, message), = check_sizes.check_file(Path(name), "int x;\n" * (limit + 1))
    assert line == limit + 1 and f"{limit + 1} lines" in message


@pytest.mark.parametrize("tool, path, text", [
    ("check_layers.py", "src/fx/a.cpp", '#include "jit/b.h"\n'),
    ("check_sizes.py", "src/fx/a.h", "int x;\n" * 201),
])
def test_the_command_fails_on_a_planted_file(tool, path, text, tmp_path):
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(text)
    run = subprocess.run([sys.executable, TOOLS / tool, "--root", tmp_path], capture_output=True, text=True)
    assert run.returncode == 1 and path in run.stdout and "1 violations" in run.stdout


@pytest.mark.parametrize("tool", ["setup", "test", "demo", "format", "golden", "check_layers.py", "check_sizes.py"])
def test_every_tool_explains_itself(tool):
    run = subprocess.run([TOOLS / tool, "--help"], capture_output=True, text=True)
    assert run.returncode == 0 and len(run.stdout) > 80
