#!/usr/bin/env python3
"""Check who includes whom: a floor includes only itself and lower floors; third-party headers stay on their floors.

The floors are those of docs/design.md. Tests, tools, benchmarks and examples may look into every floor.
"""

import argparse
import re
import sys
from pathlib import Path
from typing import Iterator, NamedTuple

from repo_files import ROOT, repo_files

# floor name -> number; src/<name> and include/fxjit/<name> belong to it.
FLOORS = {"support": 0, "fx": 1, "ops": 2, "kernel": 3, "passes": 4, "codegen": 5, "jit": 6, "torch": 7, "driver": 8,
          "python": 9}

# Headers directly in include/fxjit.
TOP_HEADERS = {"api.h": 0, "version.h": 0, "errors.h": 0, "result.h": 0, "options.h": 0, "options.def": 0,
               "function_ref.h": 0, "dtype.h": 0, "sym.h": 0, "tensor_type.h": 0, "fx.h": 1, "compile.h": 8, "explain.h": 8, "record.h": 8,
               "nn.h": 8, "fxjit.h": 8}


class Library(NamedTuple):
    """A third-party library: which includes are its, and the path prefixes that may use it."""

    name: str
    pattern: re.Pattern
    allowed: tuple[str, ...]
    why: str


LIBRARIES = (
    Library("LLVM", re.compile(r"^llvm(-c)?/"), ("src/codegen/", "src/jit/"), "LLVM stays on floors 5 and 6"),
    Library("torch", re.compile(r"^(torch|ATen|c10|caffe2)/"),
            ("src/torch/", "src/driver/", "src/python/", "include/fxjit/torch/", "include/fxjit/driver/",
             "include/fxjit/compile.h", "include/fxjit/explain.h", "include/fxjit/record.h", "include/fxjit/nn.h",
             "include/fxjit/fxjit.h"),
            "floors 0 to 6 and the runtime build without torch"),
    Library("Python", re.compile(r"^(Python\.h|nanobind/|structmember\.h|frameobject\.h)"), ("src/python/",),
            "only the extension module knows Python"),
    Library("CUDA", re.compile(r"^(cuda|cublas|cudnn|nvrtc|cupti)\w*(\.h|/)"), ("runtime/",),
            "the runtime resolves CUDA with dlopen"),
    Library("oneDNN", re.compile(r"^(oneapi/|dnnl)"), ("runtime/libs/dnnl/",),
            "torch ships other oneDNN headers than those we call"),
)

# Seconds that one header costs a file (g++ 12 -O2): 23, 9, 10.
HEAVY_HEADERS = {"torch/torch.h": "ATen/core/Tensor.h and torch/nn/module.h", "torch/all.h": "the headers you need",
                 "ATen/ATen.h": "ATen/core/Tensor.h and ATen/ops/<op>.h",
                 "torch/csrc/autograd/python_variable.h": "a declaration of THPVariable",
                 "torch/extension.h": "the headers you need"}
HEAVY_ALLOWED: tuple[str, ...] = ()  # files for which a heavy header is worth its seconds

# What a line must not contain, and where it may all the same.
BANNED_TEXT = (
    (re.compile(r"\bgetenv\s*\("), ("src/support/options",), "read the environment in support/options only"),
    (re.compile(r"#\s*pragma\s+omp\b"), (), "threads belong to the host: use the frame's parallel_for"),
)

INCLUDE = re.compile(r'^\s*#\s*include\s*(<([^>]+)>|"([^"]+)")')


def floor_of(path: str) -> int | None:
    """Floor of a file of src/ or include/fxjit/; None for the runtime; KeyError where the table has no row."""
    parts = path.split("/")
    if parts[0] == "runtime":
        return None
    if parts[0] == "include":
        return TOP_HEADERS[parts[2]] if len(parts) == 3 else FLOORS[parts[2]]
    return FLOORS[parts[1]]


def project_target(include: str) -> str | None:
    """The repository path that an #include names, or None for a header that is not ours."""
    head = include.split("/")[0]
    if head == "fxjit":
        return "include/" + include
    if head == "runtime":
        return include
    # "torch/…" in quotes may be ours (src/torch) or libtorch's: the file decides.
    if head in FLOORS and (head != "torch" or (ROOT / "src" / include).exists()):
        return "src/" + include
    return None


def check_project_include(path: str, target: str) -> str | None:
    floor = floor_of(path)
    if target.startswith("runtime/"):
        if floor is None:
            return None
        if floor >= 7 or (floor >= 5 and re.fullmatch(r"runtime/abi\w*\.h", target)):
            return None
        return f"floor {floor} must not include {target}: runtime/abi.h is for floors 5 and up, the rest for 7 and up"
    if floor is None:
        return f"runtime/ must not include {target}: what ahead-of-time artefacts link knows no floor"
    if path.startswith("include/") and not target.startswith("include/"):
        return f"a public header must not include {target}: users have only include/"
    try:
        target_floor = floor_of(target)
    except KeyError:
        return f"{target} is on no floor: give it a row in tools/check_layers.py, or move it"
    if target_floor > floor:
        return f"floor {floor} must not include {target} of floor {target_floor}: only lower floors"
    return None


def check_include(path: str, include: str, quoted: bool) -> str | None:
    """What is wrong with `path` including `include`, or None."""
    target = project_target(include) if quoted else None
    if target is not None:
        return check_project_include(path, target)
    for library in LIBRARIES:
        if library.pattern.match(include) and not path.startswith(library.allowed):
            return f"{library.name} header {include} is not allowed here: {library.why}"
    if include in HEAVY_HEADERS and path not in HEAVY_ALLOWED:
        return f"{include} costs 9 to 23 s a file: include {HEAVY_HEADERS[include]} instead"
    return None


def check_file(path: str, text: str) -> Iterator[tuple[int, str]]:
    """(line, message) for each violation in a file of src/, include/ or runtime/."""
    try:
        floor_of(path)
    except KeyError:
        yield 1, "this file is on no floor: give it a row in tools/check_layers.py, or move it"
        return
    for number, line in enumerate(text.splitlines(), 1):
        if match := INCLUDE.match(line):
            if message := check_include(path, match[2] or match[3], match[3] is not None):
                yield number, message
        code = line.split("//")[0]
        for pattern, allowed, message in BANNED_TEXT:
            if pattern.search(code) and not path.startswith(allowed or ("\0",)):
                yield number, message


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=ROOT, help="repository to check")
    root = parser.parse_args().root.resolve()
    found = 0
    files = repo_files(root, ("src", "include", "runtime"), (".cpp", ".h", ".def", ".inc"))
    for path in files:
        for line, message in check_file(path.as_posix(), (root / path).read_text()):
            print(f"{path}:{line}: {message}")
            found += 1
    print(f"check_layers: {len(files)} files, {found} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
