"""What libfxjit.so shows to the process: our names only, nothing of LLVM, nothing unique."""

import os
import subprocess
from pathlib import Path

import pytest

LIBRARY = Path(os.environ["FXJIT_BUILD_DIR"]) / "python" / "fxjit" / "libfxjit.so"


@pytest.fixture(scope="module")
def symbols() -> list[tuple[str, str]]:
    """(type letter, demangled name) of every defined dynamic symbol."""
    text = subprocess.run(["nm", "-D", "-C", "--defined-only", LIBRARY], check=True, capture_output=True, text=True).stdout
    return [(line[17], line[19:]) for line in text.splitlines()]


def test_only_our_names_are_exported(symbols):
    def ours(name: str) -> bool:
        for prefix in ("typeinfo name for ", "typeinfo for ", "vtable for ", "VTT for ", "non-virtual thunk to ",
                       "virtual thunk to "):
            name = name.removeprefix(prefix)
        return name.startswith(("fxjit::", "fxjit_")) or " fxjit::" in name.split("(")[0]

    assert symbols and [name for _, name in symbols if not ours(name)] == []


def test_no_llvm_symbol_is_exported(symbols):
    assert [name for _, name in symbols if "llvm" in name.lower()] == []


def test_no_unique_symbol_pins_the_library(symbols):
    assert [name for letter, name in symbols if letter == "u"] == []


def test_the_library_does_not_link_python_or_openmp():
    text = subprocess.run(["readelf", "-d", LIBRARY], check=True, capture_output=True, text=True).stdout
    needed = [line for line in text.splitlines() if "(NEEDED)" in line]
    assert needed and not [line for line in needed if any(name in line for name in ("python", "gomp", "LLVM", "cuda", "dnnl"))]
