#!/usr/bin/env python3
"""Check sizes: .cpp, .py and .def files at most 400 lines, headers 200, C++ functions 60.

Functions are found by their braces, after comments and strings are removed: a heuristic, good enough to say where to
look. A lambda counts to the function around it. Where one outgrows its limit, the family splits.
"""

import argparse
import re
import sys
from pathlib import Path
from typing import Iterator

from repo_files import ROOT, repo_files

FILE_LIMITS = {".cpp": 400, ".py": 400, ".def": 400, ".h": 200}
FUNCTION_LIMIT = 60
FOLDERS = ("src", "include", "runtime", "tests", "tools", "bench", "examples")

NOISE = re.compile(r'R"(?P<tag>[^\s()\\]{0,16})\(.*?\)(?P=tag)"'  # raw string
                   r"|//[^\n]*|/\*.*?\*/"
                   r'|"(?:[^"\\\n]|\\.)*"'
                   r"|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+'"  # a character, but not the ' of 1'000
                   r"|^[ \t]*#(?:[^\n\\]|\\.)*", re.DOTALL | re.MULTILINE)  # a preprocessor line, continued ones too
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")


def strip_noise(text: str) -> str:
    """`text` without comments, strings and preprocessor lines, its line numbers kept."""
    return NOISE.sub(lambda match: "\n" * match[0].count("\n"), text)


def function_name(header: str) -> str:
    match = re.search(r"([\w:~]+|operator\s*\S+)\s*\(", header)
    return match[1] if match else "?"


def functions(text: str) -> Iterator[tuple[str, int, int]]:
    """(name, first line, number of lines) of each outermost function of C++ source, found by its braces."""
    code = strip_noise(text)
    header, header_line, line = "", 1, 1
    scopes: list[bool] = []  # one entry per open brace: does it open a function?
    start = None
    for position, char in enumerate(code):
        if char == "\n":
            line += 1
        if char == "{":
            is_function = start is None and "(" in header and not (SCOPE.search(header) and header.rstrip()[-1:] != ")")
            if is_function:
                start = (function_name(header), header_line)
            elif start is None:
                header = ""
            scopes.append(is_function)
        elif char == "}" and scopes:
            if scopes.pop():
                # `Foo() : a_{1}, b_{2} {`: a comma or another brace after it says that the header goes on.
                if code[position + 1:position + 200].lstrip()[:1] not in (",", "{"):
                    yield start[0], start[1], line - start[1] + 1
                    header = ""
                start = None
            elif start is None:
                header = ""
        elif start is None:
            if char == ";":
                header = ""
            elif header or not char.isspace():
                if not header:
                    header_line = line
                header += char


def check_file(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """(line, message) for each violation."""
    lines = text.count("\n") + (not text.endswith("\n") and bool(text))
    limit = FILE_LIMITS[path.suffix]
    if lines > limit:
        yield limit + 1, f"{lines} lines, the limit for {path.suffix} is {limit}: split the family"
    if path.suffix in (".def", ".py"):
        return
    for name, first, length in functions(text):
        if length > FUNCTION_LIMIT:
            yield first, f"{name} has {length} lines, the limit for a function is {FUNCTION_LIMIT}: split it"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=ROOT, help="repository to check")
    root = parser.parse_args().root.resolve()
    found = 0
    files = repo_files(root, FOLDERS, tuple(FILE_LIMITS))
    for path in files:
        for line, message in check_file(path, (root / path).read_text()):
            print(f"{path}:{line}: {message}")
            found += 1
    print(f"check_sizes: {len(files)} files, {found} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
